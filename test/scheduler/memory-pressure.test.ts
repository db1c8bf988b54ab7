// Memory pressure: it lasts from an eviction until the first queue of the device has had 256 further commands. Meanwhile
// issued work may hold half of the device's memory.

import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryPressure } from '../../scheduler/engine/memory-pressure.js';
import { spaceId } from '../support/handles.js';
import { Bench, GPU } from '../support/stage-bench.js';

const OTHER = spaceId(2);
/** First compute queue of each GPU on the bench: the host's worker comes first, three more queues follow. */
const QUEUE = 1;
const LASTING = 256;
let bench: Bench;
let pressure: MemoryPressure;

beforeEach(() => {
  bench = new Bench(10, 100, { gpus: 2 });
  pressure = new MemoryPressure(bench.spaces, bench.allSpaces, bench.sub);
});

/** Looks, after so many further commands of a queue. */
function look(commands = 0, queue = QUEUE): number[] {
  bench.backend.issued[queue] = (bench.backend.issued[queue] + commands) | 0;
  pressure.look();
  return [...pressure.short];
}

const evict = (s: number): void => bench.spaces[s].countEviction();

describe('a device is short of memory', () => {
  it('never, while nothing was evicted', () => {
    expect(look()).toEqual([0, 0, 0]);
    expect(look(1000)).toEqual([0, 0, 0]);
  });

  it('from an eviction on, for 256 commands of its first queue', () => {
    look(10);
    evict(GPU);
    expect(look()).toEqual([0, 1, 0]);
    expect(look(LASTING - 1)).toEqual([0, 1, 0]);
    expect(look(1)).toEqual([0, 0, 0]);
  });

  it('for 256 commands from the last of its evictions', () => {
    evict(GPU);
    look(10);
    look(60);
    evict(GPU);
    expect(look()).toEqual([0, 1, 0]);
    expect(look(LASTING - 1)).toEqual([0, 1, 0]);
    expect(look(1)).toEqual([0, 0, 0]);
  });

  it('whatever other devices and other queues do', () => {
    evict(OTHER);
    expect(look()).toEqual([0, 0, 1]);
    for (let queue = 0; queue < bench.backend.queues.length; queue++) {
      const { kind, space } = bench.backend.queues[queue];
      if (kind !== 'compute' || space !== OTHER) expect(look(500, queue)).toEqual([0, 0, 1]);
    }
  });

  it('also where sequence numbers wrap', () => {
    bench.backend.issued[QUEUE] = 2 ** 31 - 10;
    evict(GPU);
    look();
    expect(look(LASTING - 1)).toEqual([0, 1, 0]);
    expect(bench.backend.issued[QUEUE]).toBeLessThan(0);
    expect(look(1)).toEqual([0, 0, 0]);
  });

  it('for ever if it has evicted before it is told to stay so', () => {
    evict(0);
    evict(GPU);
    look();
    expect([...pressure.stay()]).toEqual([GPU]);
    evict(OTHER);
    expect(look()).toEqual([0, 1, 1]);
    for (const queue of [QUEUE, bench.backend.queues.findIndex((q) => q.space === OTHER)])
      look(10 * LASTING, queue);
    expect(look()).toEqual([0, 1, 0]);
  });

  it('unless it is the host, below which nothing lies', () => {
    evict(0);
    expect(look()).toEqual([0, 0, 0]);
  });
});

describe('a task may start on a device that is short of memory', () => {
  it('while issued work holds up to half of the memory', () => {
    bench.sub.outstanding[QUEUE] = 1;
    const [a, b] = [bench.dirty(5), bench.dirty(1)];
    expect(pressure.mayStart(GPU)).toBe(true);
    bench.gpu.pin(a);
    expect(pressure.mayStart(GPU)).toBe(true);
    bench.gpu.pin(b);
    expect(pressure.mayStart(GPU)).toBe(false);
    expect(pressure.mayStart(OTHER)).toBe(true);
    bench.gpu.unpin(b);
    expect(pressure.mayStart(GPU)).toBe(true);
  });

  it('when nothing is under way there, which could give memory back', () => {
    bench.gpu.pin(bench.dirty(9));
    bench.sub.outstanding[QUEUE] = 1;
    expect(pressure.mayStart(GPU)).toBe(false);
    bench.sub.outstanding[QUEUE] = 0;
    expect(pressure.mayStart(GPU)).toBe(true);
    bench.backend.queues.forEach(({ kind, space }, queue) => {
      bench.sub.outstanding[queue] = 1;
      const isOwn = kind === 'compute' && space === GPU;
      expect(pressure.mayStart(GPU)).toBe(!isOwn);
      bench.sub.outstanding[queue] = 0;
    });
  });
});
