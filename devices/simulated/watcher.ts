// What the simulated backend tells about every record, for models of memory and order. A backend without a watcher
// pays nothing for it.

export interface Watcher {
  /** A record was appended; it may start when `waitSeq` of `waitQueue` (or nothing: NO_QUEUE) is done. */
  issued(queue: number, seq: number, waitQueue: number, waitSeq: number): void;
  /** The engine saw all records of a queue up to `seq` complete. */
  seen(queue: number, seq: number): void;
  started(queue: number, seq: number): void;
  /** A record and its continuations are done. */
  finished(queue: number, first: number, last: number): void;
  /** A kernel ended; `args` starts with the offsets of its flows. Called before `finished`. */
  exec(
    queue: number,
    seq: number,
    space: number,
    task: number,
    status: number,
    args: ArrayLike<number>,
    nFlows: number,
  ): void;
  copy(
    queue: number,
    seq: number,
    transfer: number,
    status: number,
    destination: number,
    destinationOffset: number,
    source: number,
    sourceOffset: number,
    bytes: number,
  ): void;
  fill(queue: number, seq: number, space: number, offset: number, bytes: number): void;
}
