// The tasks that can be inserted: the largest priority first, among equals the one that was known first.
// A binary heap; without priorities it is never out of order, so that taking costs a few comparisons.

import type { GraphTask } from './graph-task.js';

/** @internal */
export class ReadyTasks {
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

  /** Takes the first one; there must be one. */
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
