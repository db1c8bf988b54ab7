// The window of live tasks, as a ring of rows in typed arrays.
//
// A task id is an int32 that counts insertions and wraps; its row is `id & mask`. Rows are taken and returned in program
// order. So memory is O(window) whatever the length of the program, a comparison with the window's ends recognises a
// stale id, and flows and parameters can live in two rings beside the rows.
// The program waits when `window` rows are live. Bodies do not: the table grows for their tasks, and shrinks again
// (`resize`). Only scheduler/engine/window.ts may call it, because it also updates every other list of rows.
// Invariants: head..next are the live ids; a row in the window belongs to exactly one id; a task's flows and
// parameters are contiguous.

/** The life of a task. The six stages are 3..8. */
export const TaskStage = {
  free: 0,
  /** Inserted; some predecessor has not released it. */
  pending: 1,
  /** Released; not yet taken up by its device. */
  ready: 2,
  alloc: 3,
  stageIn: 4,
  commIn: 5,
  exec: 6,
  stageOut: 7,
  finalize: 8,
  /** Retired; the row is given back when all rows before it are. */
  done: 9,
  /** Will not run, but keeps its place in the order until its predecessors release it (scheduler/failure/dropped-tasks.ts). */
  dropped: 10,
  /** Dropped, and its successors are released: events stand for it until all of them have happened. */
  outlived: 11,
} as const;

/** Names of the stages by number, for errors, traces and waits. */
export const STAGE_NAMES: readonly string[] = [
  'free',
  'pending',
  'ready',
  'alloc',
  'stage-in',
  'comm-in',
  'exec',
  'stage-out',
  'finalize',
  'done',
  'dropped',
  'dropped',
];

import {
  type Column,
  type DatumId,
  HOST,
  NO_SPACE,
  type QueueId,
  type SpaceId,
  type TaskId,
} from '../devices/handles.js';
import { TaskTime } from '../trace/format.js';
import type { KernelLengths } from './kernel-lengths.js';

export { AccessMode } from '../trace/format.js';

/** The way in which a task executes, from the moment it does. */
export const Execution = {
  /** It does not execute yet, or never will. */
  none: 0,
  /** Its kernel is a command: the event `queue`, `seq` is its end. */
  command: 1,
  /** Its JavaScript body is about to begin; its outputs count as written, and it can still be dropped. */
  bodyQueued: 2,
  /** Its JavaScript body has begun. */
  body: 3,
  /** Its transfer between ranks has begun. */
  movement: 4,
  /**
   * It is a receive on a lane: the event `queue`, `seq` is its end, but no task may wait for it yet
   * (scheduler/engine/arrivals.ts).
   */
  arrival: 5,
} as const;

/** Whether a task executes as a command: its event is known, and it ends with that. */
export function isCommand(execution: number): boolean {
  return execution === Execution.command || execution === Execution.arrival;
}

/** No device was asked for. */
export const ANY_DEVICE: SpaceId = NO_SPACE;

/** The part of a task of the runtime's own on the network. */
export const NetworkRole = {
  none: 0,
  send: 1,
  receive: 2,
  /** Passes on a received datum, if the announcement asks for it. */
  forward: 3,
} as const;

/** The times that a task has of its own: see `TaskTable.stamp`. */
export const Stamp = {
  /** Another task released the task. */
  ready: 1,
  /** Any other. */
  later: 2,
} as const;

/** Kinds of devices, as bits. */
const DeviceKind = { host: 1, gpu: 2 } as const;

/** Kernels of a class are the same function on all GPUs. */
export function deviceKind(space: SpaceId): number {
  return space === HOST ? DeviceKind.host : DeviceKind.gpu;
}

