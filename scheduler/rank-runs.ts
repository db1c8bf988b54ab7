// Runs across ranks: they end together, fail together, and are checked to be the same program.
//
// Each rank numbers its runs; equal numbers are the same run. A rank tells rank 0 a digest of what it inserted, every
// few thousand tasks and when its program has ended; rank 0 compares, so that ranks whose graphs differ hear of it
// instead of waiting for data that nobody sends. When a rank's tasks are over it says so; when all are, rank 0 gives
// the verdict, and only then is the run over anywhere. A rank whose run fails tells all others at once.
//
// Invariants: a run is reported over exactly once, after the verdict or the loss of a rank; after a failed verdict all
// ranks begin a new era together.
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { textOf, Wire, type WireRecord } from '../devices/network-wire.js';
import type { TaskClassRow } from '../stages/task-table.js';
import { mix } from './call-log.js';
import type { Engine } from './engine.js';
import type { CallCount } from './rank-calls.js';
import type { Ranks } from './ranks.js';
import type { RunState } from './run-state.js';

/** Tasks between two checks of the digest. */
const CHECK_EVERY = 4096;

/** What this rank knows of one run. */
interface Epoch {
  readonly number: number;
  run: RunState | undefined;
  /** The program skips tasks that do not concern its rank: digests differ by design. */
  pruned: boolean;
  tasks: number;
  digest: number;
  lastClass: string;
  readonly sentTo: Int32Array;
  readonly expectedFrom: Int32Array;
  /** A failure another rank has told of before this one began the run. */
  failure: HeadraceError | undefined;
  /** Rank on which it began. */
  source: number;
  /** Calls of this rank before the run. */
  before: CallCount;
  /** Its program function has ended here. */
  isSealed: boolean;
}

/** One rank's program as rank 0 was told. */
interface Told {
  readonly rank: number;
  readonly tasks: number;
  readonly digest: number;
  readonly lastClass: string;
  readonly sentTo: readonly number[];
  readonly expectedFrom: readonly number[];
  /** Calls of the rank before the run. */
  readonly before: CallCount;
}

interface Cause {
  readonly code: string;
  readonly message: string;
}

/** How a run ended on a rank: well, or because of a failure that began on rank `source`. */
interface Verdict {
  readonly source: number;
  readonly cause?: Cause | undefined;
}

/** ... and which calls the rank has made before it and in its program function. */
interface Vote extends Verdict {
  readonly before: CallCount;
  readonly inside: CallCount;
}

/** What rank 0 collects of one run. */
interface Ballot {
  readonly ends: Map<number, Vote>;
  readonly sealed: Map<number, Told>;
  /** First digest told for a number of tasks. */
  readonly checks: Map<number, Told & { count: number }>;
  refused: boolean;
}

function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash | 0;
}

export class RankRuns {
  /** Runs of this rank that are not over. */
  open = 0;
  /** A run was pruned: a rank may not know of what others have written. */
  everPruned = false;
  private readonly engine: Engine;
  private readonly ranks: Ranks;
  private readonly epochs: Map<number, Epoch> = new Map();
  private readonly bySlot: (Epoch | undefined)[] = [];
  private readonly ballots: Map<number, Ballot> = new Map();
  private readonly classHashes: number[] = [];
  private readonly bits: DataView = new DataView(new ArrayBuffer(8));
  private nextEpoch = 1;
  private era = 0;

  constructor(engine: Engine, ranks: Ranks) {
    this.engine = engine;
    this.ranks = ranks;
  }

  // --- This rank's side -----------------------------------------------------------------------------------------

  /** A run begins; returns its number, which is the same on all ranks. */
  begin(run: RunState, name: string, pruned: boolean): number {
    const epoch = this.epochOf(this.nextEpoch++);
    epoch.run = run;
    epoch.before = this.ranks.calls.runBegins(epoch.number, name, pruned);
    epoch.pruned = pruned;
    if (pruned) this.everPruned = true;
    this.bySlot[run.slot] = epoch;
    this.open++;
    this.ranks.clocks.measure();
    const failure = this.ranks.lostError ?? epoch.failure;
    if (failure !== undefined) {
      if (failure === this.ranks.calls.mismatch) this.ranks.calls.told = true;
      this.engine.failRun(run, failure);
    }
    return epoch.number;
  }

