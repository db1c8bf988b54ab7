// One play in place of stretches of a run that come again and again. Stretches are added while it waits and while it plays; it is
// over when it has played all that were added.
//
// Invariant: once the play has begun, no task has a row, and every stretch passes over the numbers of its tasks when it is added. So
// the next insertion has the number that its handle promises.
import type { HeadraceError } from '../../devices/errors.js';
import type { TaskId } from '../../devices/handles.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { Comparison, Expectation } from './expectation.js';
import { insertHeld } from './held-tasks.js';
import type { PlannedSequence } from './sequence.js';

/** Whom a play of stretches tells. */
interface StretchObserver {
  /** The first command follows. */
  began(): void;
  /** So many more tasks are over. */
  played(tasks: number): void;
  /** It is over. The run has failed if there is an error. */
  ended(error: HeadraceError | undefined): void;
  /** It cannot begin. */
  refused(error: HeadraceError): void;
}

/** Values for which there is room at first. */
const FEW = 64;

export class StretchPlay {
  /** Number of its first task. */
  readonly base: TaskId;
  /** Stretches so far, and those that are over. */
  private times = 0;
  private over = 0;
  hasBegun = false;
  private readonly engine: Engine;
  private readonly run: RunState;
  private readonly of: PlannedSequence;
  /** Tasks that may have been added and not be over. */
  private readonly limit: number;
  private readonly observer: StretchObserver;
  private takeBack: (() => void) | undefined;
  /** Values of the open parameters of the stretches from number `kept` on. */
  private values: Float64Array = new Float64Array(FEW);
  private kept = 0;

  constructor(
    engine: Engine,
    run: RunState,
    of: PlannedSequence,
    base: TaskId,
    limit: number,
    observer: StretchObserver,
  ) {
    this.engine = engine;
    this.run = run;
    this.of = of;
    this.base = base;
    this.limit = limit;
    this.observer = observer;
  }

  private get expectation(): Expectation {
    return this.of.expectation;
  }

  /** Tasks of all stretches so far. */
  get tasks(): number {
    return this.times * this.expectation.count;
  }

  /** Tasks that are not over. */
  get unfinished(): number {
    return (this.times - this.over) * this.expectation.count;
  }

  /** It waits for its turn, or plays. */
  get stands(): boolean {
    return this.takeBack !== undefined || this.hasBegun;
  }

  /** Adds the stretch that was compared last. */
  add({ values }: Comparison): void {
    const { engine, run } = this;
    const { count, openPlaces } = this.expectation;
    const width = openPlaces.length;
    if (width > 0) {
      const first = (this.times - this.kept) * width;
      if (first + width > this.values.length) this.makeRoom(width);
      const at = (this.times - this.kept) * width;
      for (let i = 0; i < width; i++) this.values[at + i] = values[openPlaces[i]];
    }
    this.times++;
    run.standing += count;
    if (this.hasBegun) engine.tasks.pass(count);
  }

  /** Values of stretches that are over are needed no more. */
  private makeRoom(width: number): void {
    const { values, times } = this;
    const kept = values.subarray((this.over - this.kept) * width, (times - this.kept) * width);
    const room = 2 * kept.length > values.length ? 2 * values.length : values.length;
    const next = new Float64Array(Math.max(room, kept.length + width));
    next.set(kept);
    this.values = next;
    this.kept = this.over;
  }

  private value(stretch: number, openPlace: number): number {
    return this.values[(stretch - this.kept) * this.expectation.openPlaces.length + openPlace];
  }

  /** The play begins when all before it is over. */
  stand(): void {
    const { engine, run, observer, base, of } = this;
    const { count, openNumber } = of.expectation;
    const ahead = Math.ceil(this.limit / count) + 1;
    this.takeBack = of.plan.stand(
      run,
      {
        begins: () => this.begin(),
        refused: (error) => {
          this.takeBack = undefined;
          observer.refused(error);
        },
        nameOf: (cls, n, iteration) => `${cls.name} #${(base + iteration * count + n) | 0}`,
        times: () => this.times,
        ahead,
        played: (iterations) => this.finish(iterations),
      },
      {
        done: (iterations) => {
          this.finish(iterations);
          observer.ended(undefined);
        },
        failed: (error) => {
          this.passIfNew();
          engine.failRun(run, error);
          observer.ended(error);
          this.finish(this.times);
        },
      },
      (slot) => {
        const at = openNumber[of.expectation.placeOf(slot)];
        return (iteration) => this.value(iteration, at);
      },
    );
  }

  private begin(): void {
    this.passIfNew();
    this.observer.began();
  }

  /** Nothing before the play is live: its tasks have had their numbers. */
  private passIfNew(): void {
    const { tasks } = this.engine;
    this.takeBack = undefined;
    if (this.hasBegun) return;
    this.hasBegun = true;
    tasks.retireHead();
    if (tasks.live > 0 || tasks.next !== this.base)
      throw new Error('a play begins while tasks before it are live');
    tasks.pass(this.tasks);
  }

  /** That many stretches of the play are over, or will never run. */
  private finish(stretches: number): void {
    const { engine, run } = this;
    const tasks = (stretches - this.over) * this.expectation.count;
    if (tasks === 0) return;
    this.over = stretches;
    this.observer.played(tasks);
    run.standing -= tasks;
    run.inserted += tasks;
    run.retired += tasks - 1;
    engine.openRuns.taskIsOver(run);
  }

  /** Inserts the tasks of all stretches instead. Only before it has begun. */
  insert(): void {
    const { engine, run, times, base, expectation } = this;
    const { count, openNumber } = expectation;
    this.takeBack?.();
    this.takeBack = undefined;
    this.times = 0;
    run.standing -= times * count;
    for (let k = 0; k < times; k++) {
      const valueAt = (place: number): number => this.value(k, openNumber[place]);
      const first = ((base + k * count) | 0) as TaskId;
      insertHeld(engine, run, { expectation, count, base: first, valueAt });
    }
  }
}
