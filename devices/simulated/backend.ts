// The backend port in virtual time: the same in-order queues, waits, doorbells and completions as the native
// backend, executed by an event queue instead of threads.
//
// There are two clocks. `hostTime` is that of the engine thread; it moves by what the engine does (commands, blocked
// time). `time` is that of the machine; events up to `hostTime` have happened when the engine looks (poll), and a
// blocked or sleeping engine lets time run until a doorbell it armed rings.
// Invariants: a queue runs one record at a time, in order; a record starts when its wait is over, all before it
// are over and it was published; `completed` (what the engine sees) never runs ahead of `done` (what happened).
import {
  type Backend,
  execRecords,
  NO_QUEUE,
  type QueueInfo,
  type SpaceInfo,
  Status,
} from '../backend.js';
import { Adversary, type AdversaryOptions, calm } from './adversary.js';
import { EventQueue } from './event-queue.js';
import { type Fault, FaultPlan } from './faults.js';
import { type CompiledTime, compileTime } from './kernel-times.js';
import { type MachineDescription, pairLink, queuesOf, spacesOf } from './machine.js';
import type { Watcher } from './watcher.js';

const Op = { nop: 0, wait: 1, exec: 2, copy: 3, fill: 4 } as const;
const ARGS = 8;
const RUNS = 64;

/** What a kernel does to memory, for runs with real bytes. Returns a status: 0, or the kernel's own code. */
export type SimulatedKernel = (call: KernelCall) => number;

/** Arguments of a simulated kernel: its space's bytes, the offsets of its flows, and its parameters. */
export interface KernelCall {
  readonly memory: Uint8Array;
  readonly flows: readonly number[];
  readonly params: readonly number[];
}

export interface SimulatedOptions {
  readonly machine: MachineDescription;
  /** Records per queue; a power of two. */
  readonly ringRecords?: number;
  readonly adversary?: AdversaryOptions;
  readonly faults?: readonly Fault[];
  /** Kernels with a body; memory then consists of real bytes. */
  readonly kernels?: Readonly<Record<string, SimulatedKernel>>;
  /** Sees every access to memory, with its order (weak-memory.ts). */
  readonly watcher?: Watcher;
}

export class SimulatedBackend implements Backend {
  readonly kind = 'simulated';
  readonly spaces: readonly SpaceInfo[];
  readonly queues: readonly QueueInfo[];
  readonly ringRecords: number;
  readonly completed: Int32Array;
  readonly issued: Int32Array;
  readonly failures: Int32Array;
  readonly machine: MachineDescription;
  readonly faults: FaultPlan;
  /** Last finished record of each queue, seen by the engine or not. */
  readonly done: Int32Array;
  /** Records started so far. */
  events = 0;
  /** Kernels started that were not cancelled. */
  launched = 0;
  /** Polls, blocks and sleeps that found the machine idle although the engine waited for it. */
  stalls = 0;
  /** Called when the engine sleeps, commands are under way, and nothing will ever happen. */
  onStall: (() => void) | undefined;

  private readonly adversary: Adversary;
  private readonly watcher: Watcher | undefined;
  private readonly mask: number;
  private readonly count: number;
  private readonly published: Int32Array;
  /** Last record that started (and, unless running, ended). */
  private readonly cursor: Int32Array;
  private readonly running: Uint8Array;
  private readonly blockedSeq: Int32Array;
  private readonly waiters: Int32Array;
  private readonly waitersNext: Int32Array;
  private readonly armed: Uint8Array;
  private readonly armedAt: Int32Array;
  private readonly busyNs: Float64Array;
  private readonly failed: Int32Array;
  private readonly errors: string[];
  private readonly cancelled: Uint8Array = new Uint8Array(RUNS);
  private readonly events_: EventQueue;
  // Per record, at queue * ringRecords + slot.
  private readonly op: Uint8Array;
  private readonly span: Uint8Array;
  private readonly kernelOf: Int32Array;
  private readonly task: Int32Array;
  private readonly run: Int32Array;
  private readonly counts: Int32Array;
  private readonly waitQueue: Int16Array;
  private readonly waitSeq: Int32Array;
  private readonly outcome: Int32Array;
  private readonly startAt: Float64Array;
  private readonly endAt: Float64Array;
  private readonly args: Float64Array;
  private readonly kernelNames: string[] = [];
  private readonly kernelIds: Map<string, number> = new Map();
  private readonly gpuTimes: (CompiledTime | undefined)[] = [];
  private readonly hostTimes: (CompiledTime | undefined)[] = [];
  private readonly bodies: Readonly<Record<string, SimulatedKernel>> | undefined;
  private readonly bytes: (Uint8Array | undefined)[];
  private readonly bandwidth: Float64Array;
  private readonly latency: Float64Array;
  private readonly commandNs: number;
  private readonly launchNs: number;
  private readonly wakeNs: number;
  private time = 0;
  private hostTime = 0;
  private scratch: Uint8Array = new Uint8Array(0);