/** The engine's knowledge of a task class. All tasks of the class share it. */
export interface TaskClassRow {
  readonly id: number;
  readonly name: string;
  readonly flowNames: readonly string[];
  /** AccessMode per flow. */
  readonly modes: readonly number[];
  readonly paramNames: readonly string[];
  /** Kernel id per space (0 = host), -1 where the class has no kernel for it. */
  readonly kernels: Int32Array;
  /** Set if a kernel takes the lengths of its data. */
  readonly lengths?: KernelLengths | undefined;
  /** JavaScript body on the engine's thread, with host data, or undefined. */
  readonly body: ((task: TaskId, row: number) => unknown) | undefined;
  /** The kernel on the host is a JavaScript body that script workers run. */
  readonly onScriptWorkers?: boolean;
  /** Its tasks begin chains of tasks that shall run in parallel: each goes to the queue after that of the last task. */
  spreads?: boolean;
  /** Flows: its tasks run where the first of these of its data is that is anywhere. Of the runtime's own. */
  beside?: readonly number[] | undefined;
  /** Turns a kernel's positive code into words, e.g. the pivot of a factorisation. */
  readonly explain: ((code: number, row: number) => string) | undefined;
  /** Stable error code to use when the kernel returns a positive code. */
  readonly failureCode: string | undefined;
  /** Per flow 1 if the input is pulled from other ranks; undefined if all are pushed. */
  readonly pulls?: Uint8Array | undefined;
  /** Per flow 1 if its tasks commute on the datum; undefined if none does. */
  readonly commutes?: Uint8Array | undefined;
  /** The poison in spite of which its tasks run, and which they take away; of the runtime's own. */
  readonly restores?: number | undefined;
  /** Its tasks take over elements of another datum and leave the others as they are; of the runtime's own. */
  takesOver?: boolean;
  /** Its tasks combine partial results of reductions. */
  combines?: boolean;
  /** The kinds of devices (`deviceKind`) on which the times of its kernels are taken (scheduler/engine/kernel-times.ts). */
  timed?: number;
  /** NetworkRole of the runtime's own classes that move data between ranks; absent elsewhere. */
  readonly network?: number;
}

type AnyColumn = Uint8Array | Int16Array | Int32Array | Float64Array;

/** Entries of a ring of arguments for a window of that many rows. */
function leastPool(window: number): number {
  return Math.max(window * 8, 4096);
}

export class TaskTable {
  /** From this number of live rows on the program waits; a power of two. The table may have more rows. */
  readonly window: number;
  /** Number of rows minus 1. */
  mask: number;
  /** Rows or rings are larger than the program needs. */
  isExtended = false;
  /** Largest number of flows (or parameters) one task may have. */
  readonly maxArguments: number;
  /** Oldest live id. */
  head: TaskId = 1 as TaskId;
  /** Id the next task will get. */
  next: TaskId = 1 as TaskId;

  stage: Uint8Array;
  classOf: Int32Array;
  run: Uint8Array;
  priority: Int32Array;
  /** Space the task runs on: 0 host, g = GPU g-1; the hint before placement, ANY_DEVICE without. */
  device: Column<Int16Array, SpaceId>;
  /** 1 if the program chose the device. */
  hinted: Uint8Array;
  /** Execution of the task. */
  execution: Uint8Array;
  /** Event of the task's command; without a meaning for other tasks. */
  queue: Column<Int16Array, QueueId>;
  seq: Int32Array;
  /** Queue chosen to run the task; decided when it starts. */
  target: Column<Int16Array, QueueId>;
  /** Predecessors that have not released the task. */
  pending: Int32Array;
  /** Successor list: value = row * 2 + (1 for a control edge). */
  successors: Int32Array;
  /** Events of control predecessors that were issued: value = queue, extra = seq. */
  controlEvents: Int32Array;
  flowStart: Int32Array;
  paramStart: Int32Array;
  /** WaitReason of a parked task, else 0. */
  waiting: Uint8Array;
  releasedBy: Int32Array;
  /** Time of the pass that brought the task to its present point, nanoseconds on the runtime clock. For reports. */
  since: Float64Array;
  /** Stage times in nanoseconds on the runtime clock, TaskTime.count per row, and the `Stamp` bits of a row. */
  times: Float64Array;
  stamped: Uint8Array;

  flowDatum: Column<Int32Array, DatumId>;
  params: Float64Array;
  private flowMask: number;
  private paramMask: number;
  // Entries in use lie between the oldest live row's and `next`. One entry is always free: a full ring would look empty.
  private hasWrapped = false;
  private flowNext = 0;
  private flowUsed = 0;
  private paramNext = 0;
  private paramUsed = 0;

  constructor(window: number) {
    if (window < 4 || (window & (window - 1)) !== 0) {
      throw new RangeError(`task window must be a power of two of at least 4, not ${window}`);
    }
    this.window = window;
    this.mask = window - 1;
    this.stage = new Uint8Array(window);
    this.classOf = new Int32Array(window);
    this.run = new Uint8Array(window);
    this.priority = new Int32Array(window);
    this.device = new Int16Array(window) as Column<Int16Array, SpaceId>;
    this.hinted = new Uint8Array(window);
    this.execution = new Uint8Array(window);
    this.queue = new Int16Array(window) as Column<Int16Array, QueueId>;
    this.seq = new Int32Array(window);
    this.target = new Int16Array(window) as Column<Int16Array, QueueId>;
    this.pending = new Int32Array(window);
    this.successors = new Int32Array(window).fill(-1);
    this.controlEvents = new Int32Array(window).fill(-1);
    this.flowStart = new Int32Array(window);
    this.paramStart = new Int32Array(window);
    this.waiting = new Uint8Array(window);
    this.releasedBy = new Int32Array(window);
    this.since = new Float64Array(window);
    this.times = new Float64Array(0);
    this.stamped = new Uint8Array(window);
    const pool = leastPool(window);
    this.maxArguments = pool >> 2;
    this.flowMask = pool - 1;
    this.paramMask = pool - 1;
    this.flowDatum = new Int32Array(pool) as Column<Int32Array, DatumId>;
    this.params = new Float64Array(pool);
  }

