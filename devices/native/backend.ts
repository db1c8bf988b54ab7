// The backend port over the native addon: it writes command records straight into the rings that the native
// threads consume, and reads completions from their control words.
//
// Invariant: a ring slot is reused only after the engine has seen its record complete, so `status`, `startOf` and
// `endOf` of a record stay readable until `ringRecords` further records were issued to the queue.

import {
  Control,
  type NativeCore,
  type NativeIpcExport,
  type NativeKernelSource,
  type NativeOptions,
  Opcode,
  QueueKind,
  Record,
  Shared,
  SpaceKind,
  Status,
  Times,
} from '../../native/contract.js';
import { loadNative, NativeError } from '../../native/index.js';
import type { Backend, QueueInfo, SpaceInfo } from '../backend.js';
import { HeadraceError } from '../errors.js';
import { FIRST_QUEUE, type QueueId, type SpaceId, type TaskId } from '../handles.js';

/** Looks between two readings of the clock. */
const LOOKS = 64;
/** JavaScript sees host memory in pieces of this size, each mapped once. */
const VIEW_CHUNK = 2 ** 28;

/** Copies and fills belong to no run: they are never skipped, and the engine handles their failure. */
const NO_RUN = -1;

const SPACE_NAMES: readonly SpaceInfo['kind'][] = ['host', 'emulated', 'cuda', 'hip'];
const QUEUE_NAMES: readonly QueueInfo['kind'][] = [
  'worker',
  'compute',
  'h2d',
  'd2h',
  'peer',
  'lane',
];

function nameOf<T>(names: readonly T[], kinds: object, kind: number): T {
  const name = names[kind];
  if (name === undefined)
    throw new Error(`native core: unknown kind ${kind} of ${Object.keys(kinds)}`);
  return name;
}

const ERROR_CODES: Readonly<Record<string, string>> = {
  NATIVE_UNAVAILABLE: 'ERR_NATIVE_MISSING',
  INVALID_OPTION: 'ERR_OPTION',
  DRIVER_UNAVAILABLE: 'ERR_NO_GPU',
  DRIVER: 'ERR_DRIVER',
  OUT_OF_MEMORY: 'ERR_OUT_OF_MEMORY',
  OUT_OF_RANGE: 'ERR_OUT_OF_RANGE',
  KERNEL_LIBRARY: 'ERR_KERNEL_LIBRARY',
  KERNEL_SOURCE: 'ERR_KERNEL_SOURCE',
  CLOSED: 'ERR_RUNTIME_CLOSED',
};

/** Runs a call into the addon and turns its errors into those of the project. */
function native<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof NativeError)) throw error;
    const code = ERROR_CODES[error.code] ?? 'ERR_NATIVE';
    throw new HeadraceError(code, error.message, {
      cause: error,
      remedy: error.remedy,
    });
  }
}

/** A memory space as the message layer sees it. */
export interface ExportedSpace {
  readonly kind: number;
  /** A GPU behind a driver, whose memory the host cannot touch. */
  readonly isReal: boolean;
  readonly base: bigint;
  readonly bytes: number;
  readonly fd: number;
  readonly uuid: string;
  readonly exported: NativeIpcExport | undefined;
  readonly flushOptions: number;
  readonly writeOrdering: number;
}

/** Opens the native core. Errors are typed; see `Runtime.create`. */
export function openNativeBackend(options: NativeOptions): NativeBackend {
  return new NativeBackend(native(() => loadNative().open(options)));
}

export class NativeBackend implements Backend {
  readonly kind = 'native';
  readonly spaces: readonly SpaceInfo[];
  readonly queues: readonly QueueInfo[];
  readonly ringRecords: number;
  readonly completed: Int32Array;
  readonly issued: Int32Array;
  readonly failures: Int32Array;
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
  /** `Shared.arrivals` and `Shared.failed` as of the last `poll`. */
  private arrivals = 0;
  private failed = 0;
  /** Lanes have armed doorbells. */
  private lanesArmed = false;
  private readonly chunks: (ArrayBuffer | undefined)[] = [];
  private beat = 0;
  private closed = false;