  constructor(options: SimulatedOptions) {
    const { machine } = options;
    this.machine = machine;
    this.spaces = spacesOf(machine);
    this.queues = queuesOf(machine);
    const n = this.queues.length;
    this.count = n;
    this.ringRecords = options.ringRecords ?? 4096;
    this.mask = this.ringRecords - 1;
    this.adversary = new Adversary(options.adversary ?? calm);
    this.faults = new FaultPlan(options.faults ?? []);
    this.watcher = options.watcher;
    this.bodies = options.kernels;
    this.completed = new Int32Array(n);
    this.issued = new Int32Array(n);
    this.failures = new Int32Array(n);
    this.done = new Int32Array(n);
    this.published = new Int32Array(n);
    this.cursor = new Int32Array(n);
    this.running = new Uint8Array(n);
    this.blockedSeq = new Int32Array(n);
    this.waiters = new Int32Array(n).fill(-1);
    this.waitersNext = new Int32Array(n).fill(-1);
    this.armed = new Uint8Array(n);
    this.armedAt = new Int32Array(n);
    this.busyNs = new Float64Array(n);
    this.failed = new Int32Array(n);
    this.errors = new Array<string>(n).fill('');
    this.events_ = new EventQueue(n);
    const slots = n * this.ringRecords;
    this.op = new Uint8Array(slots);
    this.span = new Uint8Array(slots);
    this.kernelOf = new Int32Array(slots);
    this.task = new Int32Array(slots);
    this.run = new Int32Array(slots);
    this.counts = new Int32Array(slots);
    this.waitQueue = new Int16Array(slots);
    this.waitSeq = new Int32Array(slots);
    this.outcome = new Int32Array(slots);
    this.startAt = new Float64Array(slots);
    this.endAt = new Float64Array(slots);
    this.args = new Float64Array(slots * ARGS);
    this.bytes = this.spaces.map((s) =>
      this.bodies === undefined ? undefined : new Uint8Array(s.bytes),
    );
    this.bandwidth = new Float64Array(n);
    this.latency = new Float64Array(n);
    this.queues.forEach((queue, q) => {
      const link =
        queue.kind === 'h2d'
          ? machine.h2d
          : queue.kind === 'd2h'
            ? machine.d2h
            : queue.kind === 'peer'
              ? pairLink(machine, queue.space - 1, queue.peer - 1)
              : null;
      this.bandwidth[q] = (link?.bandwidth ?? 1e11) / 1e9;
      this.latency[q] = (link?.latency ?? 0) * 1e9;
    });
    this.commandNs = machine.engine.command * 1e9;
    this.launchNs = machine.engine.launch * 1e9;
    this.wakeNs = machine.engine.wake * 1e9;
    this.watcher?.open(this);
  }

