// Issues commands to queues and tells who was issued where.
//
// An event is (queue, sequence number). Before a command, the caller names the events it must follow; this file
// drops those that need no command because they are over, because they lie on the same in-order queue, or because
// the queue already waited for a later event of the same source (`known`, one vector clock per queue), and folds
// the first of the rest into the command's own record. So a command costs at most the edges it needs.
//
// Invariant: between issue and observed completion every record that carries work has its token in `flight`:
// positive = task row + 1, negative = -(transfer id + 1), 0 = nothing to do on completion.
import { argumentsOf, type Backend, execRecords, NO_QUEUE } from './backend.js';

/** Records after which old events are forgotten: far below half of the int32 range. */
const SWEEP_EVERY = 2 ** 28;

/** Records a ring must have at least: a command may wait for every queue before it, and takes a few records itself. */
export function leastRing(queues: number): number {
  return queues + 2;
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
  private readonly needList: Int32Array;
  private needCount = 0;
  private needFor = 0;
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
    for (let q = 0; q < n; q++) this.known.set(this.seen, q * n);
    this.sweptAt = Int32Array.from(this.seen);
    this.needSeq = new Int32Array(n);
    this.needMark = new Uint8Array(n);
    this.needList = new Int32Array(n);
  }

  /**
   * True when some queue has come so far that comparing with old sequence numbers is about to wrap: the caller then
   * forgets every event that is over (`Directory.forgetHappened`) and calls `refresh`.
   */
  get sweepDue(): boolean {
    for (let q = 0; q < this.queueCount; q++) {
      if (((this.seen[q] - this.sweptAt[q]) | 0) > SWEEP_EVERY) return true;
    }
    return false;
  }

  /** Brings the vector clocks up to what has completed. */
  refresh(): void {
    const n = this.queueCount;
    for (let q = 0; q < n; q++) {
      const completed = this.backend.completed[q];
      this.sweptAt[q] = this.seen[q];
      for (let mine = 0; mine < n; mine++) {
        const at = mine * n + q;
        if (((completed - this.known[at]) | 0) > 0) this.known[at] = completed;
      }
    }
  }

  /** Records that may still be written to a queue. */
  room(queue: number): number {
    return this.backend.ringRecords - ((this.backend.issued[queue] - this.seen[queue]) | 0);
  }

  /** Records a command with `nArgs` arguments may take at most, its waits included. */
  worstCase(nArgs: number): number {
    return this.queueCount + execRecords(nArgs);
  }

  /** Most arguments of one command: with more it would not fit an empty ring, waits for all queues included. */
  get mostArguments(): number {
    return argumentsOf(this.backend.ringRecords - this.queueCount);
  }

  /** Whether an event is over, as of the last poll. */
  happened(queue: number, seq: number): boolean {
    return queue === NO_QUEUE || ((this.backend.completed[queue] - seq) | 0) >= 0;
  }

  /** Starts collecting the events the next command of `queue` must follow. */
  begin(queue: number): void {
    this.needFor = queue;
    this.needCount = 0;
  }

  /** The next command must follow this event. */
  after(queue: number, seq: number): void {
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

  /** Issues a kernel after the collected events; returns its sequence number. */
  exec(
    kernel: number,
    row: number,
    task: number,
    run: number,
    nFlows: number,
    nArgs: number,
    args: Float64Array,
  ): number {
    const queue = this.needFor;
    const fold = this.issueWaits(queue);
    const seq = this.backend.exec(
      queue,
      kernel,
      task,
      run,
      nFlows,
      nArgs,
      args,
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
    dstSpace: number,
    dstOffset: number,
    srcSpace: number,
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

  /** Issues a fill of the queue's own space; `transfer` is told when it is over. */
  fill(queue: number, transfer: number, offset: number, bytes: number, value: number): number {
    const seq = this.backend.fill(queue, offset, bytes, value);
    this.outstanding[queue]++;
    this.flight[queue][seq & this.slotMask] = -(transfer + 1);
    return seq;
  }

  /** Tasks under way have other rows now. */
  moveRows(rowNow: (row: number) => number): void {
    for (let q = 0; q < this.queueCount; q++) {
      const flight = this.flight[q];
      const last = this.backend.issued[q];
      for (let seq = this.seen[q]; seq !== last; ) {
        seq = (seq + 1) | 0;
        const token = flight[seq & this.slotMask];
        if (token > 0) flight[seq & this.slotMask] = rowNow(token - 1) + 1;
      }
    }
  }

  /** Next finished token of `queue` that carries work, or 0 when all completions were handled. */
  takeFinished(queue: number): number {
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

  private issueWaits(queue: number): number {
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
