// Single transfers: the choice of the source, the events before and after a copy, and the state of the copies after a
// transfer that succeeds, ends too late, or fails.

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { Status } from '../../devices/backend.js';
import { type DatumId, HOST, NO_TASK } from '../../devices/handles.js';
import { CopyEvent, CopyState } from '../../devices/memory/coherency.js';
import { Poison } from '../../devices/memory/directory.js';
import { LruList } from '../../devices/memory/lru.js';
import { TransferReason } from '../../trace/format.js';
import { queueId, spaceId } from '../support/handles.js';
import { Bench, GPU, UNIT } from '../support/stage-bench.js';

const OTHER = spaceId(2);
const THIRD = 3;
const SPACES = 4;
let bench: Bench;

beforeEach(() => {
  bench = new Bench(10, 100, { gpus: 3 });
});

const copyOf = (d: DatumId, s: number): number => d * SPACES + s;

/** Commands a copy; the destination gets memory if it has none. */
function move(d: DatumId, to: number, from: number, reason: number = TransferReason.stageIn): void {
  const { dir, spaces, transfers } = bench;
  if (!bench.isHere(d, to)) dir.block[copyOf(d, to)] = spaces[to].zone.allocate(dir.bytes[d]);
  transfers.issue(d, spaceId(to), spaceId(from), reason, NO_TASK, 0);
}

/** A task in space `s` writes a new version. */
function write(d: DatumId, s: number): void {
  const { dir, spaces } = bench;
  dir.version[d]++;
  dir.apply(d, spaceId(s), CopyEvent.write);
  for (let other = 0; other < SPACES; other++) {
    if (other === s || !((dir.validMask[d] >> other) & 1)) continue;
    dir.apply(d, spaceId(other), CopyEvent.remoteWrite);
    spaces[other].settle(d);
  }
}

/** The oldest command of a queue is over, and no other. */
function finishOne(to: number, from: number, status: number = Status.ok): void {
  const { backend, sub, transfers } = bench;
  const q = transfers.queue(spaceId(to), spaceId(from));
  backend.completed[q]++;
  const token = sub.takeFinished(q);
  expect(token).toBeLessThan(0);
  transfers.finish(-token - 1, q, sub.seen[q], status);
  bench.check();
}

const states = (d: DatumId): number[] => [...Array(SPACES).keys()].map((s) => bench.state(d, s));
const { invalid, arriving, shared, owned } = CopyState;

describe('the source of a copy', () => {
  it('is a device rather than the host, and a complete copy rather than an arriving one', () => {
    const where = fc.constantFrom('absent' as const, 'there' as const, 'on its way' as const);
    fc.assert(
      fc.property(fc.array(where, { minLength: SPACES, maxLength: SPACES }), (copies) => {
        bench = new Bench(10, 100, { gpus: 3 });
        const d = bench.datum(1);
        let isFirst = true;
        copies.forEach((copy, s) => {
          if (copy === 'absent' || s === GPU) return;
          if (isFirst) {
            bench.dir.block[copyOf(d, s)] = bench.spaces[s].zone.allocate(UNIT);
            bench.dir.apply(d, spaceId(s), CopyEvent.write);
            bench.spaces[s].settle(d);
          } else bench.share(d, s);
          isFirst = false;
          if (copy === 'on its way')
            bench.dir.setWriter(copyOf(d, s), bench.transfers.queue(spaceId(s), GPU), 1);
        });
        const candidates = [HOST, OTHER, THIRD].filter((s) => copies[s] !== 'absent');
        const best = candidates.sort(
          (a, b) =>
            Number(a === HOST) - Number(b === HOST) ||
            Number(copies[a] === 'on its way') - Number(copies[b] === 'on its way'),
        )[0];
        const found = bench.transfers.chooseSource(d, GPU);
        if (best === undefined) expect(found).toBe(-1);
        else expect([found === HOST, copies[found]]).toEqual([best === HOST, copies[best]]);
      }),
    );
  });

  it('is none if only the space itself has a copy', () => {
    expect(bench.transfers.chooseSource(bench.dirty(1), GPU)).toBe(-1);
  });
});

