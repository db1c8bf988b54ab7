// Issues commands to queues and keeps the task or transfer of every command under way.
//
// An event is (queue, sequence number). Before a command, the caller names the events that it must follow. This file
// drops the events that need no wait: they are over, or lie on the same in-order queue, or the queue already waited for
// a later event of the same source (`known`, one vector clock per queue), or another event that it waits for comes after them. It
// folds the first of the rest into the command's own record. So a command costs at most the edges that it needs.
//
// Invariant: between issue and observed completion every record that carries work has its token in `flight`:
// positive = task row + 1, negative = -(transfer id + 1), PART = a part of a task's work, 0 = nothing to do on completion.

import { argumentsOf, type Backend, execRecords, type LaneCommand } from './backend.js';
import { guards } from './guards.js';
import {
  type Column,
  FIRST_QUEUE,
  HOST,
  NO_QUEUE,
  type QueueId,
  type SpaceId,
  type TaskId,
} from './handles.js';

/** A command that is a part of a task's work: another one behind it on the same queue ends the task. */
export const PART = 0x7fffffff;

/** A record counts its arguments in 12 bits. */
export const MOST_ARGUMENTS = 0xfff;

/** Records after which old events are forgotten: far below half of the int32 range. */
const SWEEP_EVERY = 2 ** 28;

/** Least records of a ring: a command may wait for every other queue, and takes a few records itself. */
function leastRing(queues: number): number {
  return queues + 2;
}

/** Records of the shortest ring of a real machine. */
export const SHORTEST_RING = 1024;

/** Records of a ring of at least `records`, a power of two, with room for `spare` commands of which each waits for every queue. */
export function ringFor(records: number, queues: number, spare = 2): number {
  let ring = records;
  while (ring < spare * leastRing(queues)) ring *= 2;
  return ring;
}

/** A kernel to be launched. There is one per task, so the caller fills one record again and again. */
export interface Launch {
  /** Number of the kernel at the backend. */
  kernel: number;
  /** Row of the task, given back with the command's end. */
  row: number;
  /** Id of the task. */
  task: TaskId;
  /** Slot of the task's run, and above 8 bits the number of the list of lengths. */
  run: number;
  nFlows: number;
  /** Numbers of `args` that count. */
  nArgs: number;
  /** `nFlows` byte offsets into the queue's space, then the parameters. */
  readonly args: Float64Array;
}

export class Submission {
  readonly backend: Backend;
  /** Last record of each queue whose completion was handled. */
  readonly seen: Int32Array;
  /** Commands (not records) issued and not yet seen complete, per queue. */
  readonly outstanding: Int32Array;
  private readonly flight: Int32Array[];
  private readonly slotMask: number;
  private readonly queueCount: number;
  private readonly known: Int32Array;
  private readonly sweptAt: Int32Array;
  private readonly needSeq: Int32Array;
  private readonly needMark: Uint8Array;
  private readonly needList: Column<Int32Array, QueueId>;
  /** 1: the queue is one of a GPU. */
  private readonly isOfGpu: Uint8Array;
  private needCount = 0;
  private needFor = FIRST_QUEUE;
  /** Wait records and folded waits issued so far, for figures. */
  waits = 0;

  constructor(backend: Backend) {
    const n = backend.queues.length;
    if (backend.ringRecords < leastRing(n)) {
      throw new RangeError(
        `${n} queues need rings of at least ${leastRing(n)} records, not ${backend.ringRecords}`,
      );
    }
    this.backend = backend;
    this.queueCount = n;
    this.slotMask = backend.ringRecords - 1;
    this.seen = Int32Array.from(backend.completed);
    this.outstanding = new Int32Array(n);
    this.flight = Array.from({ length: n }, () => new Int32Array(backend.ringRecords));
    this.known = new Int32Array(n * n);
    for (let q = FIRST_QUEUE; q < n; q++) this.known.set(this.seen, q * n);
    this.sweptAt = Int32Array.from(this.seen);
    this.needSeq = new Int32Array(n);
    this.needMark = new Uint8Array(n);
    this.needList = new Int32Array(n) as Column<Int32Array, QueueId>;
    this.isOfGpu = Uint8Array.from(backend.queues, ({ space }) => (space === HOST ? 0 : 1));
  }