  constructor(core: NativeCore) {
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
    this.completed = new Int32Array(n);
    this.issued = new Int32Array(n);
    this.failures = new Int32Array(n);
    for (let q = FIRST_QUEUE; q < n; q++) {
      this.completed[q] = Atomics.load(this.control, q * Control.words + Control.completed);
      this.issued[q] = this.completed[q];
    }
    this.spaces = core.spaces.map((s, i) => ({
      kind: nameOf(SPACE_NAMES, SpaceKind, s.kind),
      // GPUs of one model share a name: only the number tells them apart.
      name: s.kind < SpaceKind.cuda ? s.name : `GPU ${i - 1} (${s.name})`,
      bytes: s.bytes,
    }));
    this.queues = core.queues.map((q) => ({
      kind: nameOf(QUEUE_NAMES, QueueKind, q.kind),
      space: q.space as SpaceId,
      peer: q.peer as SpaceId,
    }));
  }

  kernel(name: string, space: SpaceId): number {
    return this.core.kernel(name, space);
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
  send(
    lane: QueueId,
    task: number,
    run: number,
    nArgs: number,
    args: Float64Array,
    waitQueue: QueueId,
    waitSeq: number,
  ): number {
    return this.lane(Opcode.send, lane, task, run, nArgs, args, waitQueue, waitSeq);
  }

  receive(
    lane: QueueId,
    task: number,
    run: number,
    args: Float64Array,
    waitQueue: QueueId,
    waitSeq: number,
  ): number {
    return this.lane(Opcode.receive, lane, task, run, 4, args, waitQueue, waitSeq);
  }

  // biome-ignore lint/complexity/useMaxParams: the words of one record, from the two functions above only.
  private lane(
    opcode: number,
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
      opcode | (nArgs << 20);
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

  spin(until: number): boolean {
    let isDue = false;
    do {
      for (let i = 0; i < LOOKS && !isDue; i++) isDue = this.due();
    } while (!isDue && this.now() < until);
    this.disarm();
    return isDue;
  }

  poll(): boolean {
    const { control, completed } = this;
    let moved = false;
    // Lanes only when one has completed something. The count is read before their words: it covers no more than these.
    const arrivals = Atomics.load(this.shared, Shared.arrivals);
    const end = arrivals === this.arrivals ? this.firstLane : this.count;
    this.arrivals = arrivals;
    for (let q = FIRST_QUEUE; q < end; q++) {
      const at = q * Control.words + Control.completed;
      const now = Atomics.load(control, at);
      if (now !== completed[q]) {
        // A thread counts a failure before it publishes the completion, so this count covers every record seen complete.
        this.failures[q] = Atomics.load(control, q * Control.words + Control.failures);
        completed[q] = now;
        moved = true;
      }
    }
    if (moved) this.showFailures();
    return moved;
  }

  /**
   * A completion read above may have followed a failure on a queue that had been read before: every failure
   * before now becomes visible together with it.
   */
  private showFailures(): void {
    const { control, completed, failures } = this;
    const count = Atomics.load(this.shared, Shared.failed);
    if (count === this.failed) return;
    this.failed = count;
    for (let q = FIRST_QUEUE; q < this.count; q++) {
      const at = q * Control.words;
      const failed = Atomics.load(control, at + Control.failures);
      if (failed === failures[q]) continue;
      failures[q] = failed;
      completed[q] = Atomics.load(control, at + Control.completed);
    }
  }

  handledFailures(count: number): void {
    Atomics.store(this.shared, Shared.failuresHandled, count);
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

  lastError(queue: QueueId): string {
    return this.core.lastError(queue);
  }

  setTiming(on: boolean): void {
    Atomics.store(this.shared, Shared.timing, on ? 1 : 0);
  }

  setCancelled(run: number, on: boolean): void {
    Atomics.store(this.shared, Shared.cancel + run, on ? 1 : 0);
  }

  isCancelled(run: number): boolean {
    return Atomics.load(this.shared, Shared.cancel + run) !== 0;
  }

  arm(queue: QueueId, seq: number): void {
    const base = queue * Control.words;
    Atomics.store(this.control, base + Control.doorbellAt, seq);
    Atomics.store(this.control, base + Control.doorbellArmed, 1);
    if (queue >= this.firstLane) this.lanesArmed = true;
  }

  block(microseconds: number): void {
    Atomics.store(this.shared, Shared.engineAsleep, 1);
    if (!this.due()) this.core.waitForDoorbell(microseconds);
    Atomics.store(this.shared, Shared.engineAsleep, 0);
    this.disarm();
  }

  serve(microseconds: number): boolean {
    Atomics.store(this.shared, Shared.engineAsleep, 1);
    const served = this.due() || this.core.serveUntilDoorbell(microseconds);
    Atomics.store(this.shared, Shared.engineAsleep, 0);
    this.disarm();
    return served;
  }

  sleep(): boolean {
    Atomics.store(this.shared, Shared.engineAsleep, 2);
    if (!this.due()) {
      // A worker that made room for the engine reads this word before it sleeps.
      if (Atomics.load(this.shared, Shared.aside) !== 0) this.core.recall();
      return true;
    }
    Atomics.store(this.shared, Shared.engineAsleep, 0);
    this.disarm();
    return false;
  }

  soon(callback: () => void): void {
    setImmediate(callback);
  }
  onWake(callback: () => void): void {
    this.core.onDoorbell(() => {
      Atomics.store(this.shared, Shared.engineAsleep, 0);
      this.disarm();
      callback();
    });
  }

  hold(on: boolean): void {
    this.core.hold(on);
  }

  now(): number {
    return this.core.now();
  }

  hostView(offset: number, bytes: number): Uint8Array {
    const chunk = Math.floor(offset / VIEW_CHUNK);
    const within = offset - chunk * VIEW_CHUNK;
    if (within + bytes > VIEW_CHUNK) return new Uint8Array(this.core.hostView(offset, bytes));
    let buffer = this.chunks[chunk];
    if (buffer === undefined) {
      const length = Math.min(VIEW_CHUNK, this.spaces[0].bytes - chunk * VIEW_CHUNK);
      buffer = this.core.hostView(chunk * VIEW_CHUNK, length);
      this.chunks[chunk] = buffer;
    }
    return new Uint8Array(buffer, within, bytes);
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
    return this.core.spaces.map(({ kind, bytes, uuid, flushOptions, writeOrdering }, s) => ({
      kind,
      isReal: kind === SpaceKind.cuda || kind === SpaceKind.hip,
      base: this.core.address(s),
      bytes,
      fd: this.core.shareable(s)?.fd ?? -1,
      uuid,
      exported: this.core.ipcExport(s) ?? undefined,
      flushOptions,
      writeOrdering,
    }));
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

  /** An armed event is over already: the doorbell may have rung before the engine slept. */
  private due(): boolean {
    if (this.alsoDue?.() === true) return true;
    const { control, shared } = this;
    // A failure rings unarmed (native/queues/queue.h).
    if (Atomics.load(shared, Shared.failed) !== shared[Shared.failuresHandled]) return true;
    const arrived = Atomics.load(shared, Shared.arrivals) !== this.arrivals;
    const end = arrived && this.lanesArmed ? this.count : this.firstLane;
    for (let q = FIRST_QUEUE; q < end; q++) {
      const base = q * Control.words;
      if (Atomics.load(control, base + Control.doorbellArmed) === 0) continue;
      const completed = Atomics.load(control, base + Control.completed);
      if (((completed - control[base + Control.doorbellAt]) | 0) >= 0) return true;
    }
    return false;
  }

  private disarm(): void {
    const end = this.lanesArmed ? this.count : this.firstLane;
    this.lanesArmed = false;
    for (let q = FIRST_QUEUE; q < end; q++) {
      Atomics.store(this.control, q * Control.words + Control.doorbellArmed, 0);
    }
  }

  /** Takes the next ring slot; returns its first word. The caller has checked that there is room. */
  private next(queue: QueueId): number {
    const index = this.issued[queue];
    this.issued[queue] = (index + 1) | 0;
    this.dirty[queue] = 1;
    return (index & this.mask) * Record.words;
  }
}
