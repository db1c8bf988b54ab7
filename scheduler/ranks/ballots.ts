// Rank 0's side of runs across ranks: it collects how a run ended on each rank, and compares the inserted graphs.
// Invariant: the last vote closes a ballot, once; a graph is refused at most once. A run whose graph was refused has failed, whatever
// the votes say: ranks may have voted before they heard of it. Each rank reports its graph before it votes, so the last vote comes
// after the refusal.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { FailedRuns } from './failed-runs.js';
import type { CallCount, RankLinks } from './links.js';

/** One rank's program, as the rank reported it to rank 0. */
export interface Told {
  readonly rank: number;
  readonly tasks: number;
  readonly digest: number;
  readonly lastClass: string;
  /** What the rank does in place of its last task, such as `playing plan 'step' 3 times`. */
  readonly does?: string | undefined;
  /** Pairs (rank, number of transfers), for the ranks with which there are any. */
  readonly sentTo: readonly (readonly [number, number])[];
  readonly expectedFrom: readonly (readonly [number, number])[];
  /** Calls of the rank before the run. */
  readonly before: CallCount;
  /** Era of the rank when the run began. */
  readonly era: number;
}

/** The reason for the failure of a run. */
export interface Cause {
  readonly code: string;
  readonly message: string;
}

/** Characters of an error's message that are sent to other ranks. In JSON each takes at most six bytes. */
const MOST_MESSAGE = 7000;

/** An error in the form that is sent to other ranks: short enough for a record (devices/network/wire.ts). */
export function causeOf(error: HeadraceError | undefined): Cause {
  const { code, message } = error ?? { code: '', message: '' };
  return {
    code,
    message: message.length <= MOST_MESSAGE ? message : `${message.slice(0, MOST_MESSAGE)} ...`,
  };
}

/** How a run ended on a rank: without a failure, or because of a failure that began on rank `source`. */
export interface Verdict {
  readonly source: number;
  readonly cause?: Cause | undefined;
}

/** A rank's vote: how the run ended there, and its calls before the run and in the program function. */
export interface Vote extends Verdict {
  readonly before: CallCount;
  readonly inside: CallCount;
  /** Era of the rank when the run began. */
  readonly era: number;
}

/** The parts on which votes have effects (agreement.ts). */
export interface BallotRuns {
  /** Calls of this rank before run `number`; undefined when this rank has not begun it. */
  before(number: number): CallCount | undefined;
  /** The ranks' graphs of run `number` differ. */
  refused(number: number, error: HeadraceError): void;
}

/** The votes and graphs of one run on rank 0. */
interface Ballot {
  readonly ends: Map<number, Vote>;
  readonly sealed: Map<number, Told>;
  /** First digest that was reported for a number of tasks. */
  readonly checks: Map<number, Told & { count: number }>;
  /** Era in which the run began on the first rank that reported its graph. */
  era: number | undefined;
  refused: boolean;
  /** Why the graph was refused; undefined also when the judge says it (calls.ts). */
  refusal: HeadraceError | undefined;
}

export class RankBallots {
  private readonly ranks: RankLinks;
  private readonly runs: BallotRuns;
  private readonly failures: Pick<FailedRuns, 'apart'>;
  private readonly ballots: Map<number, Ballot> = new Map();

  constructor(ranks: RankLinks, runs: BallotRuns, failures: Pick<FailedRuns, 'apart'>) {
    this.ranks = ranks;
    this.runs = runs;
    this.failures = failures;
  }

  private ballot(number: number): Ballot {
    let ballot = this.ballots.get(number);
    if (ballot === undefined) {
      ballot = {
        ends: new Map(),
        sealed: new Map(),
        checks: new Map(),
        era: undefined,
        refused: false,
        refusal: undefined,
      };
      this.ballots.set(number, ballot);
    }
    return ballot;
  }

  /** A rank's vote. The last vote brings the verdict, unless the ranks' calls differ: then the judge decides. */
  vote(number: number, rank: number, vote: Vote): Verdict | undefined {
    const ballot = this.ballot(number);
    ballot.ends.set(rank, vote);
    if (ballot.ends.size < this.ranks.size) return undefined;
    this.ballots.delete(number);
    const { refusal } = ballot;
    const failed =
      [...ballot.ends.values()].find((each) => each.cause !== undefined) ??
      (refusal && { source: 0, cause: causeOf(refusal) });
    if (guards.callOrder && !this.madeTheSame(number, ballot, failed !== undefined))
      return undefined;
    if (failed === undefined && isApart([...ballot.ends.values()])) {
      const { code, message } = this.failures.apart();
      return { source: 0, cause: { code, message } };
    }
    return failed === undefined ? { source: -1 } : { source: failed.source, cause: failed.cause };
  }

  /** Whether all ranks made the same calls before a run and, unless it failed, in its program function. */
  private madeTheSame(number: number, ballot: Ballot, hasFailed: boolean): boolean {
    const { judge } = this.ranks.calls;
    const own = ballot.ends.get(0);
    if (judge === undefined || own === undefined) return true;
    for (const [rank, { before, inside }] of ballot.ends) {
      const differsBefore = !isEqual(before, own.before);
      if (!differsBefore && (hasFailed || isEqual(inside, own.inside))) continue;
      if (differsBefore) judge.suspect(rank, 0, `those before run ${number} are not the same`);
      else judge.suspect(rank, number, 'they are not the same');
      return false;
    }
    return true;
  }