  /**
   * True when comparing a queue with old sequence numbers is about to wrap. The caller then forgets every event that is
   * over (`Directory.forgetHappened`) and calls `refresh`.
   */
  isSweepDue(queue: QueueId): boolean {
    return ((this.seen[queue] - this.sweptAt[queue]) | 0) > SWEEP_EVERY;
  }

  /** Updates the vector clocks to the completed records. */
  refresh(): void {
    const n = this.queueCount;
    for (let q = FIRST_QUEUE; q < n; q++) {
      const completed = this.backend.completed[q];
      this.sweptAt[q] = this.seen[q];
      for (let mine = 0; mine < n; mine++) {
        const at = mine * n + q;
        if (((completed - this.known[at]) | 0) > 0) this.known[at] = completed;
      }
    }
  }

  /** Records that may still be written to a queue. */
  room(queue: QueueId): number {
    return this.backend.ringRecords - ((this.backend.issued[queue] - this.seen[queue]) | 0);
  }

  /** Records a command with `nArgs` arguments may take at most, its waits included. */
  worstCase(nArgs: number): number {
    return this.queueCount + execRecords(nArgs);
  }

  /** Most arguments of one command: with more it would not fit an empty ring, waits for all queues included. */
  get mostArguments(): number {
    return Math.min(MOST_ARGUMENTS, argumentsOf(this.backend.ringRecords - this.queueCount));
  }

  /** Whether an event is over, as of the last poll. */
  happened(queue: QueueId, seq: number): boolean {
    return queue === NO_QUEUE || ((this.backend.completed[queue] - seq) | 0) >= 0;
  }

  /** Starts collecting the events that the next command of `queue` must follow. */
  begin(queue: QueueId): void {
    this.needFor = queue;
    this.needCount = 0;
  }

  /** The next command must follow this event. */
  after(queue: QueueId, seq: number): void {
    if (queue === NO_QUEUE || queue === this.needFor) return;
    if (((this.backend.completed[queue] - seq) | 0) >= 0) return;
    if (((this.known[this.needFor * this.queueCount + queue] - seq) | 0) >= 0) return;
    if (this.needMark[queue] === 0) {
      this.needMark[queue] = 1;
      this.needSeq[queue] = seq;
      this.needList[this.needCount++] = queue;
    } else if (((seq - this.needSeq[queue]) | 0) > 0) {
      this.needSeq[queue] = seq;
    }
  }

  /** Issues a kernel after the collected events; copies the record. Returns the command's sequence number. */
  exec(launch: Launch): number {
    const { row } = launch;
    const queue = this.needFor;
    const fold = this.issueWaits(queue);
    const seq = this.backend.exec(
      queue,
      launch.kernel,
      launch.task,
      launch.run,
      launch.nFlows,
      launch.nArgs,
      launch.args,
      fold,
      fold === NO_QUEUE ? 0 : this.needSeq[fold],
    );
    this.outstanding[queue]++;
    this.flight[queue][seq & this.slotMask] = row + 1;
    return seq;
  }

  /** Issues a copy after the collected events; returns its sequence number. */
  copy(
    transfer: number,
    dstSpace: SpaceId,
    dstOffset: number,
    srcSpace: SpaceId,
    srcOffset: number,
    bytes: number,
  ): number {
    const queue = this.needFor;
    const fold = this.issueWaits(queue);
    const seq = this.backend.copy(
      queue,
      transfer,
      dstSpace,
      dstOffset,
      srcSpace,
      srcOffset,
      bytes,
      fold,
      fold === NO_QUEUE ? 0 : this.needSeq[fold],
    );
    this.outstanding[queue]++;
    this.flight[queue][seq & this.slotMask] = -(transfer + 1);
    return seq;
  }

