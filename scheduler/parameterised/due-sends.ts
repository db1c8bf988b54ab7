// Sends that a rank has not planned yet, because too many others wait: each is planned before the first task of the rank that stands
// behind the reader. So a send that waits long for its reader, or many of them, never keep a rank from its next tasks.

import type { Datum } from '../program/datum.js';
import { PriorityHeap } from './priority-heap.js';

/** A version of a datum that goes to a rank. */
export interface DueSend {
  readonly datum: Datum;
  readonly rank: number;
  readonly priority: number;
  readonly isStraight: boolean;
  /** Position of the first task of that rank that takes it. */
  position: number;
}

/** @internal */
export class DueSends {
  /** The smallest position has the largest priority. */
  private readonly heap: PriorityHeap<{ readonly priority: number; readonly send: DueSend }> =
    new PriorityHeap();

  /** Whether one comes before a position. */
  isDue(position: number): boolean {
    const { first } = this.heap;
    return first !== undefined && first.send.position < position;
  }

  add(send: DueSend): void {
    this.heap.add({ priority: -send.position, send });
  }

  /** Takes the first one; there must be one. */
  take(): DueSend {
    return this.heap.take().send;
  }
}
