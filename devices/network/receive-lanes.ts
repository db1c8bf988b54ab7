// The lanes of this rank for receives: which of them are taken, and which receives are in line for one. A lane is free again
// when its receives are over. scheduler/ranks/rank-lanes.ts says which receive ahead of its version may take one.
//
// A receive of a datum stands behind the one before it of the same datum, in its lane: it waits for that one anyway, because the tasks
// that use the earlier version come between them. So a datum that comes again and again needs one lane, and a rank may run as far
// ahead of other ranks as its queues are long. It does not do so past a receive that waits for a lane, or the lane would never be free.
//
// Invariants:
// - a receive that is not over has at most one lane, and is in line for one only while it has none;
// - the receives of a lane are of one datum, and in program order. So a receive waits in its lane for those only that come before it;
// - the last free lane goes to a receive that has its memory: one whose version is announced, or one before which every
//   task has been issued. Either ends without tasks that were not issued before it, and gives the lane back. It waits behind no
//   receive that is held. So no receive with memory waits for a lane while all lanes belong to receives without memory.

import { HeadraceError } from '../errors.js';
import { Fifo } from '../fifo.js';
import { guards } from '../guards.js';
import {
  type Column,
  type DatumId,
  NO_DATUM,
  NO_QUEUE,
  type QueueId,
  type TaskId,
} from '../handles.js';

export class ReceiveLanes {
  readonly all: readonly QueueId[];
  /** Receives without a lane that are to be commanded ahead of their versions, in program order. */
  readonly held: TaskId[] = [];
  /** Receives without a lane that have their memory, and may take any lane. */
  readonly heldWithMemory: TaskId[] = [];
  /** Number of lanes that no receive has. */
  private freeCount: number;
  /** The receives that have a lane, in program order. By queue. */
  private readonly holders: readonly Fifo<TaskId>[];
  /** The datum whose next receive may stand behind them, or NO_DATUM. By queue. */
  private readonly data: Column<Int32Array, DatumId>;

  /** `queues`: the number of queues of the machine. */
  constructor(lanes: readonly QueueId[], queues: number) {
    this.all = lanes;
    this.freeCount = lanes.length;
    this.holders = Array.from({ length: queues }, () => new Fifo<TaskId>(4));
    this.data = new Int32Array(queues).fill(NO_DATUM) as Column<Int32Array, DatumId>;
  }

  /** A free lane, or NO_QUEUE. */
  get free(): QueueId {
    if (this.freeCount === 0) return NO_QUEUE;
    for (const lane of this.all) if (this.holders[lane].length === 0) return lane;
    return NO_QUEUE;
  }

  get isOneLeft(): boolean {
    return this.freeCount === 1;
  }

  /** Whether more than half of the lanes are free, and so not only the last one. */
  get isHalfFree(): boolean {
    return this.freeCount > 1 && this.freeCount * 2 > this.all.length;
  }

  /** Receive `id` takes a free lane. `d`: its datum, if the next receive of that may stand behind it. */
  take(lane: QueueId, id: TaskId, d: DatumId = NO_DATUM): void {
    this.freeCount--;
    this.holders[lane].push(id);
    this.data[lane] = d;
  }

  /** The lane in which receive `id` of datum `d` may stand behind the one before it, or NO_QUEUE. */
  behind(id: TaskId, d: DatumId): QueueId {
    const { held } = this;
    if (held.length > 0 && ((held[0] - id) | 0) < 0) return NO_QUEUE;
    for (const lane of this.all) {
      if (guards.laneOfDatum ? this.data[lane] === d : this.data[lane] !== NO_DATUM) return lane;
    }
    return NO_QUEUE;
  }

  /** Receive `id` stands behind the others in a lane. */
  join(lane: QueueId, id: TaskId): void {
    this.holders[lane].push(id);
  }

  /** Receive `id` is over, or was dropped before it was commanded. True: the lane is free now. */
  giveBack(lane: QueueId, id: TaskId): boolean {
    const receives = this.holders[lane];
    // One that was not commanded is the last: the next one follows the tasks that use its version.
    const taken = receives.peek() === id ? receives.shift() : receives.pop();
    if (taken !== id)
      throw new HeadraceError('ERR_INTERNAL', `lane ${lane}: task ${taken} is not over, but ${id}`);
    if (receives.length > 0) return false;
    this.freeCount++;
    this.data[lane] = NO_DATUM;
    return true;
  }

  /**
   * The lane that becomes free by the end of the middle one of the receives that come before `id` in the program, or NO_QUEUE.
   */
  before(id: TaskId): QueueId {
    const { all } = this;
    let count = 0;
    for (const lane of all) if (this.isOverBefore(lane, id)) count++;
    const middle = count >> 1;
    // Neither sorts nor makes a list: each pass of an engine that waits for a lane looks for it.
    for (const lane of all) {
      if (!this.isOverBefore(lane, id)) continue;
      const last = this.lastOf(lane);
      let rank = 0;
      for (const other of all) if (this.isOverBefore(other, last)) rank++;
      if (rank === middle) return lane;
    }
    return NO_QUEUE;
  }

  /** The last receive of a lane that is not free. */
  private lastOf(lane: QueueId): TaskId {
    const receives = this.holders[lane];
    return receives.at(receives.length - 1);
  }

  /** Whether all receives of a lane come before `id`, and there are any. */
  private isOverBefore(lane: QueueId, id: TaskId): boolean {
    return this.holders[lane].length > 0 && ((this.lastOf(lane) - id) | 0) < 0;
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
