// A run whose insertions are compared with those of a plan, and held back. In the end the plan is played in their place, or they
// are inserted, in order, as if nothing had been.
//
// Invariant: the tasks have the numbers that their handles promise. No task is inserted by anyone between the first comparison and
// the end of the hold (`Recognition.settle`), and a play passes over as many numbers as it has tasks.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { TaskId } from '../../devices/handles.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import { mix } from '../ranks/call-log.js';
import type { PlayVote } from '../ranks/play-votes.js';
import type { Ranks } from '../ranks/ranks.js';
import { Comparison } from './expectation.js';
import { HandlesInOrder, type HeldHandles } from './held-handles.js';
import { insertHeld, insertOnAll, type NoteTask } from './held-tasks.js';
import type { PlannedSequence, Sequence } from './sequence.js';

/** Hexadecimal digits of the digest of a plan that ranks compare: so many fit into a number. */
const DIGITS = 12;

/** A program that compares faster than this does nothing else between its insertions: nanoseconds per task, and besides. */
const PER_TASK = 2000;
const BESIDES = 1e6;

/** Whom a hold tells. */
interface HoldObserver {
  /** The first command of its play follows. */
  began(): void;
  /** Its play cannot begin. */
  refused(error: HeadraceError): void;
}

/** The other ranks, which play at the same time (agreed-plays.ts). */
interface HeldOnRanks {
  readonly peers: Ranks;
  readonly handles: HeldHandles;
}

export class HeldRun {
  readonly sequence: Sequence;
  readonly base: TaskId;
  /** All insertions are as expected, and the program has ended. */
  isComplete = false;
  private readonly engine: Engine;
  private readonly run: RunState;
  private readonly of: PlannedSequence;
  readonly comparison: Comparison;
  private takeBack: (() => void) | undefined;
  /** When it began, on the clock and in processor time. */
  private readonly since: number;
  private readonly workedBefore: number;
  private readonly onRanks: HeldOnRanks | undefined;
  /** On several ranks: the place of its first task among those that were held back. */
  private readonly first: number;

  /** `base`: the number of its first task. `onRanks`: if there are several ranks. */
  constructor(
    engine: Engine,
    run: RunState,
    sequence: Sequence,
    of: PlannedSequence,
    base: TaskId,
    onRanks?: HeldOnRanks,
  ) {
    this.engine = engine;
    this.onRanks = onRanks;
    this.run = run;
    this.sequence = sequence;
    this.of = of;
    this.base = base;
    this.first = onRanks?.handles.take(of.expectation.count) ?? 0;
    this.comparison = new Comparison(
      of.expectation,
      base,
      engine.checked,
      onRanks && new HandlesInOrder(this.first, of.ranks),
    );
    const { backend } = engine;
    this.since = backend.now();
    this.workedBefore = backend.workTime();
  }

  /** The program computes between its insertions. Its tasks could run meanwhile. A thread that had no core has not computed. */
  get isLate(): boolean {
    const { engine, since, workedBefore, compared } = this;
    const { backend } = engine;
    const enough = BESIDES + PER_TASK * compared;
    if (backend.now() - since <= enough || !guards.heldSoon) return false;
    return backend.workTime() - workedBefore > enough;
  }

  get count(): number {
    return this.of.expectation.count;
  }

  /** Those of them that run on this rank. */
  get tasks(): number {
    const { plan, expectation } = this.of;
    return this.onRanks === undefined ? expectation.count : plan.report.tasks;
  }

  /** What this rank would play: the plan, and a number that stands for the open parameters. */
  get vote(): PlayVote {
    const { of, comparison } = this;
    const { openPlaces } = of.expectation;
    const bits = new DataView(new ArrayBuffer(8));
    let values = 0;
    for (const place of openPlaces) {
      bits.setFloat64(0, comparison.values[place]);
      values = mix(mix(values, bits.getInt32(0)), bits.getInt32(4));
    }
    return { plan: Number.parseInt(of.plan.digest.slice(0, DIGITS), 16) + 1, values };
  }

  /** Insertions compared so far. */
  get compared(): number {
    return this.comparison.next;
  }

  /** The first task of the next hold. */
  get end(): TaskId {
    return ((this.base + this.count) | 0) as TaskId;
  }