  kernel(name: string, space: number): number {
    let id = this.kernelIds.get(name);
    if (id !== undefined) return id;
    const { machine } = this;
    const model = machine.kernels[name] ?? machine.kernels['*'];
    const hostModel = machine.hostKernels?.[name] ?? machine.hostKernels?.['*'] ?? model;
    if (model === undefined || (this.bodies !== undefined && this.bodies[name] === undefined))
      return -1;
    void space;
    id = this.kernelNames.length;
    this.kernelIds.set(name, id);
    this.kernelNames.push(name);
    this.gpuTimes.push(compileTime(model, name));
    this.hostTimes.push(compileTime(hostModel, name));
    return id;
  }

  loadKernels(): string[] {
    return [];
  }

  compileKernels(): string[] {
    return [];
  }

  wait(queue: number, onQueue: number, onSeq: number): void {
    this.next(queue, Op.wait, 0, 0, onQueue, onSeq);
  }

  exec(
    queue: number,
    kernel: number,
    task: number,
    run: number,
    nFlows: number,
    nArgs: number,
    args: Float64Array,
    waitQueue: number,
    waitSeq: number,
  ): number {
    const slot = this.next(queue, Op.exec, task, run, waitQueue, waitSeq);
    const seq = this.issued[queue];
    this.kernelOf[slot] = kernel;
    this.counts[slot] = nFlows | (nArgs << 12);
    const records = execRecords(nArgs);
    this.span[slot] = records;
    const base = queue * this.ringRecords;
    const within = (slot - base) * ARGS;
    const wrap = this.ringRecords * ARGS - 1;
    for (let i = 0; i < nArgs; i++) this.args[base * ARGS + ((within + i) & wrap)] = args[i];
    this.issued[queue] = (seq + records - 1) | 0;
    this.hostTime += this.commandNs;
    return seq;
  }

  copy(
    queue: number,
    id: number,
    dstSpace: number,
    dstOffset: number,
    srcSpace: number,
    srcOffset: number,
    bytes: number,
    waitQueue: number,
    waitSeq: number,
  ): number {
    const slot = this.next(queue, Op.copy, id, -1, waitQueue, waitSeq);
    this.kernelOf[slot] = dstSpace | (srcSpace << 8);
    this.args[slot * ARGS] = dstOffset;
    this.args[slot * ARGS + 1] = srcOffset;
    this.args[slot * ARGS + 2] = bytes;
    this.hostTime += this.commandNs;
    return this.issued[queue];
  }

  fill(queue: number, offset: number, bytes: number, value: number): number {
    const slot = this.next(queue, Op.fill, 0, -1, NO_QUEUE, 0);
    this.args[slot * ARGS] = offset;
    this.args[slot * ARGS + 1] = bytes;
    this.args[slot * ARGS + 2] = value;
    return this.issued[queue];
  }

  publish(): void {
    for (let q = 0; q < this.count; q++) {
      if (this.published[q] === this.issued[q]) continue;
      this.published[q] = this.issued[q];
      if (this.running[q] === 0) this.go(q, Math.max(this.time, this.hostTime));
    }
  }

  poll(): boolean {
    const { adversary } = this;
    if (adversary.active || this.faults.faults.length > 0)
      this.hostTime += adversary.heldUp() + this.faults.poll();
    this.runUntil(this.hostTime);
    let moved = false;
    for (let q = 0; q < this.count; q++) {
      if (this.completed[q] === this.done[q]) continue;
      // A failure is shown before anything that ran behind it (the port's promise).
      const hides = adversary.active && this.failed[q] === this.failures[q];
      const shown = hides ? this.shownOf(q) : this.done[q];
      if (shown === this.completed[q]) continue;
      this.watcher?.seen(q, shown);
      this.completed[q] = shown;
      this.failures[q] = this.failed[q];
      moved = true;
    }
    return moved;
  }

  status(queue: number, seq: number): number {
    return this.outcome[this.slotOf(queue, seq)];
  }

  startOf(queue: number, seq: number): number {
    return this.startAt[this.slotOf(queue, seq)];
  }

  endOf(queue: number, seq: number): number {
    return this.endAt[this.slotOf(queue, seq)];
  }

  lastError(queue: number): string {
    return this.errors[queue];
  }

  setTiming(): void {
    // Times are always kept.
  }

