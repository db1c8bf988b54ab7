// Copies that are offered to other ranks, compared with a plain list of offers and an array of units of memory.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HOST } from '../../devices/handles.js';
import { datumId } from '../support/handles.js';
import { Bench, GPU, UNIT } from '../support/stage-bench.js';

const UNITS = 12;

/** Lengths of the stretches of units that are not `taken`. */
function largestFree(taken: readonly boolean[]): number {
  let largest = 0;
  let length = 0;
  for (const unit of taken) {
    length = unit ? 0 : length + 1;
    largest = Math.max(largest, length);
  }
  return largest;
}

const step = fc.record({
  what: fc.constantFrom(
    'offer' as const,
    'offer' as const,
    'end' as const,
    'pin' as const,
    'unpin' as const,
    'keep elsewhere' as const,
  ),
  which: fc.nat({ max: 3 }),
});

describe('offered copies', () => {
  it('are counted like a list of offers', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 4, maxLength: 4 }),
        fc.array(step, { maxLength: 30, size: 'max' }),
        fc.nat({ max: 4 }),
        (sizes, steps, gap) => {
          const bench = new Bench(UNITS + gap);
          const data = sizes.map((units) => bench.dirty(units));
          const { offered } = bench.gpu;
          const offers = data.map(() => 0);
          const others = data.map(() => 0);
          const isShared = data.map(() => false);
          for (const { what, which } of steps) {
            const d = data[which];
            if (what === 'offer') {
              // An offer takes a pin of its own.
              bench.gpu.pin(d);
              offered.add(d);
              offers[which]++;
            } else if (what === 'end' && offers[which] > 0) {
              offered.remove(d);
              bench.gpu.unpin(d);
              offers[which]--;
            } else if (what === 'pin') {
              bench.gpu.pin(d);
              others[which]++;
            } else if (what === 'unpin' && others[which] > 0) {
              bench.gpu.unpin(d);
              others[which]--;
            } else if (what === 'keep elsewhere' && !isShared[which]) {
              bench.share(d, 0);
              bench.transfers.handOver(d, HOST);
              isShared[which] = true;
            }
          }
          const only = data.map((_, i) => offers[i] > 0 && others[i] === 0);
          expect(data.map((d) => offered.holds(d))).toEqual(only);
          expect(offered.pinned).toBe(only.filter(Boolean).length);
          expect(offered.onlyCopies).toBe(only.filter((held, i) => held && !isShared[i]).length);
          expect(offered.bytes).toBe(sizes.reduce((sum, n, i) => sum + n * offers[i], 0) * UNIT);
          for (const also of [-1, ...data]) {
            const taken = new Array<boolean>(UNITS + gap).fill(false);
            data.forEach((d, i) => {
              const from = bench.dir.block[d * bench.dir.spaces + GPU] / UNIT;
              if (offers[i] > 0 || d === also) taken.fill(true, from, from + sizes[i]);
            });
            const [capacity, free] = [(UNITS + gap) * UNIT, largestFree(taken) * UNIT];
            expect(offered.largestStretch(capacity, datumId(also))).toBe(free);
            for (let least = 0; least <= capacity; least += UNIT / 2)
              expect(offered.hasStretch(least, capacity, datumId(also))).toBe(least <= free);
          }
          bench.check();
        },
      ),
      { numRuns: 300 },
    );
  });

  it('take whole units of memory', () => {
    const bench = new Bench(4);
    const d = bench.dir.add(10, { name: 'small' });
    bench.share(d, GPU);
    bench.gpu.offered.add(d);
    expect(bench.gpu.offered.bytes).toBe(UNIT);
    expect(bench.gpu.offered.largestStretch(4 * UNIT)).toBe(3 * UNIT);
    bench.gpu.offered.remove(d);
    expect(bench.gpu.offered.bytes).toBe(0);
  });

  it('without memory here block no task', () => {
    const bench = new Bench(4);
    bench.gpu.offered.add(bench.datum(2));
    expect(bench.gpu.offered.largestStretch(4 * UNIT)).toBe(4 * UNIT);
    expect(bench.gpu.offered.pinned).toBe(0);
  });
});
