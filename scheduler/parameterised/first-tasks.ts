// The tasks that have no input from another task, found in the ranges of the classes a portion at a time.

import { AllIndices } from './all-indices.js';
import type { GraphClass } from './graph-class.js';
import { isFirst, taskAt } from './graph-task.js';
import type { ReadyTasks } from './ready-tasks.js';

/** @internal */
export class FirstTasks {
  /** Tasks in the ranges that were looked at, by class. */
  readonly counts: number[];
  private readonly classes: readonly GraphClass[];
  /** The class whose ranges are looked at. */
  private number = 0;
  private search: AllIndices | undefined;

  constructor(classes: readonly GraphClass[]) {
    this.counts = classes.map(() => 0);
    this.classes = classes;
  }

  /** Adds up to `most` tasks; fewer only if there are no more. */
  take(ready: ReadyTasks, most: number): void {
    const { classes, counts } = this;
    for (let found = 0; found < most && this.number < classes.length; ) {
      const cls = classes[this.number];
      this.search ??= new AllIndices(cls.indexNames, cls.starts);
      const indices = this.search.next();
      if (indices === undefined) {
        this.number++;
        this.search = undefined;
        continue;
      }
      counts[cls.number]++;
      // Of a task that is none, the first source from another task says so.
      if (!cls.hasStarts && !isFirst(cls, indices)) continue;
      const task = taskAt(cls, indices);
      if (task.missing > 0) continue;
      ready.add(task);
      found++;
    }
  }
}