  /** The program function of run `number` has begun here and not ended. */
  programIsOpen(number: number): boolean {
    const epoch = this.epochs.get(number);
    return epoch?.run !== undefined && !epoch.isSealed;
  }

  /** Why run `number` has failed, as far as it is known here. */
  failureIn(number: number): HeadraceError | undefined {
    return this.epochs.get(number)?.failure;
  }

  private epochOf(number: number): Epoch {
    let epoch = this.epochs.get(number);
    if (epoch === undefined) {
      epoch = {
        number,
        run: undefined,
        pruned: false,
        tasks: 0,
        digest: 0,
        lastClass: '',
        sentTo: new Int32Array(this.ranks.size),
        expectedFrom: new Int32Array(this.ranks.size),
        failure: undefined,
        source: -1,
        before: { made: 0, digest: 0 },
        isSealed: false,
      };
      this.epochs.set(number, epoch);
    }
    return epoch;
  }

  /** Adds a task to the digest of its run. */
  count(
    run: RunState,
    cls: TaskClassRow,
    flows: Int32Array,
    params: Float64Array,
    gid: Int32Array,
    target: number,
  ): void {
    const epoch = this.bySlot[run.slot];
    if (epoch === undefined) return;
    this.classHashes[cls.id] ??= hashText(cls.name);
    let hash = mix(epoch.digest, this.classHashes[cls.id] + target);
    for (let i = 0; i < cls.modes.length; i++) hash = mix(hash, gid[flows[i]]);
    for (let i = 0; i < cls.paramNames.length; i++) {
      this.bits.setFloat64(0, params[i]);
      hash = mix(mix(hash, this.bits.getInt32(0)), this.bits.getInt32(4));
    }
    epoch.digest = hash;
    epoch.lastClass = cls.name;
    if (++epoch.tasks % CHECK_EVERY === 0 && !epoch.pruned) this.tell(epoch, false);
  }

  /** Whether the program of a run skips tasks that do not concern its rank. */
  isPruned(run: RunState): boolean {
    return this.bySlot[run.slot]?.pruned === true;
  }

  sent(run: RunState, to: number): void {
    const epoch = this.bySlot[run.slot];
    if (epoch !== undefined) epoch.sentTo[to]++;
  }

  expected(run: RunState, from: number): void {
    const epoch = this.bySlot[run.slot];
    if (epoch !== undefined) epoch.expectedFrom[from]++;
  }

  /** The program function of a run has ended on this rank. */
  sealed(run: RunState): void {
    const epoch = this.bySlot[run.slot];
    if (epoch === undefined) return;
    epoch.isSealed = true;
    if (run.error !== undefined) return;
    this.ranks.calls.programEnds(epoch.number);
    this.tell(epoch, true);
  }

  private tell(epoch: Epoch, isSealed: boolean): void {
    const { ranks } = this;
    const { number, tasks, digest, lastClass, sentTo, expectedFrom, pruned } = epoch;
    const told: Told = {
      rank: ranks.rank,
      tasks: pruned ? 0 : tasks,
      digest: pruned ? 0 : digest,
      lastClass,
      sentTo: isSealed ? Array.from(sentTo) : [],
      expectedFrom: isSealed ? Array.from(expectedFrom) : [],
      before: epoch.before,
    };
    if (ranks.rank === 0) this.compare(number, told, isSealed);
    else ranks.device.wire.write(0, Wire.check, [number], JSON.stringify({ ...told, isSealed }));
  }