  setCancelled(run: number, on: boolean): void {
    this.cancelled[run] = on ? 1 : 0;
  }

  isCancelled(run: number): boolean {
    return this.cancelled[run] !== 0;
  }

  arm(queue: number, seq: number): void {
    this.armed[queue] = 1;
    this.armedAt[queue] = seq;
  }

  block(microseconds: number): void {
    const until = this.hostTime + microseconds * 1000;
    if (!this.runUntilDoorbell(until)) this.hostTime = Math.max(this.hostTime, until);
    if (this.events_.length === 0 && ++this.stalls > 1000) {
      throw new Error(`simulation: the engine blocks for ever; ${this.describeQueues()}`);
    }
  }

  sleep(): boolean {
    if (this.runUntilDoorbell(Number.POSITIVE_INFINITY)) {
      this.stalls = 0;
      return false;
    }
    // No doorbell will ring any more. Without commands under way a JavaScript body will wake the engine; with some,
    // the wake-up was lost or a command hangs.
    for (let q = 0; q < this.count; q++) {
      if (this.issued[q] !== this.completed[q]) {
        this.stalls++;
        this.onStall?.();
        break;
      }
    }
    return true;
  }

  onWake(): void {
    // sleep() returns when the doorbell has rung; nothing calls back.
  }

  hold(): void {
    // No thread keeps the process alive.
  }

  now(): number {
    return this.hostTime;
  }

  hostView(offset: number, bytes: number): Uint8Array {
    const memory = this.bytes[0];
    if (memory !== undefined) return memory.subarray(offset, offset + bytes);
    if (this.scratch.length < bytes) this.scratch = new Uint8Array(Math.ceil(bytes / 8) * 8);
    return this.scratch.subarray(0, bytes);
  }

  /** Bytes of a space, for tests with real bytes. */
  memory(space: number): Uint8Array | undefined {
    return this.bytes[space];
  }

  busy(queue: number): number {
    return this.busyNs[queue];
  }

  close(): void {
    this.watcher?.close();
  }

  /** Lets everything published happen, as if the engine had been held up for long. False: nothing happened. */
  settle(): boolean {
    const before = this.events;
    while (this.events_.length > 0) this.runUntil(this.events_.time);
    this.hostTime = Math.max(this.hostTime, this.time);
    return this.events !== before;
  }

  /** What each queue is at, for reports. */
  describeQueues(): string {
    const lines: string[] = [];
    for (let q = 0; q < this.count; q++) {
      if (this.issued[q] === this.done[q]) continue;
      const slot = this.slotOf(q, (this.cursor[q] + 1) | 0);
      const held = this.op[slot] === Op.wait || this.waitQueue[slot] !== NO_QUEUE;
      lines.push(
        `queue ${q} (${this.queues[q].kind} of space ${this.queues[q].space}): done ${this.done[q]} of ${this.issued[q]}, ` +
          `published ${this.published[q]}${held ? `, next waits for queue ${this.waitQueue[slot]} record ${this.waitSeq[slot]}` : ''}`,
      );
    }
    return lines.join('; ');
  }

  // --- The machine ----------------------------------------------------------------------------------------------

  private next(
    queue: number,
    op: number,
    task: number,
    run: number,
    waitQueue: number,
    waitSeq: number,
  ): number {
    const seq = (this.issued[queue] + 1) | 0;
    if (((seq - this.completed[queue]) | 0) > this.ringRecords) {
      throw new Error(`simulation: ring of queue ${queue} overflows`);
    }
    this.issued[queue] = seq;
    const slot = this.slotOf(queue, seq);
    this.op[slot] = op;
    this.span[slot] = 1;
    this.task[slot] = task;
    this.run[slot] = run;
    this.waitQueue[slot] = waitQueue;
    this.waitSeq[slot] = waitSeq;
    this.outcome[slot] = Status.ok;
    this.watcher?.issued(queue, seq, waitQueue, waitSeq);
    return slot;
  }

  private slotOf(queue: number, seq: number): number {
    return queue * this.ringRecords + ((seq - 1) & this.mask);
  }

