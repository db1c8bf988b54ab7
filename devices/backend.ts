// The port between the engine and the machine: commands go in, completions come out.
// Two implementations exist: native threads (native/backend.ts) and virtual time (devices/simulated/).
//
// Every queue is in order. A command's event is (queue, sequence number); `completed[queue]` is the last
// sequence number known to be finished. Sequence numbers wrap as int32: compare by difference.
// Invariant that every caller keeps: a wait names only commands that were issued before it, so queues that wait
// for each other cannot form a cycle.

import type { NativeKernelSource, NativePlanQueue, NativePlay } from '../native/contract.js';
import type { QueueId, SpaceId, TaskId } from './handles.js';

export {
  type NativeKernelSource as KernelSource,
  type NativePlay,
  Opcode,
  PlanElement,
  PlanOpen,
  Record as RecordLayout,
  Status,
  Times as RecordTimes,
} from '../native/contract.js';

/** A memory space: 0 is the host, g is GPU g-1. */
export interface SpaceInfo {
  readonly kind: 'host' | 'emulated' | 'cuda' | 'hip' | 'simulated';
  readonly name: string;
  /** Usable bytes. */
  readonly bytes: number;
}

/** An in-order executor. Its place in `Backend.queues` is its handle. */
export interface QueueInfo {
  readonly kind: 'worker' | 'script' | 'compute' | 'h2d' | 'd2h' | 'peer' | 'lane';
  /** Space whose memory its kernels use (0 for workers, script workers and lanes). */
  readonly space: SpaceId;
  /** Source space of a peer queue, else -1. */
  readonly peer: SpaceId;
}

/** Whether tasks run on a queue. The others copy, or carry messages. */
export function executesKernels({ kind }: QueueInfo): boolean {
  return kind === 'worker' || kind === 'script' || kind === 'compute';
}

/**
 * Commands of lanes, and their arguments after offset, bytes and era.
 *
 * `send`: per destination its rank and the key of its receive. The bytes go to other ranks. The lane sends nothing while a
 * record has failed that the engine has not handled (`handledFailures`), or once the run is cancelled. The command is over
 * when the bytes may change.
 *
 * `offer`: the number for `departed`, a key, the memory space of the bytes, the priority of the task, then destinations as in
 * `send`. It announces a long version, under the
 * conditions of a send, and is over when the announcement has left. The port's `departed` follows when no rank needs the
 * bytes any more, or when nothing was announced (devices/network/port.ts). Without destinations the version is passed on: to
 * the ranks that came with the one of that key.
 *
 * `receive`: the key. It is over when the version with this era and key has come and is in host space. For a long version whose
 * announcement has come also the memory space into which it goes, its way, and who must see the bytes before the command is
 * over, as one number (`arrivalNumber` of devices/network/ways.ts).
 */
export type LaneCommand = 'send' | 'offer' | 'receive';

/** Graphs of the GPUs' driver: the commands of a plan, launched as one piece of work (native/gpu/graphs.h). */
export interface CommandGraphs {
  /** Whether the driver of the space has graphs. */
  has(space: SpaceId): boolean;
  /**
   * Makes a graph of the lists, whose queues are all of GPUs that have graphs, and returns the record that launches it in the
   * queue of the first list. It is over when the work on all GPUs is. Nothing may be under way. Throws `ERR_DRIVER` with the reason when it cannot be captured.
   */
  capture(lists: readonly NativePlanQueue[]): Int32Array;
  /**
   * The task that the newest launch has failed with: the index of its list, and of its record. Undefined: the launch
   * failed as a whole.
   */
  failure(queue: QueueId, record: Int32Array): readonly [list: number, record: number] | undefined;
  release(queue: QueueId, record: Int32Array): void;
}

/** A task class whose body script workers run. */
export interface ScriptClass {
  readonly name: string;
  /** URL of the module that exports it under its name. */
  readonly module: string;
  /** Names of its flows, members of lists one by one. */
  readonly flows: readonly string[];
  /** Its flows and parameters: the class that the module exports must have the same ones. */
  readonly signature: string;
}

/**
 * Script workers: threads that run JavaScript bodies, each with a queue of kind `script`. The arguments of their commands are
 * the offsets of the data in host space, the parameters, and the lengths of the data in elements.
 */
export interface ScriptWorkers {
  /** Makes a class known, and starts the workers if they have not started. Returns its number for `exec`: equal classes have one. */
  define(cls: ScriptClass): number;
  /** What the body of a failed record threw, or what ended its worker; undefined: nothing is known. Once. */
  thrown(queue: QueueId, seq: number): unknown;
  /** Ends the workers. No body runs. */
  close(): Promise<void>;
}