  /** All tasks of a run are over on this rank. */
  ended(run: RunState): void {
    const { ranks } = this;
    const epoch = this.bySlot[run.slot] as Epoch;
    if (ranks.lostError !== undefined) {
      this.close(epoch);
      return;
    }
    ranks.clocks.measure();
    const failed = run.error !== undefined;
    const cause = failed
      ? { code: epoch.failure?.code ?? '', message: epoch.failure?.message ?? '' }
      : undefined;
    const source = failed ? epoch.source : -1;
    const inside = ranks.calls.countOf(epoch.number);
    const vote: Vote = { source, cause, before: epoch.before, inside };
    if (ranks.rank === 0) this.vote(epoch.number, 0, vote);
    else ranks.device.wire.write(0, Wire.end, [epoch.number], JSON.stringify(vote));
    this.engine.wake();
  }

  /** A run failed on this rank. Told once, unless the news came from elsewhere. */
  failed(run: RunState, error: HeadraceError): void {
    const epoch = this.bySlot[run.slot];
    if (epoch === undefined || epoch.failure !== undefined || this.ranks.lostError !== undefined)
      return;
    epoch.failure = error;
    epoch.source = this.ranks.rank;
    this.ranks.failReads(error, epoch.number);
    this.spread(epoch.number, error, this.ranks.rank);
    this.engine.wake();
  }

  private spread(number: number, error: HeadraceError, source: number): void {
    const text = JSON.stringify({ code: error.code, message: error.message });
    for (let r = 0; r < this.ranks.size; r++) {
      if (r !== this.ranks.rank) this.ranks.device.wire.write(r, Wire.fail, [number, source], text);
    }
  }

  // --- Messages ---------------------------------------------------------------------------------------------------

  take(from: number, record: WireRecord): void {
    const { words, at } = record;
    const number = words[at + 2];
    switch (record.kind) {
      case Wire.end:
        this.vote(number, from, JSON.parse(textOf(record, 1)) as Vote);
        break;
      case Wire.check: {
        const { isSealed, ...told } = JSON.parse(textOf(record, 1)) as Told & { isSealed: boolean };
        this.compare(number, told, isSealed);
        break;
      }
      case Wire.verdict:
        this.verdict(number, words[at + 3], JSON.parse(textOf(record, 2)) as Verdict);
        break;
      case Wire.fail:
        this.hear(number, words[at + 3], JSON.parse(textOf(record, 2)) as Cause);
        break;
    }
  }

  private hear(number: number, rank: number, { code, message }: Cause): void {
    const epoch = this.epochOf(number);
    if (epoch.failure !== undefined) return;
    const error =
      code === 'ERR_GRAPH_MISMATCH'
        ? new HeadraceError(code, message, { rank })
        : new HeadraceError('ERR_PEER_FAILED', `rank ${rank} failed: ${message}`, {
            rank,
            cause: new HeadraceError(code, message, { rank }),
          });
    epoch.failure = error;
    epoch.source = rank;
    if (epoch.run === undefined) return;
    this.engine.failRun(epoch.run, error);
    this.ranks.failReads(error, number);
  }

  private verdict(number: number, era: number, { source, cause }: Verdict): void {
    const epoch = this.epochs.get(number);
    if (epoch === undefined) return;
    // The failed rank's own message may still be on its way.
    if (cause !== undefined) this.hear(number, source, cause);
    if (era > this.era) {
      this.era = era;
      this.ranks.withdrawReads(number);
      this.ranks.beginEra(era);
    }
    this.close(epoch, epoch.before);
  }

  /** `agreed`: calls that all ranks have made before it. */
  private close(epoch: Epoch, agreed?: CallCount): void {
    const { run } = epoch;
    this.epochs.delete(epoch.number);
    this.ranks.calls.runEnds(epoch.number, agreed);
    if (run === undefined) return;
    this.bySlot[run.slot] = undefined;
    this.open--;
    this.engine.runIsSettled(run);
  }

  /**
   * A rank died or went its own way: open runs fail; those whose tasks are over need no verdict any more. Returns how many
   * fail because of that.
   */
  lost(error: HeadraceError): number {
    let failed = 0;
    for (const epoch of [...this.epochs.values()]) {
      const { run } = epoch;
      if (run === undefined) continue;
      epoch.failure ??= error;
      const wasOver = run.over;
      if (run.error === undefined) failed++;
      this.engine.failRun(run, error);
      if (wasOver) this.close(epoch);
    }
    return failed;
  }