  /** Starts records of a queue from time `at` on, as far as they can go. */
  private go(q: number, at: number): void {
    while (this.cursor[q] !== this.published[q]) {
      const seq = (this.cursor[q] + 1) | 0;
      const slot = this.slotOf(q, seq);
      const on = this.waitQueue[slot];
      if (on !== NO_QUEUE && ((this.done[on] - this.waitSeq[slot]) | 0) < 0) {
        this.blockedSeq[q] = this.waitSeq[slot];
        this.waitersNext[q] = this.waiters[on];
        this.waiters[on] = q;
        this.running[q] = 2;
        return;
      }
      const op = this.op[slot];
      if (op !== Op.wait) {
        this.start(q, slot, at);
        return;
      }
      this.watcher?.started(q, seq);
      this.watcher?.finished(q, seq, seq);
      this.cursor[q] = seq;
      this.finish(q, seq, at);
    }
    this.running[q] = 0;
  }

  private start(q: number, slot: number, at: number): void {
    const space = this.queues[q].space;
    const nArgs = this.counts[slot] >> 12;
    const nFlows = this.counts[slot] & 0xfff;
    let ns = 0;
    let status: number = Status.ok;
    this.events++;
    this.watcher?.started(q, (this.cursor[q] + 1) | 0);
    if (this.op[slot] === Op.exec) {
      if (this.cancelled[this.run[slot]] !== 0) status = Status.cancelled;
      else {
        status = this.faults.kernel(space);
        this.launched++;
        const model = (space === 0 ? this.hostTimes : this.gpuTimes)[this.kernelOf[slot]];
        if (model !== undefined) {
          const call = this.argumentsOf(slot, nArgs);
          ns = this.adversary.stretch(
            model(call, nFlows, nArgs - nFlows) * 1e9 + (space === 0 ? 0 : this.launchNs),
          );
        }
      }
    } else if (this.op[slot] === Op.copy) {
      status = this.faults.copy(space);
      ns = this.adversary.stretch(this.latency[q] + this.args[slot * ARGS + 2] / this.bandwidth[q]);
    } else ns = this.adversary.stretch(this.launchNs);
    this.outcome[slot] = status;
    this.startAt[slot] = at;
    this.running[q] = 1;
    if (!Number.isNaN(status)) this.events_.push(q, at + ns);
  }

  private argumentsOf(slot: number, nArgs: number): Float64Array {
    const base = slot * ARGS;
    const queue = Math.floor(slot / this.ringRecords);
    const end = (queue + 1) * this.ringRecords * ARGS;
    if (base + nArgs <= end) return this.args.subarray(base, base + nArgs);
    const list = new Float64Array(nArgs);
    const wrap = this.ringRecords * ARGS;
    for (let i = 0; i < nArgs; i++)
      list[i] = this.args[base + i < end ? base + i : base + i - wrap];
    return list;
  }

  private runUntil(limit: number): void {
    const { events_ } = this;
    while (events_.length > 0 && events_.time <= limit) this.step();
  }

  private step(): void {
    this.time = this.events_.time;
    const q = this.events_.pop();
    const first = (this.cursor[q] + 1) | 0;
    const slot = this.slotOf(q, first);
    const last = (first + this.span[slot] - 1) | 0;
    this.effects(q, slot, first);
    this.endAt[slot] = this.time;
    if (this.op[slot] !== Op.fill) this.busyNs[q] += this.time - this.startAt[slot];
    const status = this.outcome[slot];
    if (status !== Status.ok) {
      this.failed[q]++;
      if (this.run[slot] >= 0) this.cancelled[this.run[slot]] = 1;
      if (status === Status.driver || status === Status.deviceLost)
        this.errors[q] = 'injected fault';
    }
    this.watcher?.finished(q, first, last);
    this.cursor[q] = last;
    this.running[q] = 0;
    this.finish(q, last, this.time);
    if (this.running[q] === 0) this.go(q, this.time);
  }

