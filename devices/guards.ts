// The guards of the engine, by name: every event edge, count, rule and wake-up whose absence would corrupt data or
// stop progress. They are constants: in a normal process the object is frozen and the compiler folds them away.
//
// Only where HEADRACE_MUTATIONS=1 was set before this file was loaded can a test switch one off, to prove that some
// simulated test turns red without it (`npm run test:mutations`, docs/reliability.md).
// Invariant: all are true outside of such a test.

/** One switch per guard. */
export interface Guards {
  /** A kernel follows the event that wrote what it reads (stages/exec.ts). */
  execReadAfterWrite: boolean;
  /** A kernel follows the event that wrote what it overwrites. */
  execWriteAfterWrite: boolean;
  /** A kernel follows the readers of what it overwrites. */
  execWriteAfterRead: boolean;
  /** A kernel follows its control predecessors. */
  execControl: boolean;
  /** A kernel leaves its event with what it reads. */
  execRegistersRead: boolean;
  /** A kernel leaves its event with what it writes. */
  execRegistersWrite: boolean;
  /** A JavaScript body waits until what it uses was written. */
  bodyReadAfterWrite: boolean;
  /** A version is announced to other ranks only when its writer is over, the first time and every other (stages/exec.ts). */
  announceWritten: boolean;
  /** A JavaScript body waits for the readers of what it overwrites. */
  bodyWriteAfterRead: boolean;
  /** An asynchronous body that has inserted tasks keeps no others from starting (scheduler/script-bodies.ts). */
  parentSlots: boolean;
  /** A body gets space where only bodies that wait are under way. */
  spaceForBodies: boolean;
  /** Successors keep their tasks when the window moves its rows (scheduler/window.ts). */
  movedEdges: boolean;
  /** ... and so do completions of what is under way. */
  movedFlight: boolean;
  /** A JavaScript body waits for its control predecessors. */
  bodyControl: boolean;
  /** A write gives up all other copies. */
  writeInvalidates: boolean;
  /** A copy between spaces follows the event that wrote its source (devices/transfers.ts). */
  copyReadAfterWrite: boolean;
  /** ... the event that wrote its destination. */
  copyWriteAfterWrite: boolean;
  /** ... the readers of its destination. */
  copyWriteAfterRead: boolean;
  /** ... and leaves its event with its source as a reader. */
  copyRegistersRead: boolean;
  /** ... and with its destination as the writer. */
  copyRegistersWrite: boolean;
  /** Source and destination of a copy stay until its end was seen. */
  copyPins: boolean;
  /** What a task uses stays until its end was seen. */
  taskPins: boolean;
  /** The first in line for memory is not overtaken. */
  ticket: boolean;
  /** A task that gets only part of its memory gives that back. */
  allOrNothing: boolean;
  /** Making room never takes the task's own inputs. */
  pinBeforeTaking: boolean;
  /** Dirty copies are written back when clean ones do not suffice. */
  writeBack: boolean;
  /** Two devices short of memory do not hand a copy to and fro (devices/eviction.ts). */
  handOverOneWay: boolean;
  /** Fragmented memory is emptied when nothing else can help. */
  compaction: boolean;
  /** A task that fits nowhere is refused at insertion. */
  feasibility: boolean;
  /** Memory that becomes free or evictable wakes the first in line. */
  memoryWake: boolean;
  /** Room in a ring wakes those who wait for it. */
  slotWake: boolean;
  /** An event that happened wakes the bodies that wait for it. */
  eventWake: boolean;
  /** Data whose writer failed or was cancelled cannot be read. */
  poisonOutputs: boolean;
  /** Whether a datum has a value is decided by its last writer in program order, not by the last that was seen to end. */
  laterWriterDecides: boolean;
  /** What was computed behind a failed transfer cannot be read. */
  poisonBehindTransfer: boolean;
  /** A failed run cancels what its queues have not started. */
  cancelQueued: boolean;
  /** A failed run drops what was not issued. */
  dropUnissued: boolean;
  /** What follows a dropped task follows what that one had to follow (scheduler/dropped-tasks.ts). */
  dropKeepsOrder: boolean;
  /** A dropped task gives back its pins. */
  dropReleasesPins: boolean;
  /** What the network wrote to a device is flushed before it counts as arrived (devices/network-fetches.ts). */
  networkFlush: boolean;
  /** A receive is over, and what follows it is released, only when its bytes are there (scheduler/ranks.ts). */
  receiveHeld: boolean;
  /** An offered copy stays as it is until every receiver has it. */
  offerHeld: boolean;
  /** One receive per version and rank (scheduler/rank-plan.ts). */
  receiveOnce: boolean;
  /** Offers leave room for the largest task in one piece (stages/comm-in.ts). */
  offerRoom: boolean;
  /** A task that offers leave no room lets others pass (stages/alloc.ts). */
  offerAside: boolean;
  /** Room on the host is not waited for where offers of only copies hold all that is pinned (stages/alloc.ts). */
  hostOffers: boolean;
  /** Memory that a movement gives back in the middle of a pass wakes those who wait for it. */
  movementWake: boolean;
  /** Messages that found no room are tried again. */
  messageRetry: boolean;
  /** A task follows those of other ranks that it was inserted `after` (scheduler/rank-after.ts). */
  afterTokens: boolean;
  /** Tasks with pulled inputs reserve no more than their share of a device (scheduler/rank-pulls.ts). */
  pullShare: boolean;
  /** Ranks whose programs differ are told so (scheduler/rank-runs.ts). */
  graphDigest: boolean;
  /** Ranks that wait for each other in calls that differ are told so (scheduler/rank-calls.ts). */
  callOrder: boolean;
  /** On several ranks runs that are open at the same time fail together (scheduler/rank-runs.ts). */
  failTogether: boolean;
}

