// The lanes of this rank for receives: which of them are taken, and which receives are in line for one. A lane is free again
// when its receive is over. scheduler/ranks/rank-lanes.ts says which receive ahead of its version may take one.
//
// Invariants:
// - a receive that is not over has at most one lane, and is in line for one only while it has none;
// - the last free lane goes to a receive that has its memory: one whose version is announced, or one before which every
//   task has been issued. Either ends without tasks that were not issued before it, and gives the lane back. It waits behind no
//   receive that is held. So no receive with memory waits for a lane while all lanes belong to receives without memory.

import { guards } from '../guards.js';
import { NO_QUEUE, type QueueId, type TaskId } from '../handles.js';

export class ReceiveLanes {
  readonly all: readonly QueueId[];
  /** Receives without a lane that are to be commanded ahead of their versions, in program order. */
  readonly held: TaskId[] = [];
  /** Receives without a lane that have their memory, and may take any lane. */
  readonly heldWithMemory: TaskId[] = [];
  /** 1: a receive has the lane. By queue. */
  private readonly taken: Uint8Array;
  /** Number of lanes that no receive has. */
  private freeCount: number;
  /** The receive that has the lane. By queue. */
  private readonly holders: Int32Array;

  /** `queues`: the number of queues of the machine. */
  constructor(lanes: readonly QueueId[], queues: number) {
    this.all = lanes;
    this.taken = new Uint8Array(queues);
    this.freeCount = lanes.length;
    this.holders = new Int32Array(queues);
  }

  /** A free lane, or NO_QUEUE. */
  get free(): QueueId {
    if (this.freeCount === 0) return NO_QUEUE;
    for (const lane of this.all) if (this.taken[lane] === 0) return lane;
    return NO_QUEUE;
  }

  get isOneLeft(): boolean {
    return this.freeCount === 1;
  }

  take(lane: QueueId, id: TaskId): void {
    this.taken[lane] = 1;
    this.freeCount--;
    this.holders[lane] = id;
  }

  giveBack(lane: QueueId): void {
    this.taken[lane] = 0;
    this.freeCount++;
  }

  /** The lane of the middle one of the receives that come before `id` in the program, or NO_QUEUE. */
  before(id: TaskId): QueueId {
    const { all, taken, holders } = this;
    const comesBefore = (lane: QueueId, other: number): boolean =>
      taken[lane] === 1 && ((holders[lane] - other) | 0) < 0;
    let count = 0;
    for (const lane of all) if (comesBefore(lane, id)) count++;
    const middle = count >> 1;
    // Neither sorts nor makes a list: each pass of an engine that waits for a lane looks for it.
    for (const lane of all) {
      if (!comesBefore(lane, id)) continue;
      let rank = 0;
      for (const other of all) if (comesBefore(other, holders[lane])) rank++;
      if (rank === middle) return lane;
    }
    return NO_QUEUE;
  }

  /** Takes any lane for receive `id`, which has its memory. NO_QUEUE: it is in line for one. */
  takeAny(id: TaskId): QueueId {
    const isBehind = this.held.length > 0 && !guards.pullPasses;
    const lane = this.free;
    if (lane === NO_QUEUE || isBehind) {
      this.heldWithMemory.push(id);
      return NO_QUEUE;
    }
    this.take(lane, id);
    return lane;
  }
}
