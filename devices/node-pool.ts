// Singly linked lists over a pool of (value, extra, next) nodes in typed arrays, for the many short lists of the
// engine: successors of a task, readers of a copy, waiters of a resource. No allocation after warm-up.
// Invariant: a node is in exactly one list or in the free list. A list is named by its first node, -1 = empty.
import type { Column } from './handles.js';
import { resized } from './resized.js';

export class NodePool<V extends number = number> {
  value: Column<Int32Array, V>;
  extra: Int32Array;
  next: Int32Array;
  private freeHead: number = -1;
  private used = 0;
  /** Nodes now in lists. */
  live = 0;

  constructor(initial = 1024) {
    this.value = new Int32Array(initial) as Column<Int32Array, V>;
    this.extra = new Int32Array(initial);
    this.next = new Int32Array(initial);
  }

  /** Puts a node before `head` and returns the new head. */
  push(head: number, value: V, extra: number): number {
    let n = this.freeHead;
    if (n >= 0) this.freeHead = this.next[n];
    else {
      n = this.used++;
      if (n === this.next.length) this.grow();
    }
    this.value[n] = value;
    this.extra[n] = extra;
    this.next[n] = head;
    this.live++;
    return n;
  }

  /** Frees one node; returns the node after it. */
  free(n: number): number {
    const after = this.next[n];
    this.next[n] = this.freeHead;
    this.freeHead = n;
    this.live--;
    return after;
  }

  /** Frees a whole list; returns -1, the empty list. */
  freeList(head: number): number {
    if (head < 0) return -1;
    const { next } = this;
    let count = 1;
    let last = head;
    for (; next[last] >= 0; last = next[last]) count++;
    next[last] = this.freeHead;
    this.freeHead = head;
    this.live -= count;
    return -1;
  }

  private grow(): void {
    const length = this.next.length * 2;
    this.value = resized(this.value, length);
    this.extra = resized(this.extra, length);
    this.next = resized(this.next, length);
  }
}
