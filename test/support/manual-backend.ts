// A backend that does nothing by itself: tests read the issued commands and complete records by hand.

import {
  type Backend,
  execRecords,
  type QueueInfo,
  type SpaceInfo,
  Status,
} from '../../devices/backend.js';
import { FIRST_GPU, HOST, NO_QUEUE, NO_SPACE } from '../../devices/handles.js';

/** A command as it was issued. */
export interface IssuedCommand {
  readonly kind: 'wait' | 'exec' | 'message' | 'copy' | 'fill';
  readonly queue: number;
  readonly seq: number;
  /** Event it waits for, or NO_QUEUE. */
  readonly onQueue: number;
  readonly onSeq: number;
  /** Of a copy: from where to where. */
  readonly move?: Move;
}

/** Ends of a copy: spaces, and offsets in bytes. */
interface Move {
  readonly to: number;
  readonly toOffset: number;
  readonly from: number;
  readonly fromOffset: number;
}

/**
 * Queues of a host with workers, of some GPUs with `streams` compute queues each, and lanes to other ranks: by space as in the
 * native core, lanes last.
 */
export function queuesOf(workers: number, gpus: number, streams = 1, lanes = 0): QueueInfo[] {
  const queues: QueueInfo[] = [];
  for (let w = 0; w < workers; w++) queues.push({ kind: 'worker', space: HOST, peer: NO_SPACE });
  for (let g = FIRST_GPU; g <= gpus; g++) {
    for (let c = 0; c < streams; c++) queues.push({ kind: 'compute', space: g, peer: NO_SPACE });
    for (const kind of ['h2d', 'd2h'] as const) queues.push({ kind, space: g, peer: NO_SPACE });
    for (let p = FIRST_GPU; p <= gpus; p++)
      if (p !== g) queues.push({ kind: 'peer', space: g, peer: p });
  }
  for (let l = 0; l < lanes; l++) queues.push({ kind: 'lane', space: HOST, peer: NO_SPACE });
  return queues;
}

export class ManualBackend {
  readonly kind = 'simulated';
  readonly keepsStory = true;
  readonly spaces: readonly SpaceInfo[];
  readonly queues: readonly QueueInfo[];
  readonly ringRecords: number;
  readonly completed: Int32Array;
  readonly issued: Int32Array;
  readonly failures: Int32Array;
  readonly commands: IssuedCommand[] = [];
  /** Doorbells that are armed: the record of each queue. */
  readonly armed: Map<number, number> = new Map();
  /** Every other call of the engine, in order: 'block', 'serve', 'sleep', 'hold', 'release', 'cancel 3', 'revive 3'. */
  readonly calls: string[] = [];
  /** The engine's thread has no core of its own; and there are commands that it may execute. */
  full = false;
  serves = true;
  /** A doorbell rings before the engine is asleep. */
  isDue = false;
  time = 0;
  /** Called when the engine goes to sleep, blocks or serves. */
  onIdle: (() => void) | undefined;
  private news = false;
  private readonly statuses: Map<string, number> = new Map();
  private wake: () => void = () => {};
  private next: (() => void) | undefined;

  constructor(
    workers: number,
    gpus: number,
    options: {
      bytes?: number;
      ring?: number;
      start?: number;
      streams?: number;
      lanes?: number;
    } = {},
  ) {
    const { bytes = 2 ** 20, ring = 64, start = 0, streams = 1, lanes = 0 } = options;
    this.queues = queuesOf(workers, gpus, streams, lanes);
    this.spaces = Array.from({ length: gpus + 1 }, (_, s) => ({
      kind: s === 0 ? 'host' : 'emulated',
      name: s === 0 ? 'host' : `GPU ${s - 1}`,
      bytes: s === 0 ? 2 ** 24 : bytes,
    }));
    this.ringRecords = ring;
    const n = this.queues.length;
    this.completed = new Int32Array(n).fill(start);
    this.issued = new Int32Array(n).fill(start);
    this.failures = new Int32Array(n);
  }

  /** The port, for those who only use the part that is here. */
  get port(): Backend {
    return this as unknown as Backend;
  }

