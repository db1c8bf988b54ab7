// The entries of the network benchmark, from results made by hand.
import { describe, expect, test } from 'vitest';
import { metg } from '../../bench/metg.js';
import { pairEntries, rated } from '../../bench/network.js';
import type { Compared, PairResult } from '../../bench/network-pair.js';

const compared = (ratio: number): Compared => ({ value: 1, ratio });
const pair = (oneWay: number, inserted: number, share: number): PairResult => ({
  library: 'MPI',
  small: {
    oneWay: compared(oneWay),
    behindBody: compared(2 * oneWay),
    withInsertion: compared(inserted),
    again: compared(inserted / 5),
    unrecognised: compared(inserted * 2),
    played: compared(oneWay / 2),
  },
  large: { direct: compared(share), ipc: compared(1), staged: compared(share / 2) },
});

describe('ratios to plain MPI', () => {
  test('are the medians of the ratios of each repeat', () => {
    const byHand = [0.7, 0.9, 0.8].map((share) => ({ whole: 2e9, staged: share * 2e9 }));
    const entries = pairEntries([pair(10, 20, 0.9), pair(8, 25, 0.8), pair(9, 30, 0.5)], byHand);
    const params = { library: 'MPI', ranks: 2, repeats: 3 };
    expect(entries).toEqual([
      { name: 'network/dependency/ratio', value: 9, unit: 'ratio', params },
      { name: 'network/dependency-behind-body/ratio', value: 18, unit: 'ratio', params },
      { name: 'network/dependency-inserted/ratio', value: 25, unit: 'ratio', params },
      { name: 'network/dependency-again/ratio', value: 5, unit: 'ratio', params },
      { name: 'network/dependency-unrecognised/ratio', value: 50, unit: 'ratio', params },
      { name: 'network/dependency-played/ratio', value: 4.5, unit: 'ratio', params },
      { name: 'network/direct/ratio', value: 0.8, unit: 'ratio', params },
      { name: 'network/staged/ratio', value: 0.4, unit: 'ratio', params },
      { name: 'network/staged-by-hand/ratio', value: 0.8, unit: 'ratio', params },
    ]);
  });
});

describe('the METG of a stencil over ranks', () => {
  const points = [10, 100, 1000].map((iterations) => ({ iterations, steps: 5 }));
  /** Eight tasks a step on two cores, of 1 us per iteration and so many microseconds of overhead. */
  const seconds = (overhead: number): number[] =>
    points.map(({ iterations, steps }) => ((iterations + overhead) * 1e-6 * steps * 8) / 2);

  test('counts the medians of each point, against the best rate of all programs', () => {
    const times = {
      headrace: [seconds(1e6), seconds(100), seconds(0)],
      unrecognised: [seconds(20), seconds(0), seconds(50)],
      played: [seconds(0), seconds(10), seconds(5)],
      byHand: [seconds(0), seconds(0), seconds(1e6)],
    };
    const { headrace, unrecognised, played, byHand } = rated(points, times, 8, 2);
    for (const [i, { iterations }] of points.entries()) {
      expect(byHand[i]).toEqual({
        granularity: expect.closeTo(iterations * 1e-6, 12),
        efficiency: expect.closeTo(1, 9),
      });
      expect(headrace[i]).toEqual({
        granularity: expect.closeTo((iterations + 100) * 1e-6, 12),
        efficiency: expect.closeTo(iterations / (iterations + 100), 9),
      });
    }
    // Half of the time is overhead when a task lasts 200 us.
    expect(metg(headrace)).toBeCloseTo(200e-6, 9);
    expect(metg(byHand)).toBeCloseTo(10e-6, 9);
    // And 40 us with an overhead of 20.
    expect(metg(unrecognised)).toBeCloseTo(40e-6, 4);
    expect(played[0].granularity).toBeCloseTo(15e-6, 12);
  });
});
