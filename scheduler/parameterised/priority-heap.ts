// Items with priorities: the largest priority first, among equals the one that was added first.
// Invariant: no item comes after one below it in the heap.

/** A binary heap. @internal */
export class PriorityHeap<T extends { readonly priority: number }> {
  private readonly heap: T[] = [];
  private readonly turns: number[] = [];
  private turn = 0;

  get size(): number {
    return this.heap.length;
  }

  /** The one that comes next; undefined if there is none. */
  get first(): T | undefined {
    return this.heap[0];
  }

  add(item: T): void {
    const { heap, turns } = this;
    const turn = this.turn++;
    let at = heap.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      // Turns grow, so only a larger priority goes up.
      if (heap[above].priority >= item.priority) break;
      heap[at] = heap[above];
      turns[at] = turns[above];
      at = above;
    }
    heap[at] = item;
    turns[at] = turn;
  }

  /** Takes the first one; there must be one. */
  take(): T {
    const { heap, turns } = this;
    const first = heap[0];
    const last = heap.pop() as T;
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

  private isBefore(at: number, item: T, turn: number): boolean {
    const { priority } = this.heap[at];
    return priority > item.priority || (priority === item.priority && this.turns[at] < turn);
  }
}