describe('a copy', () => {
  it('follows the writer of its source, and the writer and all readers of the copy that it overwrites', () => {
    const d = bench.dirty(1);
    const { dir, backend, transfers } = bench;
    const to = copyOf(d, OTHER);
    dir.block[to] = bench.spaces[OTHER].zone.allocate(UNIT);
    const computes = backend.queues.flatMap(({ kind }, q) => (kind === 'compute' ? [q] : []));
    dir.setWriter(copyOf(d, GPU), queueId(computes[0]), 5);
    dir.setWriter(to, queueId(computes[1]), 6);
    dir.addReader(to, queueId(computes[2]), 7);
    dir.addReader(to, queueId(0), 8);
    dir.addReader(to, transfers.queue(HOST, OTHER), 9);
    const queue = transfers.queue(OTHER, GPU);
    move(d, OTHER, GPU);
    const waits = backend.commands.map(({ onQueue, onSeq }) => [onQueue, onSeq]);
    expect(backend.commands.every((command) => command.queue === queue)).toBe(true);
    expect(waits).toHaveLength(5);
    expect(waits).toEqual(
      expect.arrayContaining([
        [computes[0], 5],
        [computes[1], 6],
        [computes[2], 7],
        [0, 8],
        [transfers.queue(HOST, OTHER), 9],
      ]),
    );
    const seq = backend.issued[queue];
    expect([dir.writeQueue[to], dir.writeSeq[to]]).toEqual([queue, seq]);
    expect([dir.readerQueue[copyOf(d, GPU)], dir.readerSeq[copyOf(d, GPU)]]).toEqual([queue, seq]);
  });

  it('keeps both ends in memory until it is over', () => {
    const d = bench.onHost(2);
    move(d, GPU, HOST);
    expect(states(d)).toEqual([owned, arriving, invalid, invalid]);
    expect([bench.dir.pins[copyOf(d, HOST)], bench.dir.pins[copyOf(d, GPU)]]).toEqual([1, 1]);
    finishOne(GPU, HOST);
    expect(states(d)).toEqual([owned, shared, invalid, invalid]);
    expect([bench.dir.pins[copyOf(d, HOST)], bench.dir.pins[copyOf(d, GPU)]]).toEqual([0, 0]);
    expect(bench.gpu.lru.listOf(d)).toBe(LruList.clean);
    expect(bench.transfers.live).toBe(0);
  });

  it('to the host takes the value over, and makes the copies on devices clean', () => {
    const d = bench.dirty(1);
    move(d, HOST, GPU);
    expect(states(d)).toEqual([arriving, owned, invalid, invalid]);
    finishOne(HOST, GPU);
    expect(states(d)).toEqual([owned, shared, invalid, invalid]);
    expect(bench.gpu.lru.listOf(d)).toBe(LruList.clean);
  });

  it('that ends after a later write changes nothing, also when a new copy is under way', () => {
    const d = bench.dirty(1);
    move(d, HOST, GPU);
    write(d, GPU);
    expect(states(d)).toEqual([invalid, owned, invalid, invalid]);
    move(d, HOST, GPU);
    finishOne(HOST, GPU);
    expect(states(d)).toEqual([arriving, owned, invalid, invalid]);
    finishOne(HOST, GPU);
    expect(states(d)).toEqual([owned, shared, invalid, invalid]);
  });

  it('into memory of another datum is impossible', () => {
    const d = bench.onHost(1);
    expect(() => bench.transfers.issue(d, GPU, HOST, TransferReason.stageIn, NO_TASK, 0)).toThrow(
      'no block',
    );
  });

  it('is counted by kind and by space', () => {
    const [a, b] = [bench.onHost(1), bench.dirty(2)];
    move(a, GPU, HOST);
    move(a, OTHER, GPU);
    move(b, HOST, GPU, TransferReason.spill);
    const { bytes, bytesIn, bytesOut, spills, live } = bench.transfers;
    expect([bytes.h2d, bytes.d2d, bytes.d2h]).toEqual([UNIT, UNIT, 2 * UNIT]);
    expect([...bytesIn]).toEqual([2 * UNIT, UNIT, UNIT, 0]);
    expect([...bytesOut]).toEqual([UNIT, 3 * UNIT, 0, 0]);
    expect([spills, live, bench.gpu.arrivingOut]).toEqual([1, 3, 2 * UNIT]);
    bench.finishTransfers();
    expect([bench.transfers.live, bench.gpu.arrivingOut]).toEqual([0, 0]);
  });
});

