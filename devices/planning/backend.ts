// The backend of a plan: the simulated machine in the shape of a real one. It keeps every command that the engine writes.
//
// Kernels have the numbers of the real machine in the list that is kept. Waits are not kept: in virtual time an event may
// be over that is not over when the plan is played, so they are derived from the memory that the commands use
// (scheduler/plans/waits.ts).
import {
  type Backend,
  executesKernels,
  type ScriptWorkers,
  type SteeredKernelParameter,
} from '../backend.js';
import { HOST, type QueueId, type SpaceId, type TaskId } from '../handles.js';
import { SimulatedBackend } from '../simulated/machine/backend.js';
import type { KernelTime } from '../simulated/machine/kernel-times.js';
import type { MachineDescription } from '../simulated/machine/machine.js';
import { ringFor, SHORTEST_RING } from '../submission.js';
import { NO_INSERTION, PlannedCommands } from './commands.js';

/** Seconds of a kernel that was not measured. */
const UNKNOWN_KERNEL = 20e-6;

/** What the planner knows of the commands. */
interface CommandSource {
  /** Number of the insertion of a task. */
  insertionOf(task: TaskId): number;
  /** Datum of a transfer that is being commanded. */
  datumOf(transfer: number): number;
  /** Datum of flow `i` of a task. */
  flowDatum(task: TaskId, i: number): number;
  /** Of an insertion that is an end of a message. */
  message(insertion: number): LaneMessage | undefined;
}

/** An end of a message: a command of a lane. */
export interface LaneMessage {
  readonly queue: QueueId;
  readonly opcode: number;
}

/**
 * Host memory of the planned machine: all data lie there before the first iteration, also those that a plan keeps on GPUs.
 * The planner compares what the plan itself needs with the real size.
 */
const HOST_BYTES = 2 ** 50;

function describe(
  real: Backend,
  kernels: Readonly<Record<string, KernelTime>>,
): MachineDescription {
  const gpus = real.spaces.length - 1;
  const fast = real.spaces[1]?.kind === 'cuda' || real.spaces[1]?.kind === 'hip';
  const link = { bandwidth: fast ? 50e9 : 8e9, latency: fast ? 8e-6 : 1e-6 };
  const hasPeers = real.queues.some((q) => q.kind === 'peer');
  return {
    name: 'plan',
    gpus,
    gpuMemory: Math.min(...real.spaces.slice(1).map((s) => s.bytes)),
    hostMemory: HOST_BYTES,
    workers: real.queues.filter((q) => q.kind === 'worker').length,
    scriptWorkers: real.queues.filter((q) => q.kind === 'script').length,
    computeStreams: Math.max(
      1,
      real.queues.filter((q) => q.kind === 'compute' && q.space === 1).length,
    ),
    h2d: link,
    d2h: link,
    d2d: hasPeers ? { bandwidth: fast ? 300e9 : 8e9, latency: link.latency } : null,
    engine: { command: 20e-9, wake: 0, launch: fast ? 2e-6 : 0 },
    kernels,
  };
}

export class PlanningBackend extends SimulatedBackend {
  /** The commands since `begin`. */
  commands: PlannedCommands = new PlannedCommands();
  /** Those of the real machine run the bodies of plays. In virtual time nothing runs. */
  override readonly scripts: ScriptWorkers | undefined;
  private readonly real: Backend;
  /** Set before the first command. */
  source: CommandSource | undefined;
  /** Id of the real kernel by id of the simulated one. */
  private readonly realKernels: number[] = [];
  /** Seconds by id of the simulated kernel, where they are known. */
  private readonly seconds: number[] = [];
  private readonly kernelTimes: Record<string, KernelTime>;
  private isKept = false;

  /** `window`: limit of live tasks. */
  constructor(real: Backend, window: number) {
    const kernelTimes: Record<string, KernelTime> = { '*': UNKNOWN_KERNEL };
    const machine = describe(real, kernelTimes);
    // Few tasks need shorter rings than those of the real machine.
    const few = ringFor(Math.max(SHORTEST_RING, window), real.queues.length);
    const ringRecords = Math.min(few, real.ringRecords);
    super({ machine, ringRecords, story: false });
    this.kernelTimes = kernelTimes;
    this.real = real;
    const { scripts } = real;
    this.scripts = scripts && {
      define: (cls) => this.ownKernel(scripts.define(cls)),
      thrown: () => undefined,
      close: async () => {},
    };
    const shape = (b: Backend): string =>
      b.queues
        .filter((q) => q.kind !== 'lane')
        .map((q) => `${q.kind} ${q.space} ${q.peer}`)
        .join();
    if (shape(this) !== shape(real))
      throw new Error('planning: the simulated machine has other queues than the real one');
  }