const all: Guards = {
  execReadAfterWrite: true,
  execWriteAfterWrite: true,
  execWriteAfterRead: true,
  execControl: true,
  execRegistersRead: true,
  execRegistersWrite: true,
  parentSlots: true,
  spaceForBodies: true,
  movedEdges: true,
  movedFlight: true,
  bodyReadAfterWrite: true,
  announceWritten: true,
  bodyWriteAfterRead: true,
  bodyControl: true,
  writeInvalidates: true,
  copyReadAfterWrite: true,
  copyWriteAfterWrite: true,
  copyWriteAfterRead: true,
  copyRegistersRead: true,
  copyRegistersWrite: true,
  copyPins: true,
  taskPins: true,
  ticket: true,
  allOrNothing: true,
  pinBeforeTaking: true,
  writeBack: true,
  handOverOneWay: true,
  compaction: true,
  feasibility: true,
  memoryWake: true,
  slotWake: true,
  eventWake: true,
  poisonOutputs: true,
  laterWriterDecides: true,
  poisonBehindTransfer: true,
  cancelQueued: true,
  dropUnissued: true,
  dropKeepsOrder: true,
  dropReleasesPins: true,
  networkFlush: true,
  receiveHeld: true,
  offerHeld: true,
  receiveOnce: true,
  offerRoom: true,
  offerAside: true,
  hostOffers: true,
  movementWake: true,
  messageRetry: true,
  afterTokens: true,
  pullShare: true,
  graphDigest: true,
  callOrder: true,
  failTogether: true,
};

/** Whether guards can be switched off in this process. */
export const guardsCanBeRemoved: boolean = process.env['HEADRACE_MUTATIONS'] === '1';

export const guards: Readonly<Guards> = guardsCanBeRemoved ? all : Object.freeze(all);

/** Switches one guard off (or on again), in test processes only. */
export function setGuard(name: keyof Guards, on: boolean): void {
  if (!guardsCanBeRemoved)
    throw new Error('guards are constants unless HEADRACE_MUTATIONS=1 is set');
  all[name] = on;
}

/** Names of all guards. */
export const guardNames: readonly (keyof Guards)[] = Object.keys(all) as (keyof Guards)[];
