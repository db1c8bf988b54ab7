// Stretches of a run that come again and again: insertions are compared with those of a plan, stretch after stretch, and the plan is
// played while the program goes on. What is left of a stretch at the first difference is inserted.
//
// Invariants: nothing else is inserted between the first comparison and the end of the hold (`Recognition.settle`). No task that
// is live when the hold begins has a JavaScript body, so no pass calls code of the program that inserts. At most `limit` tasks are
// held back or under way, as with the window of inserted tasks.

import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { TaskId } from '../../devices/handles.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import { Comparison } from './expectation.js';
import { insertHeld, leaveUnwritten } from './held-tasks.js';
import type { PlannedSequence, Sequence } from './sequence.js';
import { StretchPlay } from './stretch-play.js';

/** Tasks between two looks at the play. */
const LOOK = 256;
/** The same in nanoseconds, for a program that computes between its insertions: what it has inserted need not wait for more. */
const LOOK_AFTER = 1e6;
/** Tasks with which the first play begins. */
const FIRST = 256;
/** A play begins with this part of the limit at most, so that the next tasks are compared while it is under way. */
const PART = 8;

/** A hold that has not played that many tasks has cost as much as it has saved. */
const LEAST_PLAYED = 1024;

/** Whom a hold of stretches tells. */
interface StretchesObserver {
  /** No earlier hold waits: a play may stand. */
  mayStand(): boolean;
  /** A play begins. */
  began(): void;
  /** So many tasks are over. */
  played(tasks: number): void;
  /** A play cannot begin, for that reason. */
  refused(error: HeadraceError): void;
  /** The run has failed: nothing is left to insert. */
  failed(): void;
  /** Ends the hold now. */
  settle(): void;
}

export class HeldStretches {
  readonly sequence: Sequence;
  readonly comparison: Comparison;
  /** The program has ended, and all its stretches are complete. */
  isComplete = false;
  /** The program has ended. */
  isSealed = false;
  private isOver = false;
  private wasRefused = false;
  private readonly engine: Engine;
  private readonly run: RunState;
  private readonly of: PlannedSequence;
  private readonly observer: StretchesObserver;
  private play: StretchPlay;
  /** First number of the stretch that is being compared. */
  private base: TaskId;
  /** Tasks of complete stretches, and those since the last look. */
  private inStretches = 0;
  private sinceLook = 0;
  private chunk = FIRST;
  private readonly limit: number;
  private readonly look: number;
  private lookedAt: number;

  /** `base`: the number of its first task. */
  constructor(
    engine: Engine,
    run: RunState,
    sequence: Sequence,
    of: PlannedSequence,
    base: TaskId,
    observer: StretchesObserver,
  ) {
    this.engine = engine;
    this.run = run;
    this.sequence = sequence;
    this.of = of;
    this.base = base;
    this.observer = observer;
    this.comparison = new Comparison(of.expectation, base, engine.checked);
    this.limit = Math.max(engine.tasks.window, 2 * this.count);
    this.look = Math.min(LOOK, this.limit / 4);
    this.lookedAt = engine.backend.now();
    this.play = this.newPlay();
  }

  /** Tasks of complete stretches that were compared, one after the other. */
  get complete(): number {
    return this.inStretches;
  }

  /** The next insertions may be compared, and held back. */
  get goesOn(): boolean {
    return !this.isOver && !this.wasRefused && this.run.error === undefined;
  }

  /** Tasks of a stretch. */
  get count(): number {
    return this.of.expectation.count;
  }

  /** Insertions of the present stretch that were compared. */
  get compared(): number {
    return this.comparison.next;
  }

  /** It was hardly worth while: few tasks were played, and others have to be inserted. */
  get isInVain(): boolean {
    return this.inStretches < LEAST_PLAYED && this.compared > 0;
  }

  /** Insertions that would be inserted if the hold ended now. */
  get heldBack(): number {
    return this.compared + (this.play.hasBegun ? 0 : this.play.tasks);
  }

  /** The first task behind the hold. */
  get end(): TaskId {
    return ((this.base + this.compared) | 0) as TaskId;
  }

  private newPlay(): StretchPlay {
    const { engine, run, of, base, observer } = this;
    const play: StretchPlay = new StretchPlay(engine, run, of, base, this.limit, {
      began: () => observer.began(),
      played: (tasks) => observer.played(tasks),
      ended: (error) => this.ended(play, error !== undefined),
      refused: (error) => {
        this.wasRefused = true;
        observer.refused(error);
      },
    });
    return play;
  }

