// The backend port over the native addon: it writes command records straight into the rings that the native
// threads consume, and reads completions from their control words.
//
// Invariant: a ring slot is reused only after the engine has seen its record complete, so `status`, `startOf` and
// `endOf` of a record stay readable until `ringRecords` further records were issued to the queue.

import {
  Control,
  type NativeCore,
  type NativeKernelSource,
  type NativeOptions,
  type NativePlay,
  Opcode,
  QueueKind,
  Record,
  Shared,
  Status,
  Times,
} from '../../native/contract.js';
import { loadNative } from '../../native/index.js';
import type {
  Backend,
  LaneCommand,
  QueueInfo,
  SpaceInfo,
  SteeredKernelParameter,
} from '../backend.js';
import { FIRST_QUEUE, type QueueId, type SpaceId, type TaskId } from '../handles.js';
import { ARRIVAL_ARGUMENT } from '../network/ways.js';
import { type ExportedSpace, exportedSpaces, queuesOf, spacesOf } from './description.js';
import { Doorbells } from './doorbells.js';
import { NativeGraphs } from './graphs.js';
import { HostViews } from './host-views.js';
import { native } from './native-errors.js';
import { QueueProgress } from './progress.js';
import { NativeScriptWorkers, type ScriptProgram } from './script-workers.js';

/** Copies and fills belong to no run: they are never skipped, and the engine handles their failure. */
const NO_RUN = -1;

/** Opens the native core. Errors are typed; see `Runtime.create`. */
export function openNativeBackend(options: NativeOptions, scripts?: ScriptProgram): NativeBackend {
  return new NativeBackend(
    native(() => loadNative().open(options)),
    scripts,
  );
}

export class NativeBackend implements Backend {
  readonly kind = 'native';
  readonly keepsStory = false;
  readonly spaces: readonly SpaceInfo[];
  readonly queues: readonly QueueInfo[];
  readonly ringRecords: number;
  readonly completed: Int32Array;
  readonly issued: Int32Array;
  readonly failures: Int32Array;
  readonly graphs: NativeGraphs;
  readonly scripts: NativeScriptWorkers | undefined;
  readonly full: boolean;
  alsoDue: (() => boolean) | undefined;
  whenStill: (() => void) | undefined;

  private readonly core: NativeCore;
  private readonly control: Int32Array;
  /** The control words as int64. */
  private readonly busyWords: BigInt64Array;
  private readonly shared: Int32Array;
  private readonly words: readonly Int32Array[];
  private readonly doubles: readonly Float64Array[];
  private readonly times: readonly Float64Array[];
  private readonly mask: number;
  private readonly dirty: Uint8Array;
  private readonly count: number;
  /** Number of the first lane; `count` without lanes. */
  private readonly firstLane: number;
  private readonly progress: QueueProgress;
  private readonly doorbells: Doorbells;
  private readonly views: HostViews;
  private beat = 0;
  private closed = false;

  /** `scripts`: the program of the script workers; undefined: there are none. */
  constructor(core: NativeCore, scripts?: ScriptProgram) {
    this.core = core;
    this.full = core.full;
    this.control = core.control;
    const { buffer, byteOffset, length } = core.control;
    this.busyWords = new BigInt64Array(buffer, byteOffset, length / 2);
    this.shared = core.shared;
    this.words = core.rings;
    this.times = core.times;
    this.doubles = core.rings.map((r) => new Float64Array(r.buffer, r.byteOffset, r.length / 2));
    this.ringRecords = core.rings[0].length / Record.words;
    this.mask = this.ringRecords - 1;
    const n = core.queues.length;
    this.count = n;
    const lane = core.queues.findIndex((q) => q.kind === QueueKind.lane);
    this.firstLane = lane < 0 ? n : lane;
    this.dirty = new Uint8Array(n);
    this.progress = new QueueProgress(core, this.firstLane);
    const { completed, failures } = this.progress;
    this.completed = completed;
    this.failures = failures;
    this.issued = completed.slice();
    const alsoDue = (): boolean => this.alsoDue?.() === true;
    this.doorbells = new Doorbells(core, this.firstLane, this.progress, alsoDue);
    this.spaces = spacesOf(core);
    this.views = new HostViews(core);
    this.queues = queuesOf(core);
    this.graphs = new NativeGraphs(core, this.spaces);
    const hasScripts = this.queues.some(({ kind }) => kind === 'script');
    if (scripts !== undefined && hasScripts) this.scripts = new NativeScriptWorkers(core, scripts);
  }

