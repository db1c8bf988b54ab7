// Runs across ranks: they end together and fail together, and the ranks check that they run the same program.
//
// Each rank numbers its runs; equal numbers are the same run. A rank sends rank 0 a digest of its inserted tasks, every
// few thousand tasks and at the end of its program. Rank 0 compares the digests, so that ranks with different graphs get
// an error instead of waiting for data that no rank sends. When a rank's tasks are over, it votes. When all ranks have
// voted, rank 0 sends the verdict, and only then is the run over on any rank. A rank whose run fails tells all other
// ranks at once.
//
// Runs that are open at the same time fail together. A rank inserts tasks of a failed run until it learns of the
// failure, so the ranks no longer agree on the versions that the other runs read.
//
// Invariants: the end of a run is reported exactly once, after the verdict or the loss of a rank. After failed verdicts
// all ranks begin a new era together, when no run is open on rank 0. A run that begins on a rank while a failed run is
// not settled there fails. A run succeeds only if it began in the same era on all ranks.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { textOf, Wire, type WireRecord } from '../../devices/network/wire.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import {
  type BallotRuns,
  type Cause,
  causeOf,
  RankBallots,
  type Told,
  type Verdict,
  type Vote,
} from './ballots.js';
import { mix } from './call-log.js';
import { type EraRuns, RankEras } from './eras.js';
import type { RankHost } from './host.js';
import type { CallCount, RankLinks, RunNotes } from './links.js';

/** Tasks between two checks of the digest. */
const CHECK_EVERY = 4096;
/** Characters of a class's name that are sent to other ranks. */
const MOST_NAME = 1000;

/** One run, as this rank knows it. */
interface Epoch {
  readonly number: number;
  run: RunState | undefined;
  /** The program skips tasks that do not concern its rank: digests differ by design. */
  pruned: boolean;
  tasks: number;
  digest: number;
  lastClass: string;
  /** Number of transfers by rank, for the ranks with which there are any. */
  readonly sentTo: Map<number, number>;
  readonly expectedFrom: Map<number, number>;
  /** A failure that another rank reported before this rank began the run. */
  failure: HeadraceError | undefined;
  /** Rank on which the failure began. */
  source: number;
  /** Number of calls that this rank made before the run. */
  before: CallCount;
  /** The era in which the run began on this rank. */
  era: number;
  /** Its program function has ended here. */
  isSealed: boolean;
}

/** A failed run, the rank on which its failure began, and the failure. */
type Failed = Pick<Epoch, 'number' | 'source' | 'failure'>;

function countOne(counts: Map<number, number>, rank: number): void {
  counts.set(rank, (counts.get(rank) ?? 0) + 1);
}

function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash | 0;
}

export class RankRuns implements BallotRuns, EraRuns, RunNotes {
  /** Runs of this rank that are not over. */
  open = 0;
  /** A run was pruned, or failed: a rank may not know all writes of other ranks. */
  missesWrites = false;
  /** A run has begun in the present era, or no run has failed so far. */
  isUnderWay = true;
  readonly eras: RankEras;
  private readonly engine: RankHost;
  private readonly ranks: RankLinks;
  private readonly epochs: Map<number, Epoch> = new Map();
  private readonly bySlot: (Epoch | undefined)[] = [];
  /** On rank 0. */
  private readonly ballots: RankBallots | undefined;
  private readonly classHashes: number[] = [];
  private readonly bits: DataView = new DataView(new ArrayBuffer(8));
  private nextEpoch = 1;
  /** The present era: the number of times that failed runs were settled. */
  era = 0;
  /** On rank 0: failed runs; they are kept until no other run is open. */
  private readonly held: Map<number, Verdict> = new Map();
  /** The run whose failure began the present era. */
  private failedLast: Failed = { number: 0, source: 0, failure: undefined };