  wait(queue: number, onQueue: number, onSeq: number): void {
    this.push('wait', queue, 1, onQueue, onSeq);
  }

  // biome-ignore lint/complexity/useMaxParams: stands for the methods of Backend.
  exec(
    queue: number,
    _kernel: number,
    _task: number,
    _run: number,
    _nFlows: number,
    nArgs: number,
    _args: Float64Array,
    waitQueue: number,
    waitSeq: number,
  ): number {
    return this.push('exec', queue, execRecords(nArgs), waitQueue, waitSeq);
  }

  // biome-ignore lint/complexity/useMaxParams: stands for the methods of Backend.
  message(
    _kind: string,
    lane: number,
    _task: number,
    _run: number,
    nArgs: number,
    _args: Float64Array,
    waitQueue: number,
    waitSeq: number,
  ): number {
    return this.push('message', lane, execRecords(nArgs), waitQueue, waitSeq);
  }

  // biome-ignore lint/complexity/useMaxParams: stands for the methods of Backend.
  copy(
    queue: number,
    _id: number,
    to: number,
    toOffset: number,
    from: number,
    fromOffset: number,
    _bytes: number,
    waitQueue: number,
    waitSeq: number,
  ): number {
    return this.push('copy', queue, 1, waitQueue, waitSeq, { to, toOffset, from, fromOffset });
  }

  fill(queue: number): number {
    return this.push('fill', queue, 1, NO_QUEUE, 0);
  }

  now(): number {
    return this.time;
  }

  workTime(): number {
    return this.time;
  }

  publish(): void {}

  poll(): boolean {
    const { news } = this;
    this.news = false;
    return news;
  }

  status(queue: number, seq: number): number {
    return this.statuses.get(`${queue} ${seq}`) ?? Status.ok;
  }

  handledFailures(count: number): void {
    this.calls.push(`handled ${count}`);
  }

  lastError(): string {
    return '';
  }

  setCancelled(run: number, on: boolean): void {
    this.calls.push(`${on ? 'cancel' : 'revive'} ${run}`);
  }

  arm(queue: number, seq: number): void {
    this.armed.set(queue, seq);
  }

  block(): void {
    this.calls.push('block');
    this.onIdle?.();
  }

  serve(): boolean {
    this.calls.push('serve');
    this.onIdle?.();
    return this.serves;
  }

  spin(): boolean {
    this.calls.push('spin');
    this.onIdle?.();
    return this.isDue;
  }

  sleep(): boolean {
    this.calls.push('sleep');
    this.onIdle?.();
    return !this.isDue;
  }

  hold(on: boolean): void {
    this.calls.push(on ? 'hold' : 'release');
  }

  onWake(callback: () => void): void {
    this.wake = callback;
  }

  soon(callback: () => void): void {
    if (this.next !== undefined) throw new Error('test: two turns are asked for');
    this.next = callback;
  }

  /** A turn on the event loop was asked for. */
  get hasTurn(): boolean {
    return this.next !== undefined;
  }

  /** The event loop comes to the turn that was asked for. */
  turn(): void {
    const { next } = this;
    this.next = undefined;
    next?.();
  }

  /** The doorbell rings while the engine sleeps. */
  ring(): void {
    this.wake();
  }

  /** Everything issued to a queue is over. */
  completeAll(queue: number): void {
    this.complete(queue, this.issued[queue]);
  }

  /** The records of a queue up to `seq` are over. */
  complete(queue: number, seq: number): void {
    this.completed[queue] = seq;
    this.news = true;
  }

  /** Record `seq` of a queue will be over with `status`, and counts as failed from now on. */
  fail(queue: number, seq: number, status: number): void {
    this.statuses.set(`${queue} ${seq}`, status);
    this.failures[queue]++;
    this.news = true;
  }

  private push(
    kind: IssuedCommand['kind'],
    queue: number,
    records: number,
    onQueue: number,
    onSeq: number,
    move?: Move,
  ): number {
    const seq = (this.issued[queue] + 1) | 0;
    this.issued[queue] = (this.issued[queue] + records) | 0;
    const command = { kind, queue, seq, onQueue, onSeq };
    this.commands.push(move === undefined ? command : { ...command, move });
    return seq;
  }
}