  kernel(name: string, space: SpaceId): number {
    return this.core.kernel(name, space);
  }

  takesLengths(kernel: number): boolean {
    return this.core.takesLengths(kernel);
  }

  steered(kernel: number, space: SpaceId, parameters: readonly SteeredKernelParameter[]): number {
    const { kind } = this.spaces[space];
    if (kind !== 'host' && kind !== 'emulated') return -1;
    const positions = Int32Array.from(parameters, ({ position }) => position);
    const isInteger = Uint8Array.from(parameters, ({ element }) => (element === 'i32' ? 1 : 0));
    return native(() => this.core.steered(kernel, positions, isInteger));
  }

  numberLengths(lengths: Float64Array): number {
    return this.core.numberLengths(lengths);
  }

  loadKernels(path: string): string[] {
    return native(() => this.core.loadKernels(path));
  }

  compileKernels(source: NativeKernelSource): string[] {
    return native(() => this.core.compileKernels(source));
  }

  wait(queue: QueueId, onQueue: QueueId, onSeq: number): void {
    const words = this.words[queue];
    const at = this.next(queue);
    words[at + Record.head] = Opcode.wait;
    words[at + Record.kernel] = (onQueue + 1) << 16;
    words[at + Record.waitSeq] = onSeq;
  }

  // biome-ignore lint/complexity/useMaxParams: one call per command, from submission.ts only; a record would cost time on every task.
  exec(
    queue: QueueId,
    kernel: number,
    task: number,
    run: number,
    nFlows: number,
    nArgs: number,
    args: Float64Array,
    waitQueue: QueueId,
    waitSeq: number,
  ): number {
    const words = this.words[queue];
    const doubles = this.doubles[queue];
    const at = this.next(queue);
    words[at + Record.head] = Opcode.exec | (nFlows << 8) | (nArgs << 20);
    words[at + Record.kernel] = kernel | ((waitQueue + 1) << 16);
    words[at + Record.task] = task;
    words[at + Record.run] = run;
    words[at + Record.waitSeq] = waitSeq;
    words[at + Record.status] = Status.ok;
    const seq = this.issued[queue];
    const inline = nArgs < Record.inlineArguments ? nArgs : Record.inlineArguments;
    const base = (at >> 1) + Record.argument;
    for (let i = 0; i < inline; i++) doubles[base + i] = args[i];
    if (nArgs > inline) this.moreArguments(queue, nArgs, args);
    return seq;
  }

  // biome-ignore lint/complexity/useMaxParams: one call per command, from submission.ts only; a record would cost time on every task.
  message(
    kind: LaneCommand,
    queue: QueueId,
    task: number,
    run: number,
    nArgs: number,
    args: Float64Array,
    waitQueue: QueueId,
    waitSeq: number,
  ): number {
    const seq = this.exec(queue, 0, task as TaskId, run, 0, nArgs, args, waitQueue, waitSeq);
    this.words[queue][((seq - 1) & this.mask) * Record.words + Record.head] =
      Opcode[kind] | (nArgs << 20);
    return seq;
  }

  private moreArguments(queue: QueueId, nArgs: number, args: Float64Array): void {
    const doubles = this.doubles[queue];
    for (let i = Record.inlineArguments; i < nArgs; i += Record.doubles) {
      const base = this.next(queue) >> 1;
      const end = Math.min(nArgs - i, Record.doubles);
      for (let k = 0; k < end; k++) doubles[base + k] = args[i + k];
    }
  }

