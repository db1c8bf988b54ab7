// Runs across ranks: they end together and fail together, and the ranks check that they run the same program.
//
// Each rank numbers its runs; equal numbers are the same run (epochs.ts). A rank sends rank 0 a digest of its inserted
// tasks, every few thousand tasks and at the end of its program (graph-counts.ts). Rank 0 compares the digests, so that
// ranks with different graphs get an error instead of waiting for data that no rank sends (ballots.ts). When a rank's
// tasks are over, it votes. When all ranks have voted, rank 0 sends the verdict, and only then is the run over on any rank
// (verdicts.ts). A rank whose run fails tells all other ranks at once.
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
import { type Epoch, Epochs } from './epochs.js';
import { type EraRuns, RankEras } from './eras.js';
import { FailedRuns } from './failed-runs.js';
import { GraphCounts } from './graph-counts.js';
import type { RankHost } from './host.js';
import type { CallCount, RankLinks, RunNotes } from './links.js';
import { RankVerdicts } from './verdicts.js';

export class RankRuns implements BallotRuns, EraRuns, RunNotes {
  /** A run was pruned, or failed: a rank may not know all writes of other ranks. */
  missesWrites = false;
  /** A run has begun in the present era, or no run has failed so far. */
  isUnderWay = true;
  readonly eras: RankEras;
  /** The graphs of the runs, as the plan counts them. */
  readonly graphs: GraphCounts;
  readonly failures: FailedRuns;
  private readonly engine: RankHost;
  private readonly ranks: RankLinks;
  private readonly epochs: Epochs = new Epochs();
  /** On rank 0. */
  private readonly ballots: RankBallots | undefined;
  private readonly verdicts: RankVerdicts | undefined;

  constructor(engine: RankHost, ranks: RankLinks) {
    this.engine = engine;
    this.ranks = ranks;
    const { epochs } = this;
    const failures = new FailedRuns(epochs);
    const eras = new RankEras(engine, ranks, this, failures);
    this.failures = failures;
    this.eras = eras;
    if (ranks.rank === 0) {
      const ballots = new RankBallots(ranks, this, failures);
      const heard = (number: number, era: number, verdict: Verdict): void =>
        this.verdict(number, era, verdict);
      this.ballots = ballots;
      this.verdicts = new RankVerdicts({ ranks, epochs, ballots, eras, failures, heard });
    }
    this.graphs = new GraphCounts(ranks, epochs, this.ballots);
  }

  // --- This rank's side -----------------------------------------------------------------------------------------

  /** A run begins; returns its number, which is the same on all ranks. */
  begin(run: RunState, name: string, pruned: boolean): number {
    const epoch = this.epochs.begin(run);
    epoch.before = this.ranks.calls.runBegins(epoch.number, name, pruned);
    epoch.pruned = pruned;
    this.ranks.votes.begins(epoch.number);
    if (pruned) this.missesWrites = true;
    this.isUnderWay = true;
    this.ranks.clocks.measure();
    const failure = this.ranks.lostError ?? epoch.failure;
    if (failure !== undefined) {
      if (failure === this.ranks.calls.mismatch) this.ranks.calls.told = true;
      this.engine.failRun(run, failure);
    } else if (this.eras.spoils(epoch.before.made)) this.engine.failRun(run, this.failures.apart());
    else if (guards.failTogether) {
      const failed = this.failures.any();
      if (failed !== undefined) this.engine.failRun(run, this.failures.together(failed));
    }
    if (epoch.failure !== undefined) this.ranks.failLaterReads();
    return epoch.number;
  }

  /** Runs of this rank that are not over. */
  get open(): number {
    return this.epochs.open;
  }

  /** The present era: the number of times that failed runs were settled. */
  get era(): number {
    return this.epochs.era;
  }

  /** The program function of run `number` has begun here and not ended. */
  programIsOpen(number: number): boolean {
    const epoch = this.epochs.at(number);
    return epoch?.run !== undefined && !epoch.isSealed;
  }

  /** The failure of run `number`, as far as this rank knows it. */
  failureIn(number: number): HeadraceError | undefined {
    return this.epochs.at(number)?.failure;
  }

  /** The number of a run of this rank, which is the same on all ranks. */
  numberOf(run: RunState): number {
    return this.epochs.of(run)?.number ?? 0;
  }