  /** What a record does to memory; all of it happens at its end. */
  private effects(q: number, slot: number, seq: number): void {
    const { watcher } = this;
    const at = slot * ARGS;
    if (this.op[slot] === Op.exec) {
      const nArgs = this.counts[slot] >> 12;
      const nFlows = this.counts[slot] & 0xfff;
      const args = this.argumentsOf(slot, nArgs);
      const { space } = this.queues[q];
      const body = this.bodies?.[this.kernelNames[this.kernelOf[slot]]];
      const memory = this.bytes[space];
      if (this.outcome[slot] === Status.ok && body !== undefined && memory !== undefined) {
        const list = Array.from(args);
        const call = { memory, flows: list.slice(0, nFlows), params: list.slice(nFlows) };
        this.outcome[slot] = body(call);
      }
      watcher?.exec(q, seq, space, this.task[slot], this.outcome[slot], args, nFlows);
    } else if (this.op[slot] === Op.copy) {
      const destination = this.kernelOf[slot] & 0xff;
      const source = this.kernelOf[slot] >> 8;
      const to = this.bytes[destination];
      const from = this.bytes[source];
      const bytes = this.args[at + 2];
      if (to !== undefined && from !== undefined && this.outcome[slot] === Status.ok) {
        to.set(from.subarray(this.args[at + 1], this.args[at + 1] + bytes), this.args[at]);
      }
      watcher?.copy(
        q,
        seq,
        this.task[slot],
        this.outcome[slot],
        destination,
        this.args[at],
        source,
        this.args[at + 1],
        bytes,
      );
    } else if (this.op[slot] === Op.fill) {
      const { space } = this.queues[q];
      this.bytes[space]?.fill(this.args[at + 2], this.args[at], this.args[at] + this.args[at + 1]);
      watcher?.fill(q, seq, space, this.args[at], this.args[at + 1]);
    }
  }

  /** Marks a record done and lets those go that waited for it. */
  private finish(q: number, seq: number, at: number): void {
    this.done[q] = seq;
    let w = this.waiters[q];
    this.waiters[q] = -1;
    while (w >= 0) {
      const next = this.waitersNext[w];
      if (((seq - this.blockedSeq[w]) | 0) >= 0) {
        this.running[w] = 0;
        this.go(w, at);
      } else {
        this.waitersNext[w] = this.waiters[q];
        this.waiters[q] = w;
      }
      w = next;
    }
  }

  private due(): boolean {
    for (let q = 0; q < this.count; q++) {
      if (this.armed[q] !== 0 && ((this.done[q] - this.armedAt[q]) | 0) >= 0) return true;
    }
    return false;
  }

  /** Lets time run until an armed doorbell rings or `limit`; true when it rang. */
  private runUntilDoorbell(limit: number): boolean {
    let rang = this.due() || this.adversary.wakesForNothing();
    while (!rang && this.events_.length > 0 && this.events_.time <= limit) {
      this.step();
      rang = this.due();
    }
    if (rang) this.hostTime = Math.max(this.hostTime, this.time) + this.wakeNs;
    // What rang is shown at the next poll, whatever the adversary would like.
    for (let q = 0; q < this.count; q++) {
      if (this.armed[q] !== 0 && ((this.done[q] - this.armedAt[q]) | 0) >= 0) this.mustShow[q] = 1;
    }
    this.armed.fill(0);
    return rang;
  }

  private readonly mustShow: Uint8Array = new Uint8Array(1024);

  /** How much of what happened on a queue the adversary lets the engine see. */
  private shownOf(q: number): number {
    if (this.mustShow[q] !== 0) {
      this.mustShow[q] = 0;
      return this.done[q];
    }
    const all = (this.done[q] - this.completed[q]) | 0;
    let left = this.adversary.shown(all);
    let seq = this.completed[q];
    while (left > 0 && seq !== this.done[q]) {
      const span = this.span[this.slotOf(q, (seq + 1) | 0)];
      seq = (seq + span) | 0;
      left -= span;
    }
    return seq;
  }
}