  /** Gives the kernels the numbers that they have in another planning backend of the same machine. */
  adoptKernels(from: PlanningBackend): void {
    for (const real of from.realKernels) this.ownKernel(real);
    from.seconds.forEach((seconds, id) => {
      this.setSeconds(id, seconds);
    });
  }

  /**
   * The longest time that a queue with kernels was busy, by the mean. A task cannot go from a worker to a script worker: of these two
   * the less even ones count.
   */
  unevenness(): number {
    const of = (areScripts: boolean): number => {
      const times = this.queues.flatMap((queue, q) =>
        executesKernels(queue) && (queue.kind === 'script') === areScripts
          ? [this.busy(q as QueueId)]
          : [],
      );
      const all = times.reduce((a, b) => a + b, 0);
      return all === 0 ? 1 : (Math.max(...times) * times.length) / all;
    };
    return Math.max(of(false), of(true));
  }

  /** Keeps the commands from now on in a new list. */
  begin(): void {
    this.commands = new PlannedCommands();
    this.isKept = true;
  }

  /** Commands from now on are not kept. */
  end(): void {
    this.isKept = false;
  }

  override kernel(name: string, space: SpaceId): number {
    const real = this.real.kernel(name, space);
    return real < 0 ? -1 : this.ownKernel(real);
  }

  /** Each class has kernels of its own, because the same kernel may take another time for its tasks. */
  private ownKernel(real: number): number {
    const id = this.realKernels.length;
    const name = `kernel ${id}`;
    this.kernelTimes[name] = () => this.seconds[id] ?? UNKNOWN_KERNEL;
    this.realKernels.push(real);
    return super.kernel(name, HOST);
  }

  /** The kernel of the real machine. */
  realKernel(kernel: number): number {
    return this.realKernels[kernel];
  }

  /** Seconds that a kernel takes from now on. */
  setSeconds(kernel: number, seconds: number): void {
    this.seconds[kernel] = seconds;
  }

  /** Seconds of a kernel. */
  secondsOf(kernel: number): number {
    return this.seconds[kernel] ?? UNKNOWN_KERNEL;
  }

  override steered(
    kernel: number,
    space: SpaceId,
    parameters: readonly SteeredKernelParameter[],
  ): number {
    const real = this.real.steered(this.realKernels[kernel], space, parameters);
    return real < 0 ? -1 : this.ownKernel(real);
  }

  override takesLengths(kernel: number): boolean {
    return this.real.takesLengths(this.realKernels[kernel]);
  }

  override compileKernels(source: Parameters<Backend['compileKernels']>[0]): string[] {
    return this.real.compileKernels(source);
  }

  // biome-ignore lint/complexity/useMaxParams: one call per command, from submission.ts only; the order is that of the port.
  override exec(
    queue: QueueId,
    kernel: number,
    task: TaskId,
    run: number,
    nFlows: number,
    nArgs: number,
    args: Float64Array,
    waitQueue: QueueId,
    waitSeq: number,
  ): number {
    const { source, commands } = this;
    if (this.isKept && source !== undefined) {
      const insertion = source.insertionOf(task);
      const message = source.message(insertion);
      const [on, what] =
        message === undefined ? [queue, this.realKernels[kernel]] : [message.queue, 0];
      const c = commands.add(on, what, insertion, nFlows, args, nArgs);
      if (message !== undefined) commands.message[c] = message.opcode;
      const first = commands.first[c];
      for (let i = 0; i < nFlows; i++) commands.data[first + i] = source.flowDatum(task, i);
    }
    return super.exec(queue, kernel, task, run, nFlows, nArgs, args, waitQueue, waitSeq);
  }

  // biome-ignore lint/complexity/useMaxParams: one call per command, from submission.ts only; the order is that of the port.
  override copy(
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
    const { source, commands } = this;
    if (this.isKept && source !== undefined) {
      const spaces = dstSpace + 256 * srcSpace;
      const datum = source.datumOf(id);
      const values = [dstOffset, srcOffset, bytes, datum];
      const c = commands.add(queue, spaces, NO_INSERTION, 0, values, values.length);
      commands.isCopy[c] = 1;
      commands.data[commands.first[c]] = datum;
    }
    return super.copy(
      queue,
      id,
      dstSpace,
      dstOffset,
      srcSpace,
      srcOffset,
      bytes,
      waitQueue,
      waitSeq,
    );
  }
}