  // --- Rank 0 -----------------------------------------------------------------------------------------------------

  private ballot(number: number): Ballot {
    let ballot = this.ballots.get(number);
    if (ballot === undefined) {
      ballot = { ends: new Map(), sealed: new Map(), checks: new Map(), refused: false };
      this.ballots.set(number, ballot);
    }
    return ballot;
  }

  private vote(number: number, rank: number, vote: Vote): void {
    const ballot = this.ballot(number);
    ballot.ends.set(rank, vote);
    if (ballot.ends.size < this.ranks.size) return;
    this.ballots.delete(number);
    const failed = [...ballot.ends.values()].find((each) => each.cause !== undefined);
    // Then the answer is what the calls say.
    if (guards.callOrder && !this.madeTheSame(number, ballot, failed !== undefined)) return;
    const era = failed === undefined ? this.era : this.era + 1;
    const verdict: Verdict =
      failed === undefined ? { source: -1 } : { source: failed.source, cause: failed.cause };
    for (let r = 1; r < this.ranks.size; r++) {
      this.ranks.device.wire.write(r, Wire.verdict, [number, era], JSON.stringify(verdict));
    }
    this.verdict(number, era, verdict);
  }

  /** Whether all ranks made the same calls before a run, and in its program function unless that failed. */
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

  private compare(number: number, told: Told, isSealed: boolean): void {
    const ballot = this.ballot(number);
    if (ballot.refused) return;
    const known = isSealed ? [...ballot.sealed.values()][0] : ballot.checks.get(told.tasks);
    const isOther =
      known !== undefined && (known.tasks !== told.tasks || known.digest !== told.digest);
    if (isOther && guards.graphDigest) {
      if (this.isOutOfStep(number, ballot, told)) return;
      this.refuse(number, ballot, describeDifference(known, told, isSealed));
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

  /** What each rank sends to each other one must be what that one expects. */
  private compareTransfers(number: number, ballot: Ballot): void {
    for (const a of ballot.sealed.values()) {
      for (const b of ballot.sealed.values()) {
        const sent = a.sentTo[b.rank] ?? 0;
        const expected = b.expectedFrom[a.rank] ?? 0;
        if (sent === expected) continue;
        if (this.isOutOfStep(number, ballot, a)) return;
        const text =
          `rank ${b.rank} expects ${expected} data from rank ${a.rank}, which sends ${sent}: ` +
          'the ranks do not follow the same tasks';
        this.refuse(number, ballot, text);
        return;
      }
    }
  }

  /** Whether graphs differ because the ranks did not make the same calls before: then that is to be said. */
  private isOutOfStep(number: number, ballot: Ballot, told: Told): boolean {
    const { judge } = this.ranks.calls;
    if (judge === undefined || !guards.callOrder) return false;
    const own = this.epochs.get(number);
    const all = [told, ...ballot.sealed.values(), ...ballot.checks.values()];
    const before = own?.run === undefined ? all[0].before : own.before;
    const other = all.find((each) => !isEqual(each.before, before));
    if (other === undefined) return false;
    ballot.refused = true;
    if (own?.run === undefined || other.rank === 0) judge.inquire();
    else judge.suspect(other.rank, 0, `those before run ${number} are not the same`);
    return true;
  }

  private refuse(number: number, ballot: Ballot, text: string): void {
    ballot.refused = true;
    const error = new HeadraceError('ERR_GRAPH_MISMATCH', text, {
      remedy: 'insert the same tasks in the same order on every rank',
    });
    const epoch = this.epochOf(number);
    if (epoch.failure !== undefined) return;
    epoch.failure = error;
    epoch.source = 0;
    this.spread(number, error, 0);
    if (epoch.run !== undefined) this.engine.failRun(epoch.run, error);
    this.engine.wake();
  }
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
  const where = isSealed ? `${a.tasks} tasks` : `the first ${a.tasks} tasks`;
  return (
    `the graphs differ: ranks ${a.rank} and ${b.rank} inserted ${where} that are not the same ` +
    `(the last ones are of class '${a.lastClass}' and '${b.lastClass}')`
  );
}