/** A parameter of a kernel that is read from memory when the kernel starts: its position and the type of the element. */
export interface SteeredKernelParameter {
  readonly position: number;
  readonly element: 'f64' | 'i32';
}

export interface Backend {
  readonly kind: 'native' | 'simulated';
  /** The engine keeps its last stimuli, for the stories of tasks and data. */
  readonly keepsStory: boolean;
  readonly spaces: readonly SpaceInfo[];
  readonly queues: readonly QueueInfo[];
  /** Records that a queue can hold between issue and observed completion. */
  readonly ringRecords: number;
  /** completed[q]: sequence number of the last finished record, as of the last `poll`. */
  readonly completed: Int32Array;
  /** issued[q]: sequence number of the last record written. */
  readonly issued: Int32Array;
  /** failures[q]: finished records whose status is not ok, as of the last `poll`. */
  readonly failures: Int32Array;

  /** Id of a kernel for queues of this space, or -1. */
  kernel(name: string, space: SpaceId): number;
  /** Whether `exec` of this kernel gets the element counts of the data. */
  takesLengths(kernel: number): boolean;
  /**
   * A kernel for queues of this space that gets the first elements of its last flows as parameters, in place of these flows: of
   * each the position among the parameters, in ascending order. -1 if the driver takes parameters by value only.
   */
  steered(kernel: number, space: SpaceId, parameters: readonly SteeredKernelParameter[]): number;
  /** A number for a list of element counts, which stays valid; 0: it gets none, and `exec` gets the counts themselves. */
  numberLengths(lengths: Float64Array): number;
  /** Loads a shared object with kernels; returns the names it registered. */
  loadKernels(path: string): string[];
  /** Compiles CUDA C, or takes PTX or machine code, for the CUDA GPUs of the machine; returns the kernels' names. */
  compileKernels(source: NativeKernelSource): string[];

  /**
   * Appends a hold: the queue goes no further until `onQueue` has completed `onSeq`.
   * Costs one record.
   */
  wait(queue: QueueId, onQueue: QueueId, onSeq: number): void;
  /**
   * Appends a kernel launch and returns its sequence number. `args` holds `nFlows` byte offsets into the
   * queue's space, then the parameters, then the lengths if the kernel takes them and `run`
   * has no number of a list of lengths above its lowest 8 bits: `nArgs` numbers in all. They are copied before the call returns.
   * `waitQueue` (or NO_QUEUE) is a hold folded into the record. Costs `execRecords(nArgs)` records.
   */
  exec(
    queue: QueueId,
    kernel: number,
    task: TaskId,
    run: number,
    nFlows: number,
    nArgs: number,
    args: Float64Array,
    waitQueue: QueueId,
    waitSeq: number,
  ): number;
  /** Appends a copy between spaces; `id` names the transfer in traces. One record. */
  copy(
    queue: QueueId,
    id: number,
    dstSpace: SpaceId,
    dstOffset: number,
    srcSpace: SpaceId,
    srcOffset: number,
    bytes: number,
    waitQueue: QueueId,
    waitSeq: number,
  ): number;
  /**
   * Appends a command to a lane, on bytes of host space if it names no other. `args` holds `nArgs` numbers: offset, bytes, era, then those of the
   * kind (`LaneCommand`). They are copied. The bytes are not touched before the event of `waitQueue` has happened. Costs
   * `execRecords(nArgs)` records.
   */
  message(
    kind: LaneCommand,
    lane: QueueId,
    task: TaskId,
    run: number,
    nArgs: number,
    args: Float64Array,
    waitQueue: QueueId,
    waitSeq: number,
  ): number;
  /** Appends a fill of the queue's own space (checked mode: poison of freed blocks). One record. */
  fill(queue: QueueId, offset: number, bytes: number, value: number): number;

  /**
   * Begins a play: the queues feed themselves (native/contract.ts). Nothing else may be appended to them until each has
   * completed its last record; the caller then sets `issued`.
   */
  play(play: NativePlay): void;
  /** Gives a play more iterations; NativeCore.extendPlay has the conditions. */
  extendPlay(times: number): boolean;
  /** Ends a play that has completed; NativeCore.playOutcome has the meaning of the numbers. */
  playOutcome(): Float64Array;
  /** Undefined: there are no script workers. */
  readonly scripts: ScriptWorkers | undefined;
  /** Undefined: no device has graphs. */
  readonly graphs: CommandGraphs | undefined;

