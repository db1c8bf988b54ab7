// Eviction picks the copy whose next use is furthest away. Copies without a known next use go first, least recently used
// first. On a known future no other choice has fewer misses. Copies that are needed stay.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DatumId, HOST, NO_TASK } from '../../devices/handles.js';
import { CopyState } from '../../devices/memory/coherency.js';
import {
  type EvictionCounter,
  type Forecast,
  makeRoom,
  startWriteBack,
  victim,
} from '../../devices/memory/eviction.js';
import { LruList } from '../../devices/memory/lru.js';
import { TransferReason } from '../../trace/format.js';
import { spaceId, taskId } from '../support/handles.js';
import { fewestMisses } from '../support/paging.js';
import { Bench, GPU, UNIT } from '../support/stage-bench.js';

const NEVER = Number.POSITIVE_INFINITY;
const OTHER = spaceId(2);

/** A forecast that was recorded. Data without an entry are not used again. */
function recorded(uses: ReadonlyMap<number, number>): Forecast & { asked: number } {
  return {
    asked: 0,
    nextUse(d) {
      this.asked++;
      return uses.get(d) ?? NEVER;
    },
  };
}

const counting = (forecast: Forecast): EvictionCounter => ({
  evictions: 0,
  forecast,
  observer: undefined,
});
const nobody = (): EvictionCounter => counting(recorded(new Map()));

/** Makes the copy of `d` the one used last. */
function touch(bench: Bench, d: DatumId): void {
  bench.gpu.pin(d);
  bench.gpu.unpin(d);
}

/** Starts the write-back of one dirty copy. */
const writeBack = (bench: Bench, counter: EvictionCounter = nobody(), space = bench.gpu): number =>
  startWriteBack(space, bench.spaces, bench.dir, bench.transfers, counter, 0);

describe('the victim', () => {
  it('is the copy with the furthest next use, the least recently used among equals', () => {
    const uses = fc.array(fc.constantFrom(1, 2, 5, 9, NEVER), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(uses, fc.array(fc.nat({ max: 7 })), (known, touched) => {
        const bench = new Bench(10);
        const data = known.map(() => bench.clean(1));
        let order = [...data];
        for (const i of touched) {
          const d = data[i % data.length];
          touch(bench, d);
          order = [...order.filter((each) => each !== d), d];
        }
        const next = new Map(data.map((d, i) => [d, known[i]]));
        const furthest = Math.max(...known);
        const expected = order.find((d) => next.get(d) === furthest);
        expect(victim(bench.gpu, LruList.clean, recorded(next))).toBe(expected);
      }),
    );
  });

  it('on the host is the copy used least recently, without regard to next uses', () => {
    const bench = new Bench(10);
    const data = [1, 2, 3].map(() => bench.clean(1));
    for (const d of data) bench.transfers.handOver(d, GPU);
    const next = new Map(data.map((d, i) => [d, i]));
    expect(victim(bench.spaces[HOST], LruList.clean, recorded(next))).toBe(data[0]);
  });

  it('is looked for among the 64 copies used least recently', () => {
    const bench = new Bench(100);
    const data = Array.from({ length: 80 }, () => bench.clean(1));
    const forecast = recorded(new Map(data.map((d, i) => [d, i])));
    expect(victim(bench.gpu, LruList.clean, forecast)).toBe(data[63]);
    expect(forecast.asked).toBeLessThanOrEqual(64);
  });

  it('is looked for no further than the first copy without a next use', () => {
    const bench = new Bench(10);
    const [used, idle] = [bench.clean(1), bench.clean(1)];
    bench.clean(1);
    const forecast = recorded(new Map([[used, 3]]));
    expect(victim(bench.gpu, LruList.clean, forecast)).toBe(idle);
    expect(forecast.asked).toBe(2);
  });

  it('is none if there is no candidate', () => {
    const bench = new Bench(10);
    bench.dirty(1);
    expect(victim(bench.gpu, LruList.clean, recorded(new Map()))).toBe(-1);
  });
});

