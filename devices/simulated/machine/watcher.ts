// The simulated backend's reports about every record, for models of memory and order. A backend without a watcher
// has no cost from it.
import type { QueueId, SpaceId } from '../../handles.js';

export interface Watcher {
  /** A record was appended; it may start when `waitSeq` of `waitQueue` (or nothing: NO_QUEUE) is done. */
  issued(queue: QueueId, seq: number, waitQueue: QueueId, waitSeq: number): void;
  /** The engine saw all records of a queue up to `seq` complete. */
  seen(queue: QueueId, seq: number): void;
  started(queue: QueueId, seq: number): void;
  /** A record and its continuations are done. */
  finished(queue: QueueId, first: number, last: number): void;
  /** A kernel ended; `args` starts with the offsets of its flows. Called before `finished`. */
  exec(
    queue: QueueId,
    seq: number,
    space: SpaceId,
    task: number,
    status: number,
    args: ArrayLike<number>,
    nFlows: number,
  ): void;
  copy(
    queue: QueueId,
    seq: number,
    transfer: number,
    status: number,
    destination: SpaceId,
    destinationOffset: number,
    source: SpaceId,
    sourceOffset: number,
    bytes: number,
  ): void;
  /** A lane has read bytes of host space for other ranks; returns its knowledge at that moment. */
  sends(queue: QueueId, seq: number, offset: number, bytes: number): Int32Array;
  /** A lane announces bytes, which other ranks may read from now on; returns its knowledge at that moment. */
  offers(queue: QueueId, seq: number, space: number, offset: number, bytes: number): Int32Array;
  /** A lane asks for bytes of another rank: they may be written from now on, or no longer. */
  fetches(queue: QueueId, seq: number, space: number, offset: number, bytes: number): void;
  fetched(space: number, offset: number, bytes: number): void;
  /**
   * A lane has got bytes of another rank, sent with that knowledge. `isThere`: the network has written them (NetworkWatcher);
   * else the lane is about to.
   */
  receives(
    queue: QueueId,
    seq: number,
    space: number,
    offset: number,
    bytes: number,
    knowledge: Int32Array | undefined,
    isThere: boolean,
  ): void;
  fill(queue: QueueId, seq: number, space: SpaceId, offset: number, bytes: number): void;
}
