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
import { Comparison } from './expectation.js';
import { insertHeld } from './held-tasks.js';
import type { PlannedSequence, Sequence } from './sequence.js';

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

  /** `base`: the number of its first task. */
  constructor(
    engine: Engine,
    run: RunState,
    sequence: Sequence,
    of: PlannedSequence,
    base: TaskId,
  ) {
    this.engine = engine;
    this.run = run;
    this.sequence = sequence;
    this.of = of;
    this.base = base;
    this.comparison = new Comparison(of.expectation, base, engine.checked);
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

  /** Insertions compared so far. */
  get compared(): number {
    return this.comparison.next;
  }

  /** The first task of the next hold. */
  get end(): TaskId {
    return ((this.base + this.count) | 0) as TaskId;
  }

  /** The program has ended, with all insertions as expected. */
  complete(): void {
    this.isComplete = true;
    this.run.sealed = true;
    this.run.standing = this.count;
  }

  /** The plan is to be played when all before it is over. */
  play(observer: HoldObserver): void {
    const { engine, run, of, comparison, base } = this;
    const { expectation, plan } = of;
    const end = (error?: HeadraceError): void => {
      if (error !== undefined) engine.failRun(run, error);
      run.standing = 0;
      run.inserted += expectation.count;
      run.retired += expectation.count - 1;
      engine.openRuns.taskIsOver(run);
    };
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

  /** Ends the hold: inserts what was compared. */
  insert(): void {
    const { engine, run, comparison, base } = this;
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
      insertHeld(engine, run, { expectation, count: comparison.next, base, valueAt });
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      engine.failRun(run, error);
    } finally {
      engine.tellsRuns = true;
    }
    if (this.isComplete) engine.seal(run);
    engine.wake();
  }
}
