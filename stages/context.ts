// All state that a stage may read or change. One object per engine; the stages hold no state of their own.

import type { HeadraceError } from '../devices/errors.js';
import { Fifo } from '../devices/fifo.js';
import {
  type DatumId,
  NO_TASK,
  type QueueId,
  type SpaceId,
  type TaskId,
} from '../devices/handles.js';
import type { Directory } from '../devices/memory/directory.js';
import type { EvictionCounter, Forecast } from '../devices/memory/eviction.js';
import type { MemorySpace } from '../devices/memory/space.js';
import type { Transfers } from '../devices/memory/transfers.js';
import type { ReceiveLanes } from '../devices/network/receive-lanes.js';
import { NodePool } from '../devices/node-pool.js';
import type { Launch, Submission } from '../devices/submission.js';
import { Tally } from '../devices/tally.js';
import { LookAhead } from './next-use.js';
import type { Parcel } from './parcel.js';
import { WaitReason } from './stage.js';
import type { TaskClassRow, TaskTable } from './task-table.js';

/** Counters of the memory stages; `evictions` are copies dropped or written back to make room. */
interface StageCounters extends EvictionCounter {
  forecast: Forecast;
  /** Times a task had to wait, by WaitReason. */
  readonly waits: Float64Array;
}

/** The requests of the stages to the engine above them. */
export interface StageHooks {
  /** Runs the task's JavaScript body; its end is reported to the engine. */
  startBody(row: number): number;
  /** Receives on lanes after task `id` in program order: each holds a copy in host memory. */
  receivesBehind(id: TaskId): number;
  /** Whether a close of a datum waits for nothing but its turn. Then the waiters for host memory are looked at. */
  closesAreReleased(): boolean;
  /** Releases the successors that may follow in queue order. */
  issued(row: number): void;
  /** The task will not complete: records the reason. */
  fail(row: number, error: HeadraceError): void;
  /** The use of memory, as a table. */
  memoryText(): string;
}

function unset(): never {
  throw new Error('the hooks of the stages are not set');
}

const noHooks: StageHooks = {
  startBody: unset,
  receivesBehind: unset,
  closesAreReleased: unset,
  issued: unset,
  fail: unset,
  memoryText: unset,
};

/** Who is told of stages and waits, in checked runs. */
export interface StageWatcher {
  entered(row: number, stage: number): void;
  waits(row: number, reason: number): void;
}

export class StageContext {
  readonly tasks: TaskTable;
  readonly directory: Directory;
  readonly spaces: readonly MemorySpace[];
  readonly submission: Submission;
  readonly transfers: Transfers;
  readonly classes: TaskClassRow[] = [];
  /** Set by the engine before the first task. */
  hooks: StageHooks = noHooks;
  /** Tells eviction the next uses of copies. */
  readonly ahead: LookAhead;
  readonly counters: StageCounters;
  /** Time of the current engine pass, nanoseconds on the runtime clock. */
  now = 0;
  /** Undefined where nobody wants to know of every stage. */
  watcher: StageWatcher | undefined;
  /** Stage times are recorded. */
  tracing = false;
  /** The machine has lanes to other ranks. */
  readonly hasLanes: boolean;
  /** The lanes for receives, if it has. */
  receiveLanes: ReceiveLanes | undefined;
  /** The ways of the sends and receives that the stages have, by the number that is the parameter of their task. */
  readonly parcels: (Parcel | undefined)[] = [];
  /** The task at whose place in program order a task uses a datum: spawned tasks use that of their parent. Undefined while there are none. */
  placeOf: ((id: TaskId, d: DatumId) => TaskId) | undefined;
  /** Scratch: the kernel that is launched. */
  readonly launch: Launch;
  /** Tasks that wait for room in a queue's ring, by queue. */
  readonly slotWaiters: readonly Fifo<TaskId>[];
  /** Tasks in all of them. */
  readonly slotWaiting: Tally = new Tally();
  /** Tasks that wait for an event, by queue: lists of `waiterNodes`. */
  readonly eventWaiters: Int32Array;
  /** Nodes of waiters: value = task id, extra = sequence number. */
  readonly waiterNodes: NodePool<TaskId> = new NodePool<TaskId>();
  /** Events of tasks: value = queue, extra = sequence number. */
  readonly eventNodes: NodePool<QueueId> = new NodePool<QueueId>();
  /** Tasks whose wait is over: the engine calls their stages again. */
  readonly woken: Fifo<TaskId> = new Fifo<TaskId>();

  constructor(
    tasks: TaskTable,
    directory: Directory,
    spaces: readonly MemorySpace[],
    submission: Submission,
    transfers: Transfers,
  ) {
    this.tasks = tasks;
    this.directory = directory;
    this.spaces = spaces;
    this.submission = submission;
    this.transfers = transfers;
    this.ahead = new LookAhead(this);
    this.counters = {
      evictions: 0,
      forecast: this.ahead.uses,
      observer: undefined,
      waits: new Float64Array(8),
    };
    this.placeOf = undefined;
    this.receiveLanes = undefined;
    this.hasLanes = submission.backend.queues.some(({ kind }) => kind === 'lane');
    const queues = submission.backend.queues.length;
    const args = new Float64Array(tasks.maxArguments * 3);
    this.launch = { kernel: 0, row: 0, task: NO_TASK, run: 0, nFlows: 0, nArgs: 0, args };
    const { slotWaiting } = this;
    this.slotWaiters = Array.from({ length: queues }, () => new Fifo<TaskId>(8, slotWaiting));
    this.eventWaiters = new Int32Array(queues).fill(-1);
  }

  /** A task in the user's words. */
  describe(row: number): string {
    return `${this.classes[this.tasks.classOf[row]].name} #${this.tasks.idOf(row)}`;
  }

  private wait(row: number, reason: number): void {
    this.tasks.waiting[row] = reason;
    this.counters.waits[reason]++;
    this.watcher?.waits(row, reason);
  }

  /** Parks a task on the FIFO of space `s`. */
  waitForMemory(row: number, s: SpaceId): void {
    this.wait(row, WaitReason.memory);
    this.spaces[s].waiters.push(this.tasks.idOf(row));
  }

  /** The first in line of a space keeps its place and waits. */
  waitAtHead(row: number): void {
    this.wait(row, WaitReason.memory);
  }

  /** Parks a task until `queue` has room. */
  waitForSlot(row: number, queue: QueueId): void {
    this.wait(row, WaitReason.slot);
    this.slotWaiters[queue].push(this.tasks.idOf(row));
  }

  /** A receive has no announcement yet: it holds nothing, and the announcement continues it. */
  waitForReceive(row: number): void {
    this.wait(row, WaitReason.receive);
  }

  /** Lets others in line for space `s` pass until an offer from there is over. */
  stepAside(row: number, s: SpaceId): void {
    this.wait(row, WaitReason.credit);
    this.spaces[s].aside.push(this.tasks.idOf(row));
  }

  /** Parks a task until an event has happened. */
  waitForEvent(row: number, queue: QueueId, seq: number): void {
    this.wait(row, WaitReason.copy);
    this.eventWaiters[queue] = this.waiterNodes.push(
      this.eventWaiters[queue],
      this.tasks.idOf(row),
      seq,
    );
  }
}
