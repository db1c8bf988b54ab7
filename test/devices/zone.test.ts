// The zone allocator, compared with a naive model, and its limits.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALIGNMENT, roundedBytes, Zone } from '../../devices/memory/zone.js';

/** Marks units as taken in an array: what the zone does, without any cleverness. */
class Naive {
  readonly taken: boolean[];
  readonly blocks = new Map<number, number>();

  constructor(units: number) {
    this.taken = new Array<boolean>(units).fill(false);
  }

  /** Lengths of the free stretches. */
  get stretches(): number[] {
    const list: number[] = [];
    let length = 0;
    for (const taken of [...this.taken, true]) {
      if (!taken) length++;
      else if (length > 0) {
        list.push(length);
        length = 0;
      }
    }
    return list;
  }

  take(offset: number, units: number): void {
    const first = offset / ALIGNMENT;
    for (let u = first; u < first + units; u++) {
      if (u < 0 || u >= this.taken.length || this.taken[u])
        throw new Error(`unit ${u} is taken or outside`);
      this.taken[u] = true;
    }
    this.blocks.set(offset, units);
  }

  give(offset: number): void {
    const units = this.blocks.get(offset) as number;
    this.taken.fill(false, offset / ALIGNMENT, offset / ALIGNMENT + units);
    this.blocks.delete(offset);
  }
}

describe('zone', () => {
  it('does the same as an array of marked units, for any order of calls', () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ take: fc.integer({ min: 1, max: 40_000 }) }),
        // These are not short.
        fc.record({ take: fc.integer({ min: 60_000, max: 100_000 }) }),
        fc.record({ give: fc.nat({ max: 1000 }) }),
      ),
      { maxLength: 200, size: 'max' },
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 600 }),
        fc.nat({ max: 511 }),
        steps,
        fc.boolean(),
        (units, more, program, shortAtEnd) => {
          const zone = new Zone(units * ALIGNMENT + more, shortAtEnd);
          const naive = new Naive(units);
          let highest = 0;
          expect(zone.capacity).toBe(units * ALIGNMENT);
          for (const step of program) {
            if ('take' in step) {
              const wanted = Math.ceil(step.take / ALIGNMENT);
              const offset = zone.allocate(step.take);
              // It fails exactly when no free stretch is long enough, never because of rounding to size classes.
              expect(offset >= 0).toBe(naive.stretches.some((length) => length >= wanted));
              if (offset >= 0) naive.take(offset, wanted);
            } else if (naive.blocks.size > 0) {
              const offset = [...naive.blocks.keys()][step.give % naive.blocks.size];
              zone.release(offset);
              naive.give(offset);
            }
            const used = naive.taken.filter(Boolean).length * ALIGNMENT;
            highest = Math.max(highest, used);
            expect(zone.used).toBe(used);
            expect(zone.available).toBe(zone.capacity - used);
            expect(zone.highWater).toBe(highest);
            expect(zone.largestFree()).toBe(Math.max(0, ...naive.stretches) * ALIGNMENT);
            zone.validate();
          }
          for (const offset of [...naive.blocks.keys()]) zone.release(offset);
          expect(zone.used).toBe(0);
          expect(zone.largestFree()).toBe(zone.capacity);
          zone.validate();
        },
      ),
      { numRuns: 150 },
    );
  });

  it('rounds to whole units', () => {
    expect([1, 511, 512, 513, 1024].map(roundedBytes)).toEqual([512, 512, 512, 1024, 1024]);
    expect(roundedBytes(0)).toBe(512);
    expect(new Zone(1023).capacity).toBe(512);
  });

  it('holds exactly as many tiles as fit, whatever their size', () => {
    for (const tile of [512, 1536, 10_240, 524_288]) {
      for (const count of [1, 3, 5, 21]) {
        const zone = new Zone(tile * count);
        const offsets = Array.from({ length: count }, () => zone.allocate(tile));
        expect(offsets.every((offset) => offset >= 0)).toBe(true);
        expect(zone.allocate(1)).toBe(-1);
        for (const offset of offsets) zone.release(offset);
        expect(zone.allocate(tile * count)).toBe(0);
      }
    }
  });

  it('lets tiles of whole pages begin with a page, whatever short blocks are allocated in between', () => {
    const page = 4096;
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ pages: fc.nat({ max: 40 }), short: fc.integer({ min: 1, max: 65_024 }) }),
          { minLength: 1, maxLength: 30 },
        ),
        (steps) => {
          const zone = new Zone(page * 2000);
          for (const { pages, short } of steps) {
            const isTile = pages >= 16;
            const at = zone.allocate(isTile ? pages * page : short);
            expect(at).toBeGreaterThanOrEqual(0);
            if (isTile) expect(at % page).toBe(0);
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  it('places short blocks of host memory from its begin on, too', () => {
    const zone = new Zone(2 ** 20, false);
    expect([512, 65_536, 512].map((bytes) => zone.allocate(bytes))).toEqual([0, 512, 66_048]);
  });

  it('is empty when it is smaller than a unit', () => {
    const zone = new Zone(100);
    expect(zone.capacity).toBe(0);
    expect(zone.allocate(1)).toBe(-1);
    zone.validate();
  });

  it('reaches offsets beyond 2^31 bytes', () => {
    const zone = new Zone(2 ** 39);
    const first = zone.allocate(2 ** 38);
    const second = zone.allocate(2 ** 37);
    expect([first, second].sort((a, b) => a - b)).toEqual([0, 2 ** 38]);
    zone.release(first);
    zone.release(second);
    zone.validate();
    expect(zone.largestFree()).toBe(2 ** 39);
  });

  it('refuses to free a block that it did not allocate', () => {
    const zone = new Zone(4096);
    const offset = zone.allocate(100);
    expect(() => zone.release(offset + 512)).toThrow('no block');
    zone.release(offset);
    expect(() => zone.release(offset)).toThrow('no block');
  });
});

