// A stage is one transition function over one task row. It is idempotent. It advances, waits for exactly one
// named reason, or fails. Only the pipeline (pipeline.ts) calls the stages, in order.

/** The reasons for which a task waits. Every wait has one reason and is on the wake list of that reason. */
export const WaitReason = {
  none: 0,
  /** Device or host memory: on the FIFO of its space; the first in line holds the ticket. */
  memory: 1,
  /** A copy that is being written or moved (host bodies in JavaScript only; queues wait by event). */
  copy: 2,
  /** A datum that another rank sends. */
  receive: 3,
  /** Room in a queue's ring. */
  slot: 4,
  /** Bytes of its device that are offered to other ranks: it stepped out of the line until an offer is over. */
  credit: 5,
} as const;

/** Names of the reasons by number, for reports. */
export const WAIT_NAMES: readonly string[] = [
  'none',
  'memory',
  'copy',
  'receive',
  'slot',
  'credit',
];

/** Outcome of a transition: go on, stay (parked on a wake list), or end here. */
export const Outcome = {
  advance: 0,
  wait: 1,
  /** The task failed; the reason was handed to `context.fail`. */
  fail: 2,
  /** The task is on its way in its queue; completion continues it. */
  issued: 3,
  /** A JavaScript body was started; its end continues the task. */
  running: 4,
} as const;
