// The checks of a rank when everything has ended: the ends of its runs and their reasons, the values that its program
// requested, the contents of its copies, and that no byte, no pin and no row is left.
//
// The reference is the program executed one task after the other (devices/simulated/memory/oracle.ts), given the tasks
// that ran. A run ends well if and only if all of its tasks did. A failure names a task that failed, or one that reads a
// datum without a value. A datum has a value if and only if its latest writer in the order of the program ran well.
import { FIRST_DATUM, HOST } from '../../handles.js';
import { CopyState } from '../../memory/coherency.js';
import { NO_BLOCK } from '../../memory/directory.js';
import type { SimulatedCase } from '../cases/case.js';
import type { RankPlayer } from '../cases/rank-player.js';
import type { RunPlayer } from '../cases/run-player.js';
import { GARBAGE } from '../memory/oracle.js';
import { expectedOutcomes, expectedReadErrors } from './outcomes.js';

/** Every run ended as its tasks did. */
export function checkRuns(rank: RankPlayer, c: SimulatedCase): void {
  const allowed = expectedOutcomes(c);
  rank.runs.forEach((run, r) => {
    const { outcome = 'open' } = run;
    const name = rank.runs.length > 1 ? `run ${r}` : 'the run';
    if (!allowed.includes(outcome)) {
      rank.problems.push(`${name} ended with ${outcome || 'success'}: ${run.error?.message ?? ''}`);
      return;
    }
    if (rank.memory.tolerant) return;
    const lame = run.tasks.find((key) => rank.oracle.ranWell[key] !== true);
    if (outcome === '' && lame !== undefined)
      rank.problems.push(`${name} ended well, but not its ${rank.oracle.describeTask(lame)}`);
    else if (outcome !== '' && !isExplained(rank, run))
      rank.problems.push(
        `nothing explains that ${name} ended with ${outcome}: ${run.error?.message ?? ''}`,
      );
  });
}

/** Whether the error of a run belongs to a failure in it. */
function isExplained(rank: RankPlayer, run: RunPlayer): boolean {
  const { oracle } = rank;
  switch (run.outcome) {
    case 'ERR_ABORTED':
      return run.wasCancelled;
    case 'ERR_TASK_FAILED':
      return oracle.failedItself[taskOf(rank, run)] === true;
    case 'ERR_DATUM_POISONED':
      // Between ranks the reading task belongs to another rank, which may have refused it. Whether the owner may have
      // poisoned the datum is seen when the run is settled (settlement.ts).
      return (
        rank.memory.ranks > 1 ||
        oracle
          .flowsOf(taskOf(rank, run))
          .some(({ mode, expected }) => mode !== 2 && !oracle.isGood(expected))
      );
    default:
      return true;
  }
}

/** The task that an error names, or -1. */
function taskOf(rank: RankPlayer, run: RunPlayer): number {
  const task = String(run.error?.details?.task ?? '');
  const id = /#(-?\d+)$/.exec(task);
  return id === null ? -1 : rank.oracle.keyOf(rank.rank, Number(id[1]));
}

/** Reads without a value must have no value to get. The values of the others were checked on arrival. */
export function checkReads(rank: RankPlayer, c: SimulatedCase): void {
  const { oracle } = rank;
  const hasFailed = rank.runs.some((run) => run.outcome !== '');
  const allowed = expectedReadErrors(c, hasFailed);
  for (const { datum, expected, error, isTolerated = false } of rank.asked) {
    if (error === undefined) continue;
    const isFalse = error.code === 'ERR_DATUM_POISONED' && oracle.isGood(expected) && !isTolerated;
    if (isFalse || !allowed.includes(error.code)) {
      const wanted = oracle.isGood(expected) ? oracle.describe(expected) : 'no value';
      rank.problems.push(`read() of d${datum} must give ${wanted}: ${error.message}`);
    }
  }
}

/** Every valid copy holds the output of the last writer that ran; a datum without such a copy is poisoned. */
export function checkContents(rank: RankPlayer, isGood: boolean): void {
  const { engine, oracle, memory } = rank;
  const dir = engine.directory;
  for (const [i, datum] of rank.data.entries()) {
    if (datum === undefined) continue;
    const d = datum.row;
    const latest = oracle.latest(i);
    const isExact = memory.ranks === 1 && !memory.tolerant && latest !== GARBAGE;
    const isPoisoned = dir.poison[d] !== 0;
    if (isPoisoned) {
      if (isGood || (isExact && oracle.isGood(latest)))
        rank.problems.push(`${datum.name} is poisoned, but ${oracle.describe(latest)} is there`);
      continue;
    }
    if (isExact && !oracle.isGood(latest)) {
      rank.problems.push(
        `${datum.name} counts as good, but ${oracle.describe(latest)} is not there`,
      );
      continue;
    }
    checkCopies(rank, i, d, datum.name, isGood, isExact ? latest : oracle.final(rank.rank, d));
  }
}

function checkCopies(
  { engine, oracle, memory, rank, problems }: RankPlayer,
  i: number,
  d: number,
  name: string,
  isGood: boolean,
  wanted: number,
): void {
  const dir = engine.directory;
  for (let s = HOST; s < dir.spaces; s++) {
    const c = d * dir.spaces + s;
    if (dir.state[c] !== CopyState.shared && dir.state[c] !== CopyState.owned) continue;
    if (dir.block[c] === NO_BLOCK) continue;
    const found = memory.contents(rank, s, dir.block[c], dir.bytes[d]);
    // When a run fails on several ranks, receives are dropped and each datum has the value of its owner again.
    const isRight = found === wanted || (!isGood && memory.ranks > 1 && oracle.isOf(i, found));
    if (!isRight || !oracle.isGood(found)) {
      problems.push(
        `${name} counts as valid in space ${s} and should hold ${oracle.describe(wanted)}, but holds ${oracle.describe(found)}`,
      );
    }
  }
}

/** All data are closed: no memory of them is left. */
export function checkLeft({ engine, runtime, problems }: RankPlayer): void {
  for (const space of engine.spaces) {
    if (space.zone.used !== 0)
      problems.push(`space ${space.index}: ${space.zone.used} bytes were not given back`);
    if (space.pinnedCopies !== 0)
      problems.push(`space ${space.index}: ${space.pinnedCopies} copies stay pinned`);
    if (space.waiters.length !== 0)
      problems.push(`space ${space.index}: a task still stands in line`);
  }
  const { live } = engine.directory;
  for (let d = FIRST_DATUM; d < engine.directory.length; d++)
    if (live[d] !== 0) problems.push(`the row of datum ${d} was not given back`);
  runtime.peers?.credits.inFlight.forEach((bytes, s) => {
    const left = bytes + engine.spaces[s].offered.bytes;
    if (left !== 0) problems.push(`space ${s}: ${left} bytes of credits were not given back`);
  });
}