  /** Live rows. */
  get live(): number {
    return (this.next - this.head) | 0;
  }

  /** Whether `id` names a task in the window. */
  contains(id: number): boolean {
    return ((id - this.head) | 0) >= 0 && ((this.next - id) | 0) > 0;
  }

  /**
   * Whether a task had `id`. It may be over long ago. Ids count from 1 and wrap; none below 1 was given before the first
   * wrap.
   */
  wasTaken(id: number): id is TaskId {
    if ((id | 0) !== id) return false;
    return this.contains(id) || (((this.head - id) | 0) > 0 && (this.hasWrapped || id > 0));
  }

  /** Whether the program may insert a task with that many flows and parameters now. */
  hasRoom(flows: number, params: number): boolean {
    return (
      this.live < this.window &&
      this.flowUsed + this.padded(this.flowNext, flows, this.flowMask) <= this.flowMask &&
      (params === 0 ||
        this.paramUsed + this.padded(this.paramNext, params, this.paramMask) <= this.paramMask)
    );
  }

  /**
   * Whether at least 1/2^shift of the rows, of the flows and of the parameters are free. Tasks with many arguments fill
   * the rings of arguments long before they fill the rows.
   */
  isRoomy(shift: number): boolean {
    const free = (size: number, used: number): boolean => size - used >= Math.max(1, size >> shift);
    return (
      free(this.window, this.live) &&
      free(this.flowMask + 1, this.flowUsed) &&
      free(this.paramMask + 1, this.paramUsed)
    );
  }

  /** Takes the next row; the caller has checked `hasRoom` and fills the columns. Returns the task id. */
  take(flows: number, params: number): TaskId {
    const id = this.next;
    const row = id & this.mask;
    this.next = ((id + 1) | 0) as TaskId;
    const flowPad = this.padded(this.flowNext, flows, this.flowMask);
    this.flowStart[row] = (this.flowNext + flowPad - flows) & this.flowMask;
    this.flowNext = (this.flowNext + flowPad) & this.flowMask;
    this.flowUsed += flowPad;
    if (params === 0) {
      this.paramStart[row] = this.paramNext;
      return id;
    }
    const paramPad = this.padded(this.paramNext, params, this.paramMask);
    this.paramStart[row] = (this.paramNext + paramPad - params) & this.paramMask;
    this.paramNext = (this.paramNext + paramPad) & this.paramMask;
    this.paramUsed += paramPad;
    return id;
  }

  /** Returns the rows of finished tasks at the head of the window. */
  retireHead(): void {
    let head = this.head;
    const next = this.next;
    while (head !== next) {
      const row = head & this.mask;
      if (this.stage[row] !== TaskStage.done) break;
      this.stage[row] = TaskStage.free;
      head = ((head + 1) | 0) as TaskId;
    }
    if (head === this.head) return;
    if (this.head <= 0 || head < this.head) this.hasWrapped = true;
    this.head = head;
    const oldest = head & this.mask;
    this.flowUsed = head === next ? 0 : (this.flowNext - this.flowStart[oldest]) & this.flowMask;
    this.paramUsed =
      head === next ? 0 : (this.paramNext - this.paramStart[oldest]) & this.paramMask;
  }

  /** Passes over the next `count` ids: the tasks that had them never had a row. Only while no row is live. */
  pass(count: number): void {
    const next = ((this.next + count) | 0) as TaskId;
    if (next <= 0 || next < this.next) this.hasWrapped = true;
    this.head = next;
    this.next = next;
  }

  /** From now on `stamp` may be called. */
  traceTimes(): void {
    this.times = new Float64Array((this.mask + 1) * TaskTime.count);
  }

  /** Doubles the tables that are too small for one more task, whatever the window. True when rows have moved: see `resize`. */
  extend(flows: number, params: number): boolean {
    let rows = this.mask + 1;
    let flowPool = this.flowMask + 1;
    let paramPool = this.paramMask + 1;
    if (this.live > this.mask) rows *= 2;
    if (this.flowUsed + this.padded(this.flowNext, flows, this.flowMask) > this.flowMask)
      flowPool *= 2;
    if (this.paramUsed + this.padded(this.paramNext, params, this.paramMask) > this.paramMask)
      paramPool *= 2;
    if (rows + flowPool + paramPool === this.mask + this.flowMask + this.paramMask + 3)
      return false;
    this.resize(rows, flowPool, paramPool);
    this.isExtended = true;
    return true;
  }

