// The tasks that have no input from another task, found in the ranges of the classes a portion at a time.

import type { Indices } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { taskAt } from './graph-task.js';
import type { ReadyTasks } from './ready-tasks.js';

/** @internal */
export class FirstTasks {
  /** Tasks in the ranges that were looked at, by class. */
  readonly counts: number[];
  private readonly search: Generator<readonly [GraphClass, Indices]>;

  constructor(classes: readonly GraphClass[]) {
    this.counts = classes.map(() => 0);
    this.search = candidates(classes);
  }

  /** Adds up to `most` tasks; fewer only if there are no more. */
  take(ready: ReadyTasks, most: number): void {
    for (let found = 0; found < most; ) {
      const { value, done } = this.search.next();
      if (done === true) return;
      const [cls, indices] = value;
      this.counts[cls.number]++;
      const task = taskAt(cls, indices);
      if (task.missing > 0) continue;
      ready.add(task);
      found++;
    }
  }
}

function* candidates(classes: readonly GraphClass[]): Generator<readonly [GraphClass, Indices]> {
  for (const cls of classes) for (const indices of cls.tasks(cls.starts)) yield [cls, indices];
}
