// Everything a stage may look at or change. One object per engine; the stages hold no state of their own.
import type { Directory } from '../devices/directory.js';
import type { HeadraceError } from '../devices/errors.js';
import type { EvictionCounter } from '../devices/eviction.js';
import { Fifo } from '../devices/fifo.js';
import type { MemorySpace } from '../devices/memory-space.js';
import { NodePool } from '../devices/node-pool.js';
import type { Submission } from '../devices/submission.js';
import type { Transfers } from '../devices/transfers.js';
import { NextUse } from './next-use.js';
import { WaitReason } from './stage.js';
import { STAGE_NAMES, type TaskClassRow, type TaskTable } from './task-table.js';

/** Counters of the memory stages; `evictions` are copies dropped or written back to make room. */
export interface StageCounters extends EvictionCounter {
  /** Times a task had to wait, by WaitReason. */
  readonly waits: Float64Array;
}

/** What the stages ask of the engine above them. */
export interface StageHooks {
  /** Runs the task's JavaScript body; its end is reported to the engine. */
  startBody(row: number): number;
  /** Releases the successors that may follow in queue order. */
  issued(row: number): void;
  /** The task will not complete: record why. */
  fail(row: number, error: HeadraceError): void;
  /** Who holds the memory, as a table. */
  memoryText(): string;
  /** The task is over: release what is left and give the row back. */
  retired(row: number, status: number): void;
}

export class StageContext {
  readonly tasks: TaskTable;
  readonly directory: Directory;
  readonly spaces: readonly MemorySpace[];
  readonly submission: Submission;
  readonly transfers: Transfers;
  readonly classes: TaskClassRow[] = [];
  readonly hooks: StageHooks;
  readonly counters: StageCounters = {
    evictions: 0,
    forecast: new NextUse(this),
    observer: undefined,
    waits: new Float64Array(8),
  };
  /** Time of the current engine pass, nanoseconds on the runtime clock. */
  now = 0;
  /** Stage times are recorded. */
  tracing = false;
  /** Scratch for kernel arguments. */
  readonly args: Float64Array;
  /** Tasks that wait for room in a queue's ring, by queue. */
  readonly slotWaiters: readonly Fifo[];
  /** Tasks that wait for an event: per queue a list of (task id, seq). */
  readonly eventWaiters: Int32Array;
  readonly eventNodes: NodePool = new NodePool();
  /** Tasks whose wait is over and that must be looked at again. */
  readonly woken: Fifo = new Fifo();

  constructor(
    tasks: TaskTable,
    directory: Directory,
    spaces: readonly MemorySpace[],
    submission: Submission,
    transfers: Transfers,
    hooks: StageHooks,
  ) {
    this.tasks = tasks;
    this.directory = directory;
    this.spaces = spaces;
    this.submission = submission;
    this.transfers = transfers;
    this.hooks = hooks;
    const queues = submission.backend.queues.length;
    this.args = new Float64Array(tasks.maxArguments * 2);
    this.slotWaiters = Array.from({ length: queues }, () => new Fifo());
    this.eventWaiters = new Int32Array(queues).fill(-1);
  }

  /** A task in the user's words. */
  describe(row: number): string {
    return `${this.classes[this.tasks.classOf[row]].name} #${this.tasks.idOf(row)}`;
  }

  /** The stage a task is in, in words. */
  stageName(row: number): string {
    return STAGE_NAMES[this.tasks.stage[row]];
  }

  /** Parks a task on the FIFO of space `s`. */
  waitForMemory(row: number, s: number): void {
    this.tasks.waiting[row] = WaitReason.memory;
    this.counters.waits[WaitReason.memory]++;
    this.spaces[s].waiters.push(this.tasks.idOf(row));
  }

  /** The first in line of a space goes on waiting where it stands. */
  waitAtHead(row: number): void {
    this.tasks.waiting[row] = WaitReason.memory;
    this.counters.waits[WaitReason.memory]++;
  }

  /** Parks a task until `queue` has room. */
  waitForSlot(row: number, queue: number): void {
    this.tasks.waiting[row] = WaitReason.slot;
    this.counters.waits[WaitReason.slot]++;
    this.slotWaiters[queue].push(this.tasks.idOf(row));
  }

  /** A receive has no announcement yet: it holds nothing, and the announcement continues it. */
  waitForReceive(row: number): void {
    this.tasks.waiting[row] = WaitReason.receive;
    this.counters.waits[WaitReason.receive]++;
  }

  /** Lets others in line for space `s` pass until an offer from there is over. */
  stepAside(row: number, s: number): void {
    this.tasks.waiting[row] = WaitReason.credit;
    this.counters.waits[WaitReason.credit]++;
    this.spaces[s].aside.push(this.tasks.idOf(row));
  }

  /** Parks a task until an event has happened. */
  waitForEvent(row: number, queue: number, seq: number): void {
    this.tasks.waiting[row] = WaitReason.copy;
    this.counters.waits[WaitReason.copy]++;
    this.eventWaiters[queue] = this.eventNodes.push(
      this.eventWaiters[queue],
      this.tasks.idOf(row),
      seq,
    );
  }
}