describe('a zone of more than 2^31 units', () => {
  it.each([40, 41, 42, 46, 50, 53])('of 2^%i bytes hands out every byte once', (bits) => {
    const capacity = 2 ** bits;
    const zone = new Zone(capacity);
    expect([zone.capacity, zone.available, zone.largestFree()]).toEqual([
      capacity,
      capacity,
      capacity,
    ]);
    const half = zone.allocate(capacity / 2);
    const quarter = zone.allocate(capacity / 4);
    const rest = zone.allocate(capacity / 4 - ALIGNMENT);
    const last = zone.allocate(1);
    expect([half, quarter, rest, last]).toEqual([
      0,
      capacity / 2,
      (capacity / 4) * 3,
      capacity - ALIGNMENT,
    ]);
    expect([zone.used, zone.available, zone.allocate(1)]).toEqual([capacity, 0, -1]);
    zone.validate();
    zone.release(quarter);
    zone.release(half);
    expect(zone.largestFree()).toBe((capacity / 4) * 3);
    // A size that its own bin holds only in part.
    expect(zone.allocate((capacity / 4) * 3)).toBe(0);
    zone.release(0);
    zone.release(last);
    zone.release(rest);
    zone.validate();
    expect(zone.largestFree()).toBe(capacity);
  });

  it('never allocates overlapping blocks, and frees all of them, for all sizes', () => {
    const size = fc
      .record({
        bits: fc.integer({ min: 0, max: 52 }),
        more: fc.double({ min: 1, max: 2, noNaN: true }),
      })
      .map(({ bits, more }) => Math.floor(2 ** bits * more));
    fc.assert(
      fc.property(
        fc.integer({ min: 41, max: 53 }),
        fc.array(fc.record({ size, give: fc.boolean() }), { maxLength: 100, size: 'max' }),
        (bits, steps) => {
          const zone = new Zone(2 ** bits);
          const blocks: { readonly at: number; readonly bytes: number }[] = [];
          for (const step of steps) {
            if (step.give && blocks.length > 0) zone.release(blocks.shift()?.at as number);
            const largest = zone.largestFree();
            const bytes = roundedBytes(step.size);
            const at = zone.allocate(step.size);
            expect(at >= 0).toBe(bytes <= largest);
            if (at < 0) continue;
            expect(at + bytes).toBeLessThanOrEqual(zone.capacity);
            for (const block of blocks)
              expect(at >= block.at + block.bytes || block.at >= at + bytes).toBe(true);
            blocks.push({ at, bytes });
            zone.validate();
          }
          for (const { at } of blocks) zone.release(at);
          zone.validate();
          expect(zone.largestFree()).toBe(zone.capacity);
        },
      ),
    );
  });
});
