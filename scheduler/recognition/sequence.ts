// The insertions of a run that may come again: recorded once, then followed by runs with the same tasks, then planned. Or a stretch
// of them, which comes again within the run (stretch-finder.ts).
import type { TaskInsertion } from '../engine/task-insertion.js';
import { Insertions } from '../plans/insertions.js';
import type { Plan } from '../plans/plan.js';
import type { TaskClass } from '../program/task-class.js';
import type { Expectation } from './expectation.js';
import { Trials } from './trials.js';

/** A sequence with its plan. */
export interface PlannedSequence {
  readonly plan: Plan;
  readonly expectation: Expectation;
  /** On several ranks: the rank of each task. */
  readonly ranks: readonly number[];
}

const NONE: readonly number[] = [];

export class Sequence {
  readonly insertions: Insertions = new Insertions();
  /** Class of each insertion. */
  readonly classes: TaskClass[] = [];
  /** The number of the first insertion (signatures.ts). */
  firstNumber = 0;
  /** Runs with these insertions. */
  seen = 0;
  /** Runs after which it is planned. */
  needed = 0;
  /** Comparisons, or plays, that came to nothing since the last play. */
  misses = 0;
  planned: PlannedSequence | undefined;
  /** Name of the run that it was planned in, and tasks that were played. */
  name = '';
  played = 0;
  /** It comes again and again within a run. */
  isStretch = false;
  /** Of its plan on several ranks. */
  readonly trials: Trials = new Trials();
  /** Runs since then that began like this one, were others, and new. */
  strays = 0;
  /** Why it has no plan and gets none; '' if it may. */
  refused = '';

  /** A run had its tasks. */
  came(): void {
    this.misses = 0;
    this.strays = 0;
  }

  get count(): number {
    return this.classes.length;
  }

  /** `after`: the tasks before it, by number. `rank`: the one that the program has named. */
  add(cls: TaskClass, insertion: TaskInsertion, after: readonly number[], rank?: number): void {
    this.classes.push(cls);
    this.insertions.add(insertion, after, rank);
  }

  /** Whether an insertion is number `n` of this sequence, whatever its parameters. `after` and `rank` as for `add`. */
  isAt(
    n: number,
    { cls, flows, priority, device }: TaskInsertion,
    after: readonly number[],
    rank?: number,
  ): boolean {
    const { insertions } = this;
    if (n >= insertions.count || insertions.classOf(n) !== cls) return false;
    if (insertions.priorityOf(n) !== priority || insertions.deviceOf(n) !== device) return false;
    if (insertions.ranks.get(n) !== rank) return false;
    for (let i = 0; i < cls.modes.length; i++)
      if (insertions.datum(n, i) !== flows[i]) return false;
    const before = insertions.after.get(n) ?? NONE;
    return before.length === after.length && before.every((b, i) => b === after[i]);
  }

  /** The same; parameters that differ become open. */
  follows(n: number, insertion: TaskInsertion, after: readonly number[], rank?: number): boolean {
    if (!this.isAt(n, insertion, after, rank)) return false;
    const { insertions } = this;
    const { cls, params } = insertion;
    for (let i = 0; i < cls.paramNames.length; i++) {
      if (Object.is(insertions.parameter(n, i), params[i]) || insertions.slot(n, i) !== '')
        continue;
      insertions.leaveOpen({ insertion: n, parameter: i, slot: `${n}.${i}` });
    }
    return true;
  }

  /** Opens the parameters in which another sequence of the same tasks differs, or which it leaves open. False if it has other tasks. */
  opensAs({ insertions: others, count }: Sequence): boolean {
    const { insertions } = this;
    if (count !== this.count) return false;
    for (let n = 0; n < count; n++) if (!insertions.hasTaskOf(others, n)) return false;
    for (let n = 0; n < count; n++)
      for (let i = 0; i < insertions.classOf(n).paramNames.length; i++)
        if (
          insertions.slot(n, i) === '' &&
          (others.slot(n, i) !== '' ||
            !Object.is(insertions.parameter(n, i), others.parameter(n, i)))
        )
          insertions.leaveOpen({ insertion: n, parameter: i, slot: `${n}.${i}` });
    return true;
  }
}