  /** Makes all appended commands visible and wakes sleeping queues. Once per batch. */
  publish(): void;
  /**
   * Refreshes `completed` and `failures`; true when anything moved. A failed record becomes visible no later than any
   * record that ran behind it; `failures` may already count records that `completed` does not show yet.
   */
  poll(): boolean;
  /**
   * Waits for an armed event, or `alsoDue`, without giving the core away; false: there was none in that time. Afterwards
   * nothing is armed.
   */
  spin(microseconds: number): boolean;
  /** The engine has handled that many failed records, over all queues. */
  handledFailures(count: number): void;
  /** Outcome of a finished record: a `Status` value. Valid until `ringRecords` further records are issued. */
  status(queue: QueueId, seq: number): number;
  /** Start and end of a finished record in nanoseconds (timing on). Same validity as `status`. */
  startOf(queue: QueueId, seq: number): number;
  endOf(queue: QueueId, seq: number): number;
  /**
   * Where and how the bytes of a finished receive have come, by the number that its command has for that (`LaneCommand`). Same validity as
   * `status`.
   */
  arrivalOf(lane: QueueId, seq: number): number;
  /** The driver's words for the last failure on a queue. */
  lastError(queue: QueueId): string;

  /** Turns the times of all records on or off. */
  setTiming(on: boolean): void;
  /** The times of that kernel are kept, also if those of all records are off. Before `publish`. */
  keepTimes(queue: QueueId, seq: number): void;
  /** Exec commands of a cancelled run complete with `Status.cancelled` and run no kernel. */
  setCancelled(run: number, on: boolean): void;
  /** True once a kernel of the run failed or the run was cancelled. */
  isCancelled(run: number): boolean;

  /**
   * Asks for the doorbell when `queue` completes `seq`. One per queue; the latest call wins. A failed record rings, armed or
   * not, until it is handled (`handledFailures`).
   */
  arm(queue: QueueId, seq: number): void;
  /** Blocks the engine thread until an armed doorbell rings or the time is over. */
  block(microseconds: number): void;
  /** The engine's thread may execute commands of worker queues, because it has no core of its own. */
  readonly full: boolean;
  /**
   * As `block`, but executes commands of worker queues meanwhile, if `full`. False when there were none and no
   * doorbell rang; the caller must arm doorbells anew then.
   */
  serve(microseconds: number): boolean;
  /** From here on an armed doorbell calls the wake callback on the event loop. False: one is due already. */
  sleep(): boolean;
  /** The engine asks it before it goes to sleep: something outside of the queues (the network) is due already. */
  alsoDue?: (() => boolean) | undefined;
  /** Called when no event can happen any more, by implementations that know (virtual time). */
  whenStill?: (() => void) | undefined;
  /** Called when the doorbell rings while asleep. */
  onWake(callback: () => void): void;
  /** Calls the engine back on its own thread, after other work there has had its turn. One call may be open. */
  soon(callback: () => void): void;
  /** Keeps the process alive while a run is open. */
  hold(on: boolean): void;

  /** Nanoseconds on the runtime clock. */
  now(): number;
  /** Nanoseconds of processor time that the engine's thread has used, from any time on. */
  workTime(): number;
  /** Bytes of host space. The view stays valid until `close`. */
  hostView(offset: number, bytes: number): Uint8Array;
  /** Nanoseconds up to now during which a queue has had work: never more than the time that has passed. */
  busy(queue: QueueId): number;
  /**
   * Moves out the spans in which a thread wanted to run but had no core (timing on): triples queue, from, to in nanoseconds.
   * Queue -1 is the engine's thread; the first queue of a GPU stands for its thread. Returns the number of spans.
   */
  takeStolen(into: Float64Array): number;
  /** Other processes may have device memory open and cannot report its end: `close` does not free it. */
  keepShared(): void;
  close(): void;
}

/** The first queue for which `test` holds; NO_QUEUE if there is none. */
export function findQueue(
  queues: readonly QueueInfo[],
  test: (queue: QueueInfo) => boolean,
): QueueId {
  return queues.findIndex(test) as QueueId;
}

/** The queues for which `test` holds. */
export function findQueues(
  queues: readonly QueueInfo[],
  test: (queue: QueueInfo) => boolean,
): QueueId[] {
  return queues.flatMap((queue, q) => (test(queue) ? [q as QueueId] : []));
}

/** Records an exec command with `nArgs` arguments needs: five fit inline, eight in each further record. */
export function execRecords(nArgs: number): number {
  return nArgs <= 5 ? 1 : 1 + ((nArgs - 5 + 7) >> 3);
}

/** Most arguments an exec command of `records` records may have. */
export function argumentsOf(records: number): number {
  return 5 + 8 * (records - 1);
}
