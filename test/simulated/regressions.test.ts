// Defects that simulation found in the engine, each by the random case that showed it.
import { expect, test } from 'vitest';
import { randomCase } from '../../cli/simulation/case.js';
import { play } from '../../cli/simulation/play.js';

/** A block of seeds in which the engine goes wrong without the fix, and whether the cases have faults. */
const found: readonly (readonly [string, number, number, boolean])[] = [
  ['compaction while freed blocks are being poisoned', 150, 260, false],
  ['results computed behind a failed copy are not readable', 1000, 1120, true],
  ['a copy made from a copy that failed counts as failed', 10_020, 10_040, true],
  ['failures of copies are handled before those of kernels', 10_080, 10_100, true],
  ['a body that was queued and then dropped poisons its output', 10_760, 10_780, true],
  ['a copy by way of a full host stands in line once', 13_810, 13_820, true],
  ['who waits for host memory is told when none will come back', 13_290, 13_300, true],
  ['a copy on its way to the host is not written back again', 2740, 2760, true],
];

test.each(found)('%s', async (_, first, last, faults) => {
  for (let seed = first; seed <= last; seed++) {
    expect(
      (await play(randomCase(seed, { faults, ranks: 1, synchronous: true }))).problems,
    ).toEqual([]);
  }
});