  /** Whether the program of a run skips tasks that do not concern its rank. */
  isPruned(run: RunState): boolean {
    return this.epochs.of(run)?.pruned === true;
  }

  /** The program function of a run has ended on this rank. */
  programEnded(run: RunState): void {
    const epoch = this.epochs.of(run);
    if (epoch === undefined) return;
    epoch.isSealed = true;
    if (run.error === undefined) this.ranks.calls.programEnds(epoch.number);
  }

  /** All that the program of a run has inserted on this rank, which has ended, is in its graph. Returns the tasks of all ranks. */
  graphEnded(run: RunState): number {
    const epoch = this.epochs.of(run);
    if (epoch !== undefined && run.error === undefined) this.graphs.tell(epoch, true);
    return epoch?.graph.tasks ?? 0;
  }

  /** All tasks of a run are over on this rank. */
  ended(run: RunState): void {
    const { ranks } = this;
    const epoch = this.epochs.of(run) as Epoch;
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
    if (this.verdicts !== undefined) this.verdicts.vote(epoch.number, 0, vote);
    else ranks.device.wire.write(0, Wire.end, [epoch.number], JSON.stringify(vote));
    this.engine.wake();
  }

  /** A run failed on this rank. The rank reports it once, unless the report came from another rank. */
  failed(run: RunState, error: HeadraceError): void {
    const epoch = this.epochs.of(run);
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
        this.engine.failRun(run, this.failures.together(failed));
    }
  }

  private spread(number: number, error: HeadraceError, source: number): void {
    const text = JSON.stringify(causeOf(error));
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
        this.verdicts?.vote(number, from, JSON.parse(textOf(record, 1)) as Vote);
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

  private hear(number: number, rank: number, { code, message }: Cause): void {
    if (this.epochs.isSettled(number)) return;
    const epoch = this.epochs.enter(number);
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
    const epoch = this.epochs.at(number);
    if (epoch === undefined) return;
    // The failed rank's own message may still be under way.
    if (cause !== undefined) this.hear(number, source, cause);
    const begins = era > this.era;
    if (begins) {
      this.epochs.era = era;
      this.failures.last = { number, source, failure: epoch.failure };
      this.missesWrites = true;
      this.isUnderWay = false;
      // News of the era that came early are taken with `beginEra`, and judged by the state of this era.
      this.eras.begin(era);
      this.ranks.beginEra(era);
    }
    this.close(epoch, epoch.before);
    // A rank alone opens the era here, and the run that has failed is none of those that are torn by it.
    if (begins) this.eras.tellCalls();
  }

  /** `agreed`: the number of calls before the run that all ranks made alike. */
  private close(epoch: Epoch, agreed?: CallCount): void {
    const { run } = epoch;
    this.epochs.remove(epoch.number);
    this.ranks.calls.runEnds(epoch.number, agreed);
    this.ranks.votes.ends(epoch.number);
    if (run === undefined) return;
    this.epochs.close(run);
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
    if (this.epochs.isSettled(number)) return;
    const epoch = this.epochs.enter(number);
    if (epoch.failure !== undefined) return;
    epoch.failure = error;
    epoch.source = 0;
    this.spread(number, error, 0);
    if (epoch.run !== undefined) {
      this.engine.failRun(epoch.run, error);
      this.ranks.failLaterReads();
    }
    this.failOthers(epoch);
    this.engine.wake();
  }

  /** Fails the open runs that began before call `first`: some ranks began them in the era before. */
  failTorn(first: number): boolean {
    if (!guards.oneEra) return false;
    const torn = [...this.epochs.values()].filter(
      ({ run, before }) => run !== undefined && before.made < first,
    );
    for (const { run, failure } of torn)
      if (run !== undefined && !run.over && failure === undefined)
        this.engine.failRun(run, this.failures.apart());
    return torn.length > 0;
  }

  /**
   * Position of a run among the calls of the program.
   * @throws HeadraceError `ERR_PEER_FAILED` when the run began in an earlier era
   */
  positionOf(number: number): number {
    const epoch = this.epochs.enter(number);
    if (epoch.era !== this.epochs.era) throw this.failures.apart();
    return epoch.before.made;
  }

  /** Calls of this rank before run `number`; undefined when this rank has not begun it. */
  before(number: number): CallCount | undefined {
    const epoch = this.epochs.at(number);
    return epoch?.run === undefined ? undefined : epoch.before;
  }
}
