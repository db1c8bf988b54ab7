// Sends that a rank has not planned yet, because too many others wait: each is planned before the first task of the rank that stands
// behind the reader. So a send that waits long for its reader, or many of them, never keep a rank from its next tasks.
// Invariant: the first one has the smallest position.

import type { Datum } from '../program/datum.js';

/** A version of a datum that goes to a rank. */
export interface DueSend {
  readonly datum: Datum;
  readonly rank: number;
  readonly priority: number;
  /** Position of the first task of that rank that takes it. */
  position: number;
}

/** A binary heap. @internal */
export class DueSends {
  private readonly heap: DueSend[] = [];

  /** Whether one comes before a position. */
  isDue(position: number): boolean {
    return this.heap.length > 0 && this.heap[0].position < position;
  }

  add(send: DueSend): void {
    const { heap } = this;
    let at = heap.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (heap[above].position <= send.position) break;
      heap[at] = heap[above];
      at = above;
    }
    heap[at] = send;
  }

  /** Takes the first one; there must be one. */
  take(): DueSend {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop() as DueSend;
    const size = heap.length;
    if (size === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= size) break;
      if (below + 1 < size && heap[below + 1].position < heap[below].position) below++;
      if (heap[below].position >= last.position) break;
      heap[at] = heap[below];
      at = below;
    }
    heap[at] = last;
    return first;
  }
}