  constructor(engine: RankHost, ranks: RankLinks) {
    this.engine = engine;
    this.ranks = ranks;
    this.eras = new RankEras(engine, ranks, this);
    if (ranks.rank === 0) this.ballots = new RankBallots(ranks, this);
  }

  // --- This rank's side -----------------------------------------------------------------------------------------

  /** A run begins; returns its number, which is the same on all ranks. */
  begin(run: RunState, name: string, pruned: boolean): number {
    const epoch = this.epochOf(this.nextEpoch++);
    epoch.run = run;
    epoch.before = this.ranks.calls.runBegins(epoch.number, name, pruned);
    epoch.pruned = pruned;
    epoch.era = this.era;
    if (pruned) this.missesWrites = true;
    this.isUnderWay = true;
    this.bySlot[run.slot] = epoch;
    this.open++;
    this.ranks.clocks.measure();
    const failure = this.ranks.lostError ?? epoch.failure;
    if (failure !== undefined) {
      if (failure === this.ranks.calls.mismatch) this.ranks.calls.told = true;
      this.engine.failRun(run, failure);
    } else if (this.eras.spoils(epoch.before.made)) this.engine.failRun(run, this.apart());
    else if (guards.failTogether) {
      const failed = [...this.epochs.values()].find((each) => each.failure !== undefined);
      if (failed !== undefined) this.engine.failRun(run, failedTogether(failed));
    }
    if (epoch.failure !== undefined) this.ranks.failLaterReads();
    return epoch.number;
  }

  /** The program function of run `number` has begun here and not ended. */
  programIsOpen(number: number): boolean {
    const epoch = this.epochs.get(number);
    return epoch?.run !== undefined && !epoch.isSealed;
  }