  // biome-ignore lint/complexity/useMaxParams: one call per command, from submission.ts only; a record would cost time on every task.
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
  ): number {
    const words = this.words[queue];
    const at = this.next(queue);
    words[at + Record.head] = Opcode.copy | (3 << 20);
    words[at + Record.kernel] = dstSpace | (srcSpace << 8) | ((waitQueue + 1) << 16);
    words[at + Record.task] = id;
    words[at + Record.run] = NO_RUN;
    words[at + Record.waitSeq] = waitSeq;
    words[at + Record.status] = Status.ok;
    const doubles = this.doubles[queue];
    const base = (at >> 1) + Record.argument;
    doubles[base] = dstOffset;
    doubles[base + 1] = srcOffset;
    doubles[base + 2] = bytes;
    return this.issued[queue];
  }

  fill(queue: QueueId, offset: number, bytes: number, value: number): number {
    const words = this.words[queue];
    const at = this.next(queue);
    words[at + Record.head] = Opcode.fill | (3 << 20);
    words[at + Record.kernel] = 0;
    words[at + Record.task] = 0;
    words[at + Record.run] = NO_RUN;
    words[at + Record.status] = Status.ok;
    const doubles = this.doubles[queue];
    const base = (at >> 1) + Record.argument;
    doubles[base] = offset;
    doubles[base + 1] = bytes;
    doubles[base + 2] = value;
    return this.issued[queue];
  }

  play(play: NativePlay): void {
    native(() => this.core.play(play));
  }

  extendPlay(times: number): boolean {
    return this.core.extendPlay(times);
  }

  playOutcome(): Float64Array {
    return this.core.playOutcome();
  }

  publish(): void {
    const { control, dirty } = this;
    this.shared[Shared.beat] = ++this.beat;
    for (let q = FIRST_QUEUE; q < this.count; q++) {
      if (dirty[q] === 0) continue;
      dirty[q] = 0;
      const base = q * Control.words;
      // Sequentially consistent on both sides: either the thread sees the new records before it sleeps, or this side sees
      // that it sleeps.
      Atomics.store(control, base + Control.published, this.issued[q]);
      if (Atomics.load(control, base + Control.sleeping) !== 0) this.core.wake(q);
    }
  }

  poll(): boolean {
    return this.progress.poll();
  }

  handledFailures(count: number): void {
    this.progress.handledFailures(count);
  }

  status(queue: QueueId, seq: number): number {
    return this.words[queue][((seq - 1) & this.mask) * Record.words + Record.status];
  }

  startOf(queue: QueueId, seq: number): number {
    return this.times[queue][((seq - 1) & this.mask) * Times.doubles + Times.start];
  }

  endOf(queue: QueueId, seq: number): number {
    return this.times[queue][((seq - 1) & this.mask) * Times.doubles + Times.end];
  }

  arrivalOf(lane: QueueId, seq: number): number {
    const base = ((seq - 1) & this.mask) * Record.doubles + Record.argument;
    return this.doubles[lane][base + ARRIVAL_ARGUMENT];
  }

  lastError(queue: QueueId): string {
    return this.core.lastError(queue);
  }

  setTiming(on: boolean): void {
    Atomics.store(this.shared, Shared.timing, on ? 1 : 0);
  }

  keepTimes(queue: QueueId, seq: number): void {
    this.words[queue][((seq - 1) & this.mask) * Record.words + Record.head] |= Record.timed;
  }

  setCancelled(run: number, on: boolean): void {
    Atomics.store(this.shared, Shared.cancel + run, on ? 1 : 0);
  }

  isCancelled(run: number): boolean {
    return Atomics.load(this.shared, Shared.cancel + run) !== 0;
  }

  arm(queue: QueueId, seq: number): void {
    this.doorbells.arm(queue, seq);
  }
  block(microseconds: number): void {
    this.scripts?.look();
    this.doorbells.block(microseconds);
  }
  serve(microseconds: number): boolean {
    return this.doorbells.serve(microseconds);
  }
  spin(microseconds: number): boolean {
    return this.doorbells.spin(microseconds);
  }
  sleep(): boolean {
    return this.doorbells.sleep();
  }
  soon(callback: () => void): void {
    setImmediate(callback);
  }
  onWake(callback: () => void): void {
    this.doorbells.onWake(callback);
  }
  hold(on: boolean): void {
    this.core.hold(on);
  }

  now(): number {
    return this.core.now();
  }

  workTime(): number {
    return this.core.workTime();
  }

  hostView(offset: number, bytes: number): Uint8Array {
    return this.views.at(offset, bytes);
  }

  busy(queue: QueueId): number {
    const word = Number(Atomics.load(this.busyWords, (queue * Control.words + Control.busy) / 2));
    return word < 0 ? Math.max(0, word + this.core.now()) : word;
  }

  takeStolen(into: Float64Array): number {
    return this.core.takeStolen(into);
  }

  /** The memory spaces for the message layer. @internal */
  exported(): ExportedSpace[] {
    return exportedSpaces(this.core);
  }

  /** Address of the doorbell, for native code outside of the core. @internal */
  doorbell(): bigint {
    return this.core.doorbell();
  }

  /** Address of the lanes, for the message layer. @internal */
  lanes(): bigint {
    return this.core.lanes();
  }

  keepShared(): void {
    this.core.keepShared();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.core.close();
  }

  /** Takes the next ring slot; returns its first word. The caller has checked that there is room. */
  private next(queue: QueueId): number {
    const index = this.issued[queue];
    this.issued[queue] = (index + 1) | 0;
    this.dirty[queue] = 1;
    return (index & this.mask) * Record.words;
  }
}
