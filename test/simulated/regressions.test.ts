// Defects that simulation found in the engine, each by the random case that showed it.
import { expect, test } from 'vitest';
import { randomCase } from '../../cli/simulation/case.js';
import { play } from '../../cli/simulation/play.js';

/** First and last seed of a block in which the defect showed many times, with the kind of case. */
const found: readonly (readonly [string, number, number, boolean])[] = [
  ['compaction while freed blocks are being poisoned', 150, 260, false],
  ['results computed behind a failed copy are not readable', 1000, 1120, true],
  ['a copy made from a copy that failed counts as failed', 1180, 1300, true],
  ['a body that was queued and then dropped poisons its output', 1960, 2000, true],
  ['a copy by way of a full host stands in line once', 1030, 1040, true],
  ['who waits for host memory is told when none will come back', 4600, 4700, true],
  ['a copy on its way to the host is not written back again', 2740, 2760, true],
];

test.each(found)('%s', async (_, first, last, faults) => {
  for (let seed = first; seed <= last; seed++) {
    expect((await play(randomCase(seed, { faults }))).problems).toEqual([]);
  }
});