  /** The failure of run `number`, as far as this rank knows it. */
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
        sentTo: new Map(),
        expectedFrom: new Map(),
        failure: undefined,
        source: -1,
        before: { made: 0, digest: 0 },
        era: this.era,
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
    if (epoch !== undefined) countOne(epoch.sentTo, to);
  }

  expected(run: RunState, from: number): void {
    const epoch = this.bySlot[run.slot];
    if (epoch !== undefined) countOne(epoch.expectedFrom, from);
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
      lastClass: lastClass.slice(0, MOST_NAME),
      sentTo: isSealed ? [...sentTo] : [],
      expectedFrom: isSealed ? [...expectedFrom] : [],
      before: epoch.before,
      era: epoch.era,
    };
    if (this.ballots !== undefined) this.ballots.compare(number, told, isSealed);
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
    const cause = failed ? causeOf(epoch.failure) : undefined;
    const source = failed ? epoch.source : -1;
    const inside = ranks.calls.countOf(epoch.number);
    const vote: Vote = { source, cause, before: epoch.before, inside, era: epoch.era };
    if (this.ballots !== undefined) this.decide(epoch.number, 0, vote);
    else ranks.device.wire.write(0, Wire.end, [epoch.number], JSON.stringify(vote));
    this.engine.wake();
  }

  /** A run failed on this rank. The rank reports it once, unless the report came from another rank. */
  failed(run: RunState, error: HeadraceError): void {
    const epoch = this.bySlot[run.slot];
    if (epoch === undefined || epoch.failure !== undefined || this.ranks.lostError !== undefined)
      return;
    epoch.failure = error;
    epoch.source = this.ranks.rank;
    this.ranks.failLaterReads();
    this.spread(epoch.number, error, this.ranks.rank);
    this.failOthers(epoch);
    this.engine.wake();
  }

  /**
   * A run has failed: all other runs that are not over on this rank fail with it. Runs that are over have already voted.
   */
  private failOthers(failed: Epoch): void {
    if (!guards.failTogether || this.ranks.lostError !== undefined) return;
    for (const { run, failure } of [...this.epochs.values()]) {
      if (run !== undefined && !run.over && failure === undefined)
        this.engine.failRun(run, failedTogether(failed));
    }
  }

  private spread(number: number, error: HeadraceError, source: number): void {
    const text = JSON.stringify(causeOf(error));
    for (let r = 0; r < this.ranks.size; r++) {
      if (r !== this.ranks.rank) this.ranks.device.wire.write(r, Wire.fail, [number, source], text);
    }
  }

  /** On rank 0: the last vote brings the verdict. */
  private decide(number: number, rank: number, vote: Vote): void {
    const verdict = this.ballots?.vote(number, rank, vote);
    if (verdict === undefined) return;
    const isSpoiled = verdict.cause === undefined && this.eras.isSpoiled;
    if (isSpoiled) this.held.set(number, { source: 0, cause: causeOf(this.apart()) });
    else if (verdict.cause === undefined) this.proclaim(number, this.era, verdict);
    else this.held.set(number, verdict);
    this.proclaimFailures();
  }

  /** On rank 0: the failed runs are settled together, when no other run is open. */
  private proclaimFailures(): void {
    const { held } = this;
    if (held.size === 0) return;
    if (guards.failTogether) {
      for (const { number, run } of this.epochs.values())
        if (run !== undefined && !held.has(number)) return;
    }
    const failures = [...held];
    held.clear();
    const era = this.era + 1;
    for (const [number, verdict] of failures) this.proclaim(number, era, verdict);
  }

  private proclaim(number: number, era: number, verdict: Verdict): void {
    for (let r = 1; r < this.ranks.size; r++)
      this.ranks.device.wire.write(r, Wire.verdict, [number, era], JSON.stringify(verdict));
    this.verdict(number, era, verdict);
  }

  // --- Messages ---------------------------------------------------------------------------------------------------

  take(from: number, record: WireRecord): void {
    const { words, at } = record;
    const number = words[at + 2];
    switch (record.kind) {
      case Wire.end:
        this.decide(number, from, JSON.parse(textOf(record, 1)) as Vote);
        break;
      case Wire.check: {
        const { isSealed, ...told } = JSON.parse(textOf(record, 1)) as Told & { isSealed: boolean };
        this.ballots?.compare(number, told, isSealed);
        break;
      }
      case Wire.verdict:
        this.verdict(number, words[at + 3], JSON.parse(textOf(record, 2)) as Verdict);
        break;
      case Wire.fail:
        this.hear(number, words[at + 3], JSON.parse(textOf(record, 2)) as Cause);
        break;
      case Wire.enters:
      case Wire.opens:
        this.eras.take(from, record);
        break;
    }
  }

  /** Run `number` is over on this rank: another rank's report of its failure may come after the verdict. */
  private isSettled(number: number): boolean {
    return number < this.nextEpoch && !this.epochs.has(number);
  }

  private hear(number: number, rank: number, { code, message }: Cause): void {
    if (this.isSettled(number)) return;
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
    if (epoch.run !== undefined) {
      this.engine.failRun(epoch.run, error);
      this.ranks.failLaterReads();
    }
    this.failOthers(epoch);
  }

  private verdict(number: number, era: number, { source, cause }: Verdict): void {
    const epoch = this.epochs.get(number);
    if (epoch === undefined) return;
    // The failed rank's own message may still be under way.
    if (cause !== undefined) this.hear(number, source, cause);
    if (era > this.era) {
      this.era = era;
      this.failedLast = { number, source, failure: epoch.failure };
      this.missesWrites = true;
      this.isUnderWay = false;
      this.ranks.beginEra(era);
      this.eras.begin(era);
    }
    this.close(epoch, epoch.before);
  }

  /** `agreed`: the number of calls before the run that all ranks made alike. */
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
   * A rank died or left the common program. Open runs fail; runs whose tasks are over no longer need a verdict. Returns
   * the number of runs that fail because of it.
   */
  lost(error: HeadraceError): number {
    let failed = 0;
    this.eras.lost(error);
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

  /** Rank 0 has found that the ranks' graphs differ. */
  refused(number: number, error: HeadraceError): void {
    if (this.isSettled(number)) return;
    const epoch = this.epochOf(number);
    if (epoch.failure !== undefined) return;
    epoch.failure = error;
    epoch.source = 0;
    this.spread(number, error, 0);
    if (epoch.run !== undefined) this.engine.failRun(epoch.run, error);
    this.failOthers(epoch);
    this.engine.wake();
  }

  /** The error of a run that began on some rank before that rank learned of the failure that ended the era. */
  apart(): HeadraceError {
    return failedTogether(this.failedLast);
  }

  /** Fails the open runs that began before call `first`: some ranks began them in the era before. */
  failTorn(first: number): boolean {
    if (!guards.oneEra) return false;
    const torn = [...this.epochs.values()].filter(
      ({ run, before }) => run !== undefined && before.made < first,
    );
    for (const { run, failure } of torn)
      if (run !== undefined && !run.over && failure === undefined)
        this.engine.failRun(run, this.apart());
    return torn.length > 0;
  }

  /** The error of a read or restore that some ranks made before a failure was settled, and others after it. */
  torn(datum: string): HeadraceError {
    return this.refusal(datum, this.failedLast, 'when the ranks used it');
  }

  /** A run that began in the present era has failed and is not settled. */
  get isFailing(): boolean {
    return this.failedBefore(Number.POSITIVE_INFINITY) !== undefined;
  }

  /** The error of the read or restore at a position after a run that failed in this era and is not settled. */
  failing(datum: string, position: number): HeadraceError | undefined {
    const failed = this.failedBefore(position);
    return failed && this.refusal(datum, failed, 'before the ranks used it');
  }

  private failedBefore(position: number): Epoch | undefined {
    if (!guards.readsRefused) return undefined;
    for (const epoch of this.epochs.values()) {
      const { run, failure, era, before } = epoch;
      if (run !== undefined && failure !== undefined && era === this.era && before.made < position)
        return epoch;
    }
    return undefined;
  }

  private refusal(datum: string, { number, source, failure }: Failed, when: string): HeadraceError {
    return new HeadraceError(
      'ERR_PEER_FAILED',
      `datum '${datum}' has no value on which the ranks agree: run ${number} failed on rank ${source} ${when}: ${failure?.message ?? ''}`,
      {
        datum,
        rank: source,
        cause: failure,
        remedy: 'await a run that may fail before `read` or `restore`, or read again',
      },
    );
  }

  /**
   * Position of a run among the calls of the program.
   * @throws HeadraceError `ERR_PEER_FAILED` when the run began in an earlier era
   */
  positionOf(number: number): number {
    const epoch = this.epochOf(number);
    if (epoch.era !== this.era) throw this.apart();
    return epoch.before.made;
  }

  /** The error of a read or restore whose value did not arrive from rank `from` before the era ended. */
  tooLate(datum: string, from: number): HeadraceError {
    const { number, source, failure } = this.failedLast;
    return new HeadraceError(
      'ERR_PEER_FAILED',
      `datum '${datum}' had not come from rank ${from} when run ${number} failed on rank ${source}: ${failure?.message ?? ''}`,
      {
        datum,
        rank: source,
        cause: failure,
        remedy: 'await reads before a run that may fail, or read again',
      },
    );
  }

  /** Calls of this rank before run `number`; undefined when this rank has not begun it. */
  before(number: number): CallCount | undefined {
    const epoch = this.epochs.get(number);
    return epoch?.run === undefined ? undefined : epoch.before;
  }
}

/** The error of a run that was open when another one failed. */
function failedTogether({ number, source, failure }: Failed): HeadraceError {
  return new HeadraceError(
    'ERR_PEER_FAILED',
    `run ${number} failed on rank ${source} while this one was open: ${failure?.message ?? ''}`,
    {
      rank: source,
      cause: failure,
      remedy:
        'on several ranks runs that are open at the same time fail together: await one before the next',
    },
  );
}