describe('a copy that fails', () => {
  it('leaves the value in its place', () => {
    const d = bench.onHost(1);
    move(d, GPU, HOST);
    bench.spaces.forEach((space) => {
      space.beginServing();
    });
    finishOne(GPU, HOST, Status.driver);
    expect(states(d)).toEqual([owned, invalid, invalid, invalid]);
    expect(bench.dir.poison[d]).toBe(Poison.none);
    expect(bench.isHere(d), 'its memory is given back').toBe(false);
    // Whoever waits for the bytes must look again, in every space.
    expect(bench.spaces.every((space) => space.mustServeLine)).toBe(true);
  });

  it('fails all copies that were made from it, and reports each once', () => {
    const d = bench.onHost(1);
    const told: number[] = [];
    bench.transfers.observer = { transferDone: (_t, _q, _seq, status) => void told.push(status) };
    move(d, GPU, HOST);
    move(d, OTHER, GPU);
    move(d, THIRD, OTHER);
    expect(states(d)).toEqual([owned, arriving, arriving, arriving]);
    finishOne(GPU, HOST, Status.driver);
    expect(states(d)).toEqual([owned, invalid, invalid, invalid]);
    // Their ends say nothing new, whatever they are.
    finishOne(OTHER, GPU, Status.driver);
    finishOne(THIRD, OTHER);
    expect(states(d)).toEqual([owned, invalid, invalid, invalid]);
    expect(told).toEqual([Status.driver, Status.ok, Status.ok]);
    expect(bench.transfers.live).toBe(0);
    // Later copies have nothing to do with it.
    for (const s of [GPU, OTHER, THIRD]) move(d, s, HOST);
    bench.finishTransfers();
    expect(states(d)).toEqual([owned, shared, shared, shared]);
  });

  it('leaves other copies alone', () => {
    const d = bench.onHost(1);
    move(d, GPU, HOST);
    move(d, OTHER, HOST);
    move(d, THIRD, OTHER);
    finishOne(GPU, HOST, Status.driver);
    expect(states(d)).toEqual([owned, invalid, arriving, arriving]);
    bench.finishTransfers();
    expect(states(d)).toEqual([owned, invalid, shared, shared]);
  });

  it('does not harm a version that was written since', () => {
    const d = bench.onHost(1);
    move(d, GPU, HOST);
    write(d, GPU);
    finishOne(GPU, HOST, Status.driver);
    expect(states(d)).toEqual([invalid, owned, invalid, invalid]);
    expect(bench.dir.poison[d]).toBe(Poison.none);
  });
});

describe('poison of a block', () => {
  it('keeps the block until it is over, and is no copy', () => {
    const { transfers, gpu, sub } = bench;
    const offset = gpu.zone.allocate(3 * UNIT);
    const queue = transfers.queue(GPU, HOST);
    transfers.poison(GPU, queue, offset, 3 * UNIT);
    expect([gpu.poisoning, transfers.live, gpu.zone.used]).toEqual([1, 1, 3 * UNIT]);
    const seen: number[] = [];
    transfers.forEachLive((t) => void seen.push(t));
    expect(seen).toEqual([]);
    gpu.beginServing();
    bench.backend.completeAll(queue);
    transfers.finish(-sub.takeFinished(queue) - 1, queue, sub.seen[queue], Status.ok);
    expect([gpu.poisoning, transfers.live, gpu.zone.used, gpu.mustServeLine]).toEqual([
      0,
      0,
      0,
      true,
    ]);
    bench.check();
  });
});
