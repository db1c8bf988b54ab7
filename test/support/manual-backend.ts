// A backend that does nothing by itself: tests look at the commands that were issued and say when records complete.
import {
  type Backend,
  execRecords,
  NO_QUEUE,
  type QueueInfo,
  type SpaceInfo,
} from '../../devices/backend.js';

/** A command as it was issued. */
export interface IssuedCommand {
  readonly kind: 'wait' | 'exec' | 'copy' | 'fill';
  readonly queue: number;
  readonly seq: number;
  /** Event it waits for, or NO_QUEUE. */
  readonly onQueue: number;
  readonly onSeq: number;
}

/** Queues of a host with workers and of some GPUs, as the native core orders them: by space. */
export function queuesOf(workers: number, gpus: number): QueueInfo[] {
  const queues: QueueInfo[] = [];
  for (let w = 0; w < workers; w++) queues.push({ kind: 'worker', space: 0, peer: -1 });
  for (let g = 1; g <= gpus; g++) {
    for (const kind of ['compute', 'h2d', 'd2h'] as const)
      queues.push({ kind, space: g, peer: -1 });
    for (let p = 1; p <= gpus; p++) if (p !== g) queues.push({ kind: 'peer', space: g, peer: p });
  }
  return queues;
}

export class ManualBackend {
  readonly kind = 'simulated';
  readonly spaces: readonly SpaceInfo[];
  readonly queues: readonly QueueInfo[];
  readonly ringRecords: number;
  readonly completed: Int32Array;
  readonly issued: Int32Array;
  readonly failures: Int32Array;
  readonly commands: IssuedCommand[] = [];

  constructor(
    workers: number,
    gpus: number,
    options: { bytes?: number; ring?: number; start?: number } = {},
  ) {
    const { bytes = 2 ** 20, ring = 64, start = 0 } = options;
    this.queues = queuesOf(workers, gpus);
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

  copy(
    queue: number,
    _id: number,
    _to: number,
    _toOffset: number,
    _from: number,
    _fromOffset: number,
    _bytes: number,
    waitQueue: number,
    waitSeq: number,
  ): number {
    return this.push('copy', queue, 1, waitQueue, waitSeq);
  }

  fill(queue: number): number {
    return this.push('fill', queue, 1, NO_QUEUE, 0);
  }

  now(): number {
    return 0;
  }

  /** Everything issued to a queue is over. */
  completeAll(queue: number): void {
    this.completed[queue] = this.issued[queue];
  }

  private push(
    kind: IssuedCommand['kind'],
    queue: number,
    records: number,
    onQueue: number,
    onSeq: number,
  ): number {
    const seq = (this.issued[queue] + 1) | 0;
    this.issued[queue] = (this.issued[queue] + records) | 0;
    this.commands.push({ kind, queue, seq, onQueue, onSeq });
    return seq;
  }
}