  /** A play is over. If the program compares more slowly than it plays, the next one begins with more tasks. */
  private ended(play: StretchPlay, hasFailed: boolean): void {
    if (this.isOver || this.play !== play) return;
    if (hasFailed) this.giveUp();
    else {
      this.chunk = Math.min(2 * this.chunk, this.limit / PART);
      this.play = this.newPlay();
    }
  }

  /** The run has failed. The tasks of the stretch that is being compared never run. */
  private giveUp(): void {
    const { engine, comparison, of, run } = this;
    const { expectation } = of;
    this.isOver = true;
    if (this.isSealed) run.sealed = true;
    comparison.isOver = true;
    engine.tasks.pass(comparison.next);
    leaveUnwritten(engine, { expectation, count: comparison.next });
    this.observer.failed();
  }

  /** The stretch was compared completely. */
  stretchEnds(): void {
    const { comparison, engine, count } = this;
    this.play.add(comparison);
    this.inStretches += count;
    this.sinceLook += count;
    this.base = ((this.base + count) | 0) as TaskId;
    comparison.restart(this.base);
    if (engine.isUnderWay) return;
    const now = engine.backend.now();
    const isLate = now - this.lookedAt > LOOK_AFTER && guards.heldSoon;
    if (this.sinceLook < this.look && !isLate) return;
    this.sinceLook = 0;
    this.lookedAt = now;
    this.standIf(isLate || this.play.tasks >= this.chunk);
    engine.pump();
    if (guards.stretchLimit && this.play.unfinished >= this.limit) this.wait();
    if (this.wasRefused) this.observer.settle();
  }

  private standIf(isDue: boolean): void {
    const { play, run } = this;
    if (!isDue || play.stands || play.tasks === 0 || this.wasRefused) return;
    if (run.error === undefined && this.observer.mayStand()) play.stand();
  }

  /** Waits until a quarter of the limit is free. */
  private wait(): void {
    const { engine, limit } = this;
    const { idle } = engine;
    const since = engine.backend.now();
    engine.observer?.throttled(true);
    try {
      while (this.goesOn && this.play.unfinished > (3 * limit) / 4) {
        this.standIf(true);
        if (engine.pump()) continue;
        if (!idle.somethingIsUnderWay()) {
          if (this.observer.mayStand()) throw idle.stalled();
          // The play of an earlier hold was refused.
          this.observer.settle();
          return;
        }
        idle.block();
        idle.reportBlocked(since, 'graph.insert: waits for tasks that are played');
      }
    } finally {
      engine.observer?.throttled(false);
    }
  }

  /** The program has ended. True if nothing is left to insert, or the rest cannot be inserted yet. */
  seal(): boolean {
    this.isSealed = true;
    this.standIf(true);
    if (!this.engine.isUnderWay) this.engine.pump();
    if (this.isOver || this.wasRefused || this.play.hasBegun || this.play.tasks === 0) return false;
    if (this.compared > 0) return true;
    this.isComplete = true;
    this.run.sealed = true;
    return true;
  }

  /** No earlier hold waits any more. */
  mayPlay(): void {
    this.standIf(this.isSealed || this.play.tasks >= this.chunk);
  }

  /** The program waits: what is complete is played now. */
  playSoon(): void {
    this.standIf(true);
    this.engine.wake();
  }

  /** Lets the present play begin if nothing is before it. */
  tryPlay(): void {
    const { engine } = this;
    if (this.play.tasks === 0 || this.play.hasBegun || engine.isUnderWay) return;
    this.standIf(true);
    // What is told of runs may insert tasks.
    engine.tellsRuns = false;
    try {
      engine.pump();
    } finally {
      engine.tellsRuns = true;
    }
  }

  /** Ends the hold. What a play has not begun with is inserted. */
  insert(): void {
    const { engine, run, comparison, of } = this;
    if (this.isOver) return;
    this.isOver = true;
    comparison.isOver = true;
    // Some of its tasks may be over before all are inserted.
    run.sealed = false;
    engine.tellsRuns = false;
    try {
      if (!this.play.hasBegun) this.play.insert();
      const { expectation } = of;
      const valueAt = (place: number): number => comparison.values[place];
      const base = this.base;
      insertHeld(engine, run, { expectation, count: comparison.next, base, valueAt });
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      engine.failRun(run, error);
    } finally {
      engine.tellsRuns = true;
    }
    if (this.isSealed) engine.seal(run);
    engine.wake();
  }
}
