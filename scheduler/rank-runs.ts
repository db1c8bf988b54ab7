// Runs across ranks: they end together, fail together, and are checked to be the same program.
//
// Each rank numbers its runs; equal numbers are the same run. A rank tells rank 0 a digest of what it inserted, every
// few thousand tasks and when its program has ended; rank 0 compares, so that ranks whose graphs differ hear of it
// instead of waiting for data that nobody sends. When a rank's tasks are over it says so; when all are, rank 0 gives
// the verdict, and only then is the run over anywhere. A rank whose run fails tells all others at once.
//
// Runs that are open at the same time fail together: how many tasks of a failed run a rank has inserted depends on when it
// heard of the failure, so the ranks do not agree any more on which version of its data the others' tasks read.
//
// Invariants: a run is reported over exactly once, after the verdict or the loss of a rank; after failed verdicts all
// ranks begin a new era together, when no run is open on rank 0; a run that begins on a rank while a failed one is not
// settled there fails.
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { textOf, Wire, type WireRecord } from '../devices/network-wire.js';
import type { TaskClassRow } from '../stages/task-table.js';
import { mix } from './call-log.js';
import type { Engine } from './engine.js';
import { type Cause, RankBallots, type Told, type Verdict, type Vote } from './rank-ballots.js';
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
  /** On rank 0. */
  private readonly ballots: RankBallots | undefined;
  private readonly classHashes: number[] = [];
  private readonly bits: DataView = new DataView(new ArrayBuffer(8));
  private nextEpoch = 1;
  private era = 0;
  /** On rank 0: runs that have failed, until no other is open. */
  private readonly held: Map<number, Verdict> = new Map();

  constructor(engine: Engine, ranks: Ranks) {
    this.engine = engine;
    this.ranks = ranks;
    if (ranks.rank === 0) this.ballots = new RankBallots(ranks, this);
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
    } else if (guards.failTogether) {
      const failed = [...this.epochs.values()].find((each) => each.failure !== undefined);
      if (failed !== undefined) this.engine.failRun(run, failedTogether(failed));
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
    const cause = failed
      ? { code: epoch.failure?.code ?? '', message: epoch.failure?.message ?? '' }
      : undefined;
    const source = failed ? epoch.source : -1;
    const inside = ranks.calls.countOf(epoch.number);
    const vote: Vote = { source, cause, before: epoch.before, inside };
    if (this.ballots !== undefined) this.decide(epoch.number, 0, vote);
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
    this.failOthers(epoch);
    this.engine.wake();
  }

  /** A run has failed: so do the others that are not over here. Those that are have had their say. */
  private failOthers(failed: Epoch): void {
    if (!guards.failTogether || this.ranks.lostError !== undefined) return;
    for (const { run, failure } of [...this.epochs.values()]) {
      if (run !== undefined && !run.over && failure === undefined)
        this.engine.failRun(run, failedTogether(failed));
    }
  }

  private spread(number: number, error: HeadraceError, source: number): void {
    const text = JSON.stringify({ code: error.code, message: error.message });
    for (let r = 0; r < this.ranks.size; r++) {
      if (r !== this.ranks.rank) this.ranks.device.wire.write(r, Wire.fail, [number, source], text);
    }
  }

  /** On rank 0: the last of all votes brings the verdict. */
  private decide(number: number, rank: number, vote: Vote): void {
    const verdict = this.ballots?.vote(number, rank, vote);
    if (verdict === undefined) return;
    if (verdict.cause === undefined) this.proclaim(number, this.era, verdict);
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
    if (epoch.run !== undefined) {
      this.engine.failRun(epoch.run, error);
      this.ranks.failReads(error, number);
    }
    this.failOthers(epoch);
  }

  private verdict(number: number, era: number, { source, cause }: Verdict): void {
    const epoch = this.epochs.get(number);
    if (epoch === undefined) return;
    // The failed rank's own message may still be on its way.
    if (cause !== undefined) {
      this.hear(number, source, cause);
      this.ranks.withdrawReads(number);
    }
    if (era > this.era) {
      this.era = era;
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

  /** Rank 0 has found that the ranks' graphs differ. */
  refused(number: number, error: HeadraceError): void {
    const epoch = this.epochOf(number);
    if (epoch.failure !== undefined) return;
    epoch.failure = error;
    epoch.source = 0;
    this.spread(number, error, 0);
    if (epoch.run !== undefined) this.engine.failRun(epoch.run, error);
    this.failOthers(epoch);
    this.engine.wake();
  }

  /** Calls of this rank before run `number`; undefined when it has not come to it. */
  before(number: number): CallCount | undefined {
    const epoch = this.epochs.get(number);
    return epoch?.run === undefined ? undefined : epoch.before;
  }
}

/** The error of a run that was open when another one failed. */
function failedTogether({ number, source, failure }: Epoch): HeadraceError {
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
