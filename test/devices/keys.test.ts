// Keys: every transfer has a name of its own; a tree reaches every destination once.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyOf, sequenceOfCall } from '../../devices/network/keys.js';
import { tree } from '../../devices/network/tree.js';

const MOST = 2 ** 31 - 1;

describe('the key of a transfer', () => {
  const name = fc.record({
    gid: fc.integer({ min: 1, max: MOST }),
    sequence: fc.nat({ max: 20_000_000 }),
  });

  it('is exact, and distinguishes data and up to four million transfers in a row', () => {
    fc.assert(
      fc.property(name, name, fc.constantFrom(1, 77, 4096, 2 ** 22 - 1), (a, b, later) => {
        const key = keyOf(a.gid, a.sequence);
        expect(Number.isSafeInteger(key)).toBe(true);
        expect(keyOf(a.gid, a.sequence + later)).not.toBe(key);
        if (a.gid !== b.gid) expect(keyOf(b.gid, b.sequence)).not.toBe(key);
      }),
    );
  });

  it('of a call is exact, and distinguishes calls, and calls from other transfers', () => {
    const position = fc.nat({ max: 2 ** 33 });
    fc.assert(
      fc.property(name, name, position, position, (a, b, first, second) => {
        const key = keyOf(a.gid, sequenceOfCall(first));
        expect(Number.isSafeInteger(key)).toBe(true);
        expect(keyOf(a.gid, sequenceOfCall(first + 1))).not.toBe(key);
        if (first !== second) expect(keyOf(b.gid, sequenceOfCall(second))).not.toBe(key);
        expect(keyOf(b.gid, b.sequence)).not.toBe(key);
      }),
    );
  });
});

describe('a tree', () => {
  /** Sends to every destination, in steps: who has the datum serves one branch per step. */
  function spread(
    destinations: readonly number[],
    from: number,
  ): { reached: number[]; steps: number; most: number } {
    const branches = tree(destinations, from);
    const reached: number[] = [];
    let steps = 0;
    let most = branches.length;
    branches.forEach((branch, i) => {
      reached.push(branch[0], branch[1]);
      const below = spread(branch.slice(2), from);
      reached.push(...below.reached);
      steps = Math.max(steps, i + 1 + below.steps);
      most = Math.max(most, below.most);
    });
    return { reached, steps, most };
  }

  it.each([1, 2, 3, 7, 8, 31, 64, 100, 1023])(
    'reaches %i destinations once each, in about log2 steps, and no rank sends more often',
    (count) => {
      const destinations = Array.from({ length: count }, (_, i) => [i + 1, i + 100]).flat();
      const { reached, steps, most } = spread(destinations, 2);
      const ranks = reached.filter((_, i) => i % 2 === 0).sort((a, b) => a - b);
      expect(ranks).toEqual(Array.from({ length: count }, (_, i) => i + 1));
      reached.forEach((value, i) => {
        if (i % 2 === 1) expect(value).toBe(reached[i - 1] + 99);
      });
      const bound = Math.floor(Math.log2(count)) + 1;
      expect(steps).toBeLessThanOrEqual(bound);
      expect(most).toBeLessThanOrEqual(bound);
    },
  );

  it('is not used for few destinations: each is served from here', () => {
    expect(tree([1, 10, 2, 20, 3, 30], 4)).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ]);
    expect(tree([1, 10, 2, 20, 3, 30, 4, 40], 4).length).toBeLessThan(4);
    expect(tree([], 0)).toEqual([]);
  });
});
