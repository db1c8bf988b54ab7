// The tasks that can be inserted: the largest priority first, among equals the one that was known first.

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

/** Tasks with priorities: a binary heap. @internal */
export class ReadyHeap implements ReadyTasks {
  private readonly heap: GraphTask[] = [];
  private readonly turns: number[] = [];
  private turn = 0;

  get size(): number {
    return this.heap.length;
  }

  add(task: GraphTask): void {
    const { heap, turns } = this;
    const turn = this.turn++;
    let at = heap.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      // Turns grow, so only a larger priority goes up.
      if (heap[above].priority >= task.priority) break;
      heap[at] = heap[above];
      turns[at] = turns[above];
      at = above;
    }
    heap[at] = task;
    turns[at] = turn;
  }

  take(): GraphTask {
    const { heap, turns } = this;
    const first = heap[0];
    const last = heap.pop() as GraphTask;
    const turn = turns.pop() as number;
    const size = heap.length;
    if (size === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= size) break;
      if (below + 1 < size && this.isBefore(below + 1, heap[below], turns[below])) below++;
      if (!this.isBefore(below, last, turn)) break;
      heap[at] = heap[below];
      turns[at] = turns[below];
      at = below;
    }
    heap[at] = last;
    turns[at] = turn;
    return first;
  }

  private isBefore(at: number, task: GraphTask, turn: number): boolean {
    const { priority } = this.heap[at];
    return priority > task.priority || (priority === task.priority && this.turns[at] < turn);
  }
}
