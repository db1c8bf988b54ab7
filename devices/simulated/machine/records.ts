// The rings of a simulated machine: the records of all queues as columns, at queue * capacity + slot.
// Invariant: a record keeps its slot until `capacity` further ones were written to its queue.

import { Status } from '../../backend.js';
import { type Column, NO_QUEUE, type QueueId } from '../../handles.js';

export const Op = {
  nop: 0,
  wait: 1,
  exec: 2,
  copy: 3,
  fill: 4,
  send: 5,
  receive: 6,
  offer: 7,
  deliver: 8,
} as const;
/** Numbers that fit in a record; longer argument lists continue in the slots behind. */
export const ARGS = 8;

export class Records {
  readonly capacity: number;
  readonly op: Uint8Array;
  /** Slots that the record occupies. */
  readonly span: Uint16Array;
  /** Kernel of an exec; spaces of a copy. */
  readonly what: Int32Array;
  readonly task: Int32Array;
  readonly run: Int32Array;
  readonly flows: Int32Array;
  readonly arguments: Int32Array;
  readonly waitQueue: Column<Int16Array, QueueId>;
  readonly waitSeq: Int32Array;
  readonly outcome: Int32Array;
  readonly startAt: Float64Array;
  readonly endAt: Float64Array;
  readonly args: Float64Array;
  private readonly mask: number;

  constructor(queues: number, capacity: number) {
    this.capacity = capacity;
    this.mask = capacity - 1;
    const slots = queues * capacity;
    this.op = new Uint8Array(slots);
    this.span = new Uint16Array(slots);
    this.what = new Int32Array(slots);
    this.task = new Int32Array(slots);
    this.run = new Int32Array(slots);
    this.flows = new Int32Array(slots);
    this.arguments = new Int32Array(slots);
    this.waitQueue = new Int16Array(slots) as Column<Int16Array, QueueId>;
    this.waitSeq = new Int32Array(slots);
    this.outcome = new Int32Array(slots);
    this.startAt = new Float64Array(slots);
    this.endAt = new Float64Array(slots);
    this.args = new Float64Array(slots * ARGS);
  }

  slotOf(queue: QueueId, seq: number): number {
    return queue * this.capacity + ((seq - 1) & this.mask);
  }

  /** Writes the fixed part of record `seq`; returns its slot. */
  // biome-ignore lint/complexity/useMaxParams: the words of one ring record in their order, from this folder only.
  write(
    queue: QueueId,
    seq: number,
    op: number,
    task: number,
    run: number,
    waitQueue: QueueId,
    waitSeq: number,
  ): number {
    const slot = this.slotOf(queue, seq);
    this.op[slot] = op;
    this.span[slot] = 1;
    this.task[slot] = task;
    this.run[slot] = run;
    this.waitQueue[slot] = waitQueue;
    this.waitSeq[slot] = waitSeq;
    this.outcome[slot] = Status.ok;
    return slot;
  }

  /** Copies an argument list of any length into a record and the slots behind it. */
  setArguments(queue: QueueId, slot: number, list: ArrayLike<number>, count: number): void {
    const base = queue * this.capacity * ARGS;
    const within = slot * ARGS - base;
    const wrap = this.capacity * ARGS - 1;
    for (let i = 0; i < count; i++) this.args[base + ((within + i) & wrap)] = list[i];
  }

  /** The argument list of a record; valid until the slot is used again. */
  argumentsOf(queue: QueueId, slot: number): Float64Array {
    const count = this.arguments[slot];
    const at = slot * ARGS;
    const end = (queue + 1) * this.capacity * ARGS;
    if (at + count <= end) return this.args.subarray(at, at + count);
    const list = new Float64Array(count);
    const wrap = this.capacity * ARGS;
    for (let i = 0; i < count; i++) list[i] = this.args[at + i < end ? at + i : at + i - wrap];
    return list;
  }

  waits(slot: number): boolean {
    return this.waitQueue[slot] !== NO_QUEUE;
  }
}
