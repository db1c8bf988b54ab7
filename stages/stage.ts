// What a stage is: one transition function over one task row, idempotent, that advances, waits for exactly one
// named reason, or fails. The pipeline (pipeline.ts) calls them in order; nothing else does.
import type { StageContext } from './context.js';

/** Why a task waits. Every wait has one reason and sits on that reason's wake list. */
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
  /** A copy that is being sent and may not be overwritten. */
  send: 5,
  /** Bytes of its device that are offered to other ranks: it stepped out of the line until an offer is over. */
  credit: 6,
} as const;

/** Names of the reasons by number, for reports. */
export const WAIT_NAMES: readonly string[] = [
  'none',
  'memory',
  'copy',
  'receive',
  'slot',
  'send',
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

/** A transition function. */
export type Stage = (context: StageContext, row: number) => number;