  /**
   * Issues a command to a lane after the collected events; copies the record. Returns the command's sequence number.
   * `isPart`: its end is not the end of the task.
   */
  message(launch: Launch, kind: LaneCommand, isPart: boolean): number {
    const { backend } = this;
    const { task, run, nArgs, args } = launch;
    const lane = this.needFor;
    const fold = this.issueWaits(lane);
    const waitSeq = fold === NO_QUEUE ? 0 : this.needSeq[fold];
    const seq = backend.message(kind, lane, task, run, nArgs, args, fold, waitSeq);
    this.outstanding[lane]++;
    this.flight[lane][seq & this.slotMask] = isPart ? PART : launch.row + 1;
    return seq;
  }

  /** Issues a fill of the queue's own space; its end finishes `transfer`. */
  fill(queue: QueueId, transfer: number, offset: number, bytes: number, value: number): number {
    const seq = this.backend.fill(queue, offset, bytes, value);
    this.outstanding[queue]++;
    this.flight[queue][seq & this.slotMask] = -(transfer + 1);
    return seq;
  }

  /** Tasks under way have new rows. */
  moveRows(rowNow: (row: number) => number): void {
    for (let q = FIRST_QUEUE; q < this.queueCount; q++) {
      const flight = this.flight[q];
      const last = this.backend.issued[q];
      for (let seq = this.seen[q]; seq !== last; ) {
        seq = (seq + 1) | 0;
        const token = flight[seq & this.slotMask];
        if (token > 0 && token !== PART) flight[seq & this.slotMask] = rowNow(token - 1) + 1;
      }
    }
  }

  /** Next finished token of `queue` that carries work, or 0 when all completions were handled. */
  takeFinished(queue: QueueId): number {
    const completed = this.backend.completed[queue];
    const flight = this.flight[queue];
    let seq = this.seen[queue];
    while (seq !== completed) {
      seq = (seq + 1) | 0;
      const slot = seq & this.slotMask;
      const token = flight[slot];
      if (token !== 0) {
        flight[slot] = 0;
        this.seen[queue] = seq;
        this.outstanding[queue]--;
        return token;
      }
    }
    this.seen[queue] = seq;
    return 0;
  }

  /** Drops the events of which others are known to come after them. */
  private dropImplied(): void {
    const { needList, needMark } = this;
    let kept = 0;
    for (let i = 0; i < this.needCount; i++) {
      const q = needList[i];
      if (this.isImplied(q, kept, i)) needMark[q] = 0;
      else needList[kept++] = q;
    }
    this.needCount = kept;
  }

  /**
   * Whether the needed event of queue `q` comes before that of another queue in the list, of which the first `kept` and those behind
   * place `i` count. The last record of a queue comes after all that the queue has waited for. The queues of a GPU do not count: when
   * it is lost, their records are over at once.
   */
  private isImplied(q: QueueId, kept: number, i: number): boolean {
    const { needList, needSeq, known, queueCount } = this;
    const { issued } = this.backend;
    for (let j = 0; j < this.needCount; j++) {
      if (j >= kept && j <= i) continue;
      const other = needList[j];
      if (guards.impliedOnHost && this.isOfGpu[other] === 1) continue;
      if (guards.impliedByLast && needSeq[other] !== issued[other]) continue;
      if (((known[other * queueCount + q] - needSeq[q]) | 0) >= 0) return true;
    }
    return false;
  }

  private issueWaits(queue: QueueId): QueueId {
    if (this.needCount > 1) this.dropImplied();
    const n = this.needCount;
    if (n === 0) return NO_QUEUE;
    const base = queue * this.queueCount;
    for (let i = 0; i < n; i++) {
      const q = this.needList[i];
      this.needMark[q] = 0;
      this.known[base + q] = this.needSeq[q];
      if (i > 0) this.backend.wait(queue, q, this.needSeq[q]);
    }
    this.needCount = 0;
    this.waits += n;
    return this.needList[0];
  }
}