  /** A hold of the same run for another sequence, if all insertions so far are those of that one, too. */
  turnInto(sequence: Sequence, of: PlannedSequence): HeldRun | undefined {
    const { engine, run, base, comparison } = this;
    const other = new HeldRun(engine, run, sequence, of, base);
    return other.comparison.takesOver(comparison) ? other : undefined;
  }

  /** The program has ended, with all insertions as expected. */
  complete(): void {
    this.isComplete = true;
    this.run.sealed = true;
    // The play of a rank without tasks is a part of the run, too.
    this.run.standing = Math.max(1, this.tasks);
  }

  /** Whether it could be played now. */
  get mayPlay(): boolean {
    return this.of.plan.mayBegin;
  }

  /** All ranks play. */
  playTogether(): void {
    const { engine, run, of, comparison, onRanks } = this;
    const { expectation, plan } = of;
    // Tasks that bring the data come before the play.
    run.sealed = false;
    engine.tellsRuns = false;
    const end = (error?: HeadraceError): void => this.ended(error);
    try {
      plan.standTogether(
        run,
        [this.vote.values],
        { begins: () => {}, times: () => 1, played: () => {} },
        { done: () => end(), failed: end },
        (slot) => {
          const place = expectation.placeOf(slot);
          return () => comparison.values[place];
        },
      );
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      // Nothing is inserted into a run that has failed.
      engine.failRun(run, error);
      this.insertOnAll();
      run.standing = 0;
    } finally {
      engine.tellsRuns = true;
    }
    onRanks?.peers.runs.graphEnded(run);
    engine.seal(run);
  }

  /** Its play is over. */
  private ended(error: HeadraceError | undefined): void {
    const { engine, run, tasks } = this;
    if (error !== undefined) engine.failRun(run, error);
    run.standing = 0;
    run.inserted += tasks;
    run.retired += tasks - 1;
    engine.openRuns.taskIsOver(run);
  }

  private insertOnAll(): void {
    const { engine, run, of, comparison, onRanks, first } = this;
    if (onRanks === undefined) return;
    const { peers, handles } = onRanks;
    const valueAt = (place: number): number => comparison.values[place];
    const held = { expectation: of.expectation, count: comparison.next, valueAt };
    handles.insertedNow(first, run, insertOnAll(engine, peers, run, held));
  }

  /** The plan is to be played when all before it is over. */
  play(observer: HoldObserver): void {
    const { engine, run, of, comparison, base } = this;
    const { expectation, plan } = of;
    const end = (error?: HeadraceError): void => this.ended(error);
    this.takeBack = plan.stand(
      run,
      {
        begins: () => {
          this.takeBack = undefined;
          engine.tasks.retireHead();
          if (engine.tasks.live > 0 || engine.tasks.next !== base)
            throw new Error('a play begins while tasks before it are live');
          engine.tasks.pass(expectation.count);
          observer.began();
        },
        refused: (error) => {
          this.takeBack = undefined;
          observer.refused(error);
        },
        nameOf: (cls, n) => `${cls.name} #${(base + n) | 0}`,
        times: () => 1,
        played: () => {},
      },
      { done: () => end(), failed: end },
      (slot) => {
        const place = expectation.placeOf(slot);
        return () => comparison.values[place];
      },
    );
  }

  /** Ends the hold: inserts what was compared. `note` sees the tasks before. */
  insert(note?: NoteTask): void {
    const { engine, run, comparison, base, onRanks } = this;
    this.takeBack?.();
    this.takeBack = undefined;
    comparison.isOver = true;
    run.standing = 0;
    // Some of its tasks may be over before all are inserted.
    run.sealed = false;
    engine.tellsRuns = false;
    try {
      const { expectation } = this.of;
      const valueAt = (place: number): number => comparison.values[place];
      if (onRanks !== undefined) this.insertOnAll();
      else insertHeld(engine, run, { expectation, count: comparison.next, base, valueAt, note });
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      engine.failRun(run, error);
    } finally {
      engine.tellsRuns = true;
    }
    if (this.isComplete) {
      onRanks?.peers.runs.graphEnded(run);
      engine.seal(run);
    }
    engine.wake();
  }
}