  /** Returns the rows beyond the program's when few are live. True when rows have moved. */
  shrink(): boolean {
    const pool = leastPool(this.window);
    if (this.live > this.window >> 2) return false;
    if (this.flowUsed > pool >> 2 || this.paramUsed > pool >> 2) return false;
    this.resize(this.window, pool, pool);
    this.isExtended = false;
    return true;
  }

  /**
   * Moves all live tasks to tables of other sizes, all powers of two that hold them. A task keeps its id; its row
   * changes with the mask.
   */
  private resize(rows: number, flowPool: number, paramPool: number): void {
    const move = <T extends AnyColumn>(from: T, empty = 0, perRow = 1): T =>
      this.moveColumn(from, rows, empty, perRow);
    this.stage = move(this.stage);
    this.classOf = move(this.classOf);
    this.run = move(this.run);
    this.priority = move(this.priority);
    this.device = move(this.device);
    this.hinted = move(this.hinted);
    this.execution = move(this.execution);
    this.queue = move(this.queue);
    this.seq = move(this.seq);
    this.target = move(this.target);
    this.pending = move(this.pending);
    this.successors = move(this.successors, -1);
    this.controlEvents = move(this.controlEvents, -1);
    this.flowStart = move(this.flowStart);
    this.paramStart = move(this.paramStart);
    this.waiting = move(this.waiting);
    this.releasedBy = move(this.releasedBy);
    this.since = move(this.since);
    this.stamped = move(this.stamped);
    if (this.times.length > 0) this.times = move(this.times, 0, TaskTime.count);
    this.mask = rows - 1;
    this.moveArguments(flowPool, paramPool);
  }

  private moveColumn<T extends AnyColumn>(from: T, rows: number, empty: number, perRow: number): T {
    const to = new (from.constructor as new (length: number) => T)(rows * perRow);
    if (empty !== 0) to.fill(empty);
    for (let id = this.head; id !== this.next; ) {
      const old = id & this.mask;
      const row = id & (rows - 1);
      const run = Math.min((this.next - id) | 0, this.mask + 1 - old, rows - row);
      to.set(from.subarray(old * perRow, (old + run) * perRow), row * perRow);
      id = ((id + run) | 0) as TaskId;
    }
    return to;
  }

  /** Arguments in use keep their order and lie at the beginning of the new rings. */
  private moveArguments(flowPool: number, paramPool: number): void {
    const { flowMask, paramMask } = this;
    const firstFlow = (this.flowNext - this.flowUsed) & flowMask;
    const firstParam = (this.paramNext - this.paramUsed) & paramMask;
    for (let id = this.head; id !== this.next; id = ((id + 1) | 0) as TaskId) {
      const row = id & this.mask;
      this.flowStart[row] = (this.flowStart[row] - firstFlow) & flowMask;
      this.paramStart[row] = (this.paramStart[row] - firstParam) & paramMask;
    }
    const flows = new Int32Array(flowPool) as Column<Int32Array, DatumId>;
    for (let i = 0; i < this.flowUsed; i++) flows[i] = this.flowDatum[(firstFlow + i) & flowMask];
    const params = new Float64Array(paramPool);
    for (let i = 0; i < this.paramUsed; i++) params[i] = this.params[(firstParam + i) & paramMask];
    this.flowDatum = flows;
    this.params = params;
    this.flowMask = flowPool - 1;
    this.paramMask = paramPool - 1;
    this.flowNext = this.flowUsed;
    this.paramNext = this.paramUsed;
  }

  /**
   * Keeps the time at which the task in `row` passed a stage, for the trace. Tasks that do not wait have no stamps. Other
   * times of a stamped row are left from earlier tasks and count as passed.
   */
  stamp(row: number, stage: number, time: number): void {
    this.times[row * TaskTime.count + stage] = time;
    this.stamped[row] |= stage === TaskTime.ready ? Stamp.ready : Stamp.later;
  }

  /** Whether the task in `row` is a command of queue `q`. */
  isOn(row: number, q: QueueId): boolean {
    return this.execution[row] === Execution.command && this.queue[row] === q;
  }

  /** Id of the live task in `row`. */
  idOf(row: number): TaskId {
    return ((this.head + ((row - this.head) & this.mask)) | 0) as TaskId;
  }

  private padded(at: number, count: number, mask: number): number {
    const room = mask + 1 - at;
    return count <= room ? count : room + count;
  }
}