  /** A rank's graph: the tasks so far, or all tasks. */
  compare(number: number, told: Told, isSealed: boolean): void {
    const ballot = this.ballot(number);
    if (ballot.refused) return;
    ballot.era ??= told.era;
    if (told.era !== ballot.era && guards.oneEra) {
      this.refuse(number, ballot, this.failures.apart());
      return;
    }
    const known = isSealed ? first(ballot.sealed) : ballot.checks.get(told.tasks);
    const isOther =
      known !== undefined && (known.tasks !== told.tasks || known.digest !== told.digest);
    if (isOther && guards.graphDigest) {
      if (this.isOutOfStep(number, ballot, told)) return;
      const isSame = known.tasks === told.tasks && !isSealed;
      if (isSame && known.does !== undefined && told.does !== undefined)
        this.refuse(
          number,
          ballot,
          graphsDiffer(
            `the ranks differ: rank ${known.rank} is ${known.does}, and rank ${told.rank} is ${told.does}`,
            'do the same on every rank',
          ),
        );
      else this.refuse(number, ballot, graphsDiffer(describeDifference(known, told, isSealed)));
      return;
    }
    if (isSealed) {
      ballot.sealed.set(told.rank, told);
      if (ballot.sealed.size === this.ranks.size) this.compareTransfers(number, ballot);
    } else {
      const count = (ballot.checks.get(told.tasks)?.count ?? 0) + 1;
      if (count === this.ranks.size) ballot.checks.delete(told.tasks);
      else ballot.checks.set(told.tasks, { ...(known ?? told), count });
    }
  }

  /** Each rank must expect as many data from each other rank as that rank sends. Linear in the pairs that exchange data. */
  private compareTransfers(number: number, ballot: Ballot): void {
    const { size } = this.ranks;
    // By the pair of ranks (from, to): transfers that are sent less those that are expected.
    const missing: Map<number, number> = new Map();
    const add = (from: number, to: number, more: number): void => {
      const pair = from * size + to;
      missing.set(pair, (missing.get(pair) ?? 0) + more);
    };
    for (const { rank, sentTo, expectedFrom } of ballot.sealed.values()) {
      for (const [to, sent] of sentTo) add(rank, to, sent);
      for (const [from, expected] of expectedFrom) add(from, rank, -expected);
    }
    let wrong = Number.POSITIVE_INFINITY;
    for (const [pair, difference] of missing) if (difference !== 0) wrong = Math.min(wrong, pair);
    if (wrong === Number.POSITIVE_INFINITY) return;
    const a = ballot.sealed.get(Math.floor(wrong / size)) as Told;
    const b = ballot.sealed.get(wrong % size) as Told;
    if (this.isOutOfStep(number, ballot, a)) return;
    const expected = b.expectedFrom.find(([from]) => from === a.rank)?.[1] ?? 0;
    const sent = a.sentTo.find(([to]) => to === b.rank)?.[1] ?? 0;
    const text =
      `rank ${b.rank} expects ${expected} data from rank ${a.rank}, which sends ${sent}: ` +
      'the ranks do not follow the same tasks';
    this.refuse(number, ballot, graphsDiffer(text));
  }

  /** Whether graphs differ because the ranks made different calls before the run. Then the error must report the calls. */
  private isOutOfStep(number: number, ballot: Ballot, told: Told): boolean {
    const { judge } = this.ranks.calls;
    if (judge === undefined || !guards.callOrder) return false;
    const own = this.runs.before(number);
    const all = [told, ...ballot.sealed.values(), ...ballot.checks.values()];
    const before = own ?? all[0].before;
    const other = all.find((each) => !isEqual(each.before, before));
    if (other === undefined) return false;
    ballot.refused = true;
    if (own === undefined || other.rank === 0) judge.inquire();
    else judge.suspect(other.rank, 0, `those before run ${number} are not the same`);
    return true;
  }

  private refuse(number: number, ballot: Ballot, error: HeadraceError): void {
    ballot.refused = true;
    if (guards.refusalCounts) ballot.refusal = error;
    this.runs.refused(number, error);
  }
}

function graphsDiffer(
  text: string,
  remedy = 'insert the same tasks in the same order on every rank',
): HeadraceError {
  return new HeadraceError('ERR_GRAPH_MISMATCH', text, { remedy });
}

/**
 * Whether a run began in several eras: a rank began it before it learned of the failure of an earlier run, and other
 * ranks began it afterwards. The ranks then plan its transfers from different states.
 */
function isApart(all: readonly { readonly era: number }[]): boolean {
  return guards.oneEra && all.some(({ era }) => era !== all[0].era);
}

function first<T>(values: ReadonlyMap<number, T>): T | undefined {
  for (const value of values.values()) return value;
  return undefined;
}

function isEqual(a: CallCount, b: CallCount): boolean {
  return a.made === b.made && a.digest === b.digest;
}

function describeDifference(a: Told, b: Told, isSealed: boolean): string {
  if (a.tasks !== b.tasks) {
    return (
      `the graphs differ: rank ${a.rank} inserted ${a.tasks} tasks (the last of class '${a.lastClass}'), ` +
      `rank ${b.rank} ${b.tasks} (the last of class '${b.lastClass}')`
    );
  }
  const where = isSealed ? `the ${a.tasks} tasks` : `the first ${a.tasks} tasks`;
  return (
    `the graphs differ: ${where} of ranks ${a.rank} and ${b.rank} are not the same ` +
    `(the last ones are of class '${a.lastClass}' and '${b.lastClass}')`
  );
}
