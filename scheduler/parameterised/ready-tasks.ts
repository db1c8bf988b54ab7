// The tasks that can be inserted: the largest priority first, among equals the one that was known first. Those of a graph with priorities
// are in a PriorityHeap (priority-heap.ts).

import type { GraphTask } from './graph-task.js';

/** @internal */
export interface ReadyTasks {
  readonly size: number;
  add(task: GraphTask): void;
  /** Takes the first one; there must be one. */
  take(): GraphTask;
}

/** Tasks of one priority: a ring. @internal */
export class ReadyQueue implements ReadyTasks {
  private ring: (GraphTask | undefined)[] = new Array<undefined>(64).fill(undefined);
  private head = 0;
  size = 0;

  add(task: GraphTask): void {
    if (this.size === this.ring.length) this.grow();
    this.ring[(this.head + this.size++) & (this.ring.length - 1)] = task;
  }

  /** The one that comes next; there must be one. */
  get first(): GraphTask {
    return this.ring[this.head] as GraphTask;
  }

  /** All of them, in order. */
  *all(): Generator<GraphTask> {
    for (let n = 0; n < this.size; n++)
      yield this.ring[(this.head + n) & (this.ring.length - 1)] as GraphTask;
  }

  take(): GraphTask {
    const { ring, head } = this;
    const task = ring[head] as GraphTask;
    ring[head] = undefined;
    this.head = (head + 1) & (ring.length - 1);
    this.size--;
    return task;
  }

  private grow(): void {
    const { ring, head } = this;
    this.ring = [
      ...ring.slice(head),
      ...ring.slice(0, head),
      ...new Array<undefined>(ring.length).fill(undefined),
    ];
    this.head = 0;
  }
}