describe('on a known future', () => {
  it('no choice of victims has fewer misses', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.nat({ max: 6 }), { maxLength: 30, size: 'max' }),
        (frames, sequence) => {
          const bench = new Bench(frames);
          const data = Array.from({ length: 7 }, () => bench.onHost(1));
          let at = 0;
          const counter = counting({
            nextUse(d) {
              const next = sequence.indexOf(data.indexOf(d), at);
              return next < 0 ? NEVER : next - at;
            },
          });
          let misses = 0;
          for (const i of sequence) {
            const d = data[i];
            at++;
            if (bench.isHere(d)) touch(bench, d);
            else {
              misses++;
              bench.gpu.zone.release(makeRoom(bench.gpu, counter, UNIT));
              bench.share(d, GPU);
            }
          }
          expect(misses).toBe(fewestMisses(sequence, frames));
          bench.check();
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('making room', () => {
  it('drops no more than it needs, reports each copy before its eviction, and counts it', () => {
    const bench = new Bench(6);
    const data = [1, 2, 3, 4, 5, 6].map(() => bench.clean(1));
    const told: [number, number, boolean][] = [];
    const counter = nobody();
    counter.observer = {
      evicted: (s, d) => void told.push([s, d, bench.isHere(d)]),
      spilled: () => expect.unreachable(),
    };
    // The zone puts short blocks at its end, the first one last.
    expect(makeRoom(bench.gpu, counter, 2 * UNIT)).toBe(4 * UNIT);
    expect(told).toEqual([
      [GPU, data[0], true],
      [GPU, data[1], true],
    ]);
    expect([counter.evictions, bench.gpu.evictions]).toEqual([2, 2]);
    expect(data.map((d) => bench.isHere(d))).toEqual([false, false, true, true, true, true]);
  });

  it('leaves copies that are pinned, offered to other ranks, or the only ones', () => {
    const kinds = fc.array(
      fc.constantFrom('clean' as const, 'dirty' as const, 'pinned' as const, 'offered' as const),
      { minLength: 1, maxLength: 8 },
    );
    fc.assert(
      fc.property(kinds, fc.integer({ min: 1, max: 9 }), (what, units) => {
        const bench = new Bench(8);
        const data = what.map((kind) => {
          const d = kind === 'dirty' ? bench.dirty(1) : bench.clean(1);
          if (kind === 'pinned' || kind === 'offered') bench.gpu.pin(d);
          if (kind === 'offered') bench.gpu.offered.add(d);
          return d;
        });
        const counter = nobody();
        const offset = makeRoom(bench.gpu, counter, units * UNIT);
        what.forEach((kind, i) => {
          if (kind !== 'clean') expect(bench.isHere(data[i]), kind).toBe(true);
        });
        const dropped = data.filter((d) => !bench.isHere(d)).length;
        expect(counter.evictions).toBe(dropped);
        // It gives up only when there is nothing left to drop.
        if (offset < 0) expect(dropped).toBe(what.filter((kind) => kind === 'clean').length);
        else bench.gpu.zone.release(offset);
        bench.check();
      }),
    );
  });
});

describe('writing back', () => {
  it('moves the dirty copy with the furthest next use to the host, and makes it clean', () => {
    const bench = new Bench(4);
    const [soon, late, mid] = [bench.dirty(1), bench.dirty(1), bench.dirty(1)];
    const counter = counting(
      recorded(
        new Map([
          [soon, 1],
          [late, 9],
          [mid, 4],
        ]),
      ),
    );
    const told: number[] = [];
    counter.observer = {
      evicted: () => expect.unreachable(),
      spilled: (s, d) => void told.push(s, d),
    };
    expect(writeBack(bench, counter)).toBe(UNIT);
    expect(told).toEqual([GPU, late]);
    expect(bench.backend.commands.map(({ kind }) => kind)).toEqual(['copy']);
    // Nobody may drop it before the value is on the host.
    expect(makeRoom(bench.gpu, counter, 2 * UNIT)).toBe(-1);
    bench.finishTransfers();
    expect(bench.state(late, HOST)).toBe(CopyState.owned);
    expect(bench.gpu.lru.listOf(late)).toBe(LruList.clean);
    expect(bench.gpu.lru.listOf(soon)).toBe(LruList.dirty);
    expect([counter.evictions, bench.transfers.spills]).toEqual([1, 1]);
  });

  it('hands the value over to another copy if there is one, without moving it', () => {
    const bench = new Bench(4, 10, { gpus: 2 });
    const d = bench.dirty(1);
    bench.share(d, OTHER);
    expect(writeBack(bench)).toBe(UNIT);
    expect(bench.dir.owner(d)).toBe(OTHER);
    expect(bench.gpu.lru.listOf(d)).toBe(LruList.clean);
    expect(bench.backend.commands).toEqual([]);
    bench.check();
  });

  it('hands over to the host before another device', () => {
    const bench = new Bench(4, 10, { gpus: 2 });
    const d = bench.onHost(1);
    bench.share(d, GPU);
    bench.share(d, OTHER);
    bench.transfers.handOver(d, GPU);
    expect(writeBack(bench)).toBe(UNIT);
    expect(bench.dir.owner(d)).toBe(HOST);
  });

  it('hands over in one direction between two devices that are both short of memory', () => {
    for (const from of [GPU, OTHER]) {
      const bench = new Bench(4, 10, { gpus: 2 });
      const to = from === GPU ? OTHER : GPU;
      const d = bench.dirty(1, from);
      bench.share(d, to);
      for (const s of [GPU, OTHER]) bench.spaces[s].waiters.push(taskId(1));
      expect(writeBack(bench, nobody(), bench.spaces[from])).toBe(UNIT);
      expect(bench.transfers.live, 'the other way the host takes it').toBe(from === GPU ? 1 : 0);
    }
  });

  it('drops clean copies of the host for it, and reports a host without room', () => {
    const bench = new Bench(4, 2);
    const rest = bench.clean(1);
    bench.transfers.handOver(rest, GPU);
    const busy = bench.onHost(1);
    bench.spaces[HOST].pin(busy);
    const first = bench.dirty(1);
    touch(bench, rest);
    expect(writeBack(bench)).toBe(UNIT);
    expect(bench.isHere(rest, HOST)).toBe(false);
    bench.finishTransfers();
    bench.spaces[HOST].pin(first);
    expect(writeBack(bench)).toBe(-1);
    expect(bench.transfers.live).toBe(0);
  });

  it('starts nothing for a value that another device is sending to the host', () => {
    const bench = new Bench(4, 10, { gpus: 2 });
    const d = bench.dirty(1);
    bench.share(d, OTHER);
    // The other device is short of memory too, so it does not take the value over.
    bench.spaces[OTHER].waiters.push(taskId(1));
    bench.dir.block[d * bench.dir.spaces] = bench.spaces[HOST].zone.allocate(UNIT);
    bench.transfers.issue(d, HOST, OTHER, TransferReason.readBack, NO_TASK, 0);
    expect(writeBack(bench)).toBe(0);
    bench.finishTransfers();
    expect(bench.gpu.lru.listOf(d)).toBe(LruList.clean);
  });

  it('starts nothing without a dirty copy, without room in the queue, or twice for one copy', () => {
    const bench = new Bench(8);
    bench.clean(1);
    expect(writeBack(bench)).toBe(0);
    const pinned = bench.dirty(1);
    bench.gpu.pin(pinned);
    expect(writeBack(bench)).toBe(0);
    bench.dirty(1);
    expect(writeBack(bench)).toBe(UNIT);
    expect(writeBack(bench), 'it is on its way').toBe(0);
    bench.finishTransfers();
    bench.dirty(1);
    bench.backend.issued.fill(bench.backend.ringRecords);
    expect(writeBack(bench), 'the queue is full').toBe(0);
    expect(bench.transfers.live).toBe(0);
  });
});
