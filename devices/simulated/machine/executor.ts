// The queues of a simulated machine: the effects of their records, their durations, and their order. The commands of lanes
// are in lane-commands.ts.
// Invariants: a queue runs one record at a time, in order; a record starts when its wait is over, all records before it
// are over and it was published; `done` counts the finished ones, seen by the engine or not.

import {
  type QueueInfo,
  type SpaceInfo,
  Status,
  type SteeredKernelParameter,
} from '../../backend.js';
import { FIRST_QUEUE, NO_QUEUE, type QueueId, type SpaceId } from '../../handles.js';
import type { Adversary } from './adversary.js';
import { blockTime, COPY_BLOCK, copyBlock } from './block-copy.js';
import type { FaultPlan } from './faults.js';
import { type CompiledTime, compileTime, shareOf } from './kernel-times.js';
import { LaneCommands, type LaneQueues } from './lane-commands.js';
import { Lanes } from './lanes.js';
import { linkOf, type MachineDescription, queuesOf, spacesOf } from './machine.js';
import { ARGS, Op, Records } from './records.js';
import { type Demand, kernelDemands, Sharing } from './shared-capacity.js';
import { steeredCall, steeredTime } from './steered-call.js';
import type { Watcher } from './watcher.js';
import type { EventOwner, World } from './world.js';

const RUNS = 64;

/** The effect of a kernel on memory, for runs with real bytes. Returns a status: 0, or the kernel's own code. */
export type SimulatedKernel = (call: KernelCall) => number;

/** Arguments of a simulated kernel: its space's bytes, the offsets of its flows, and its parameters. */
export interface KernelCall {
  readonly memory: Uint8Array;
  readonly flows: readonly number[];
  readonly params: readonly number[];
}

/**
 * States of a queue; values of `state`. A lane also waits for letters, and for the engine to handle failures. In state
 * `begins` the latency of a copy, or of a launch, is not over, and from then on the command shares its device with others.
 */
const Queue = { idle: 0, running: 1, waiting: 2, begins: 3 } as const;

export class Executor implements EventOwner, LaneQueues {
  readonly spaces: readonly SpaceInfo[];
  readonly queues: readonly QueueInfo[];
  readonly records: Records;
  /** Last record that the engine has made visible. */
  readonly published: Int32Array;
  /** Last finished record of each queue. */
  readonly done: Int32Array;
  /** Finished records that are not ok. */
  readonly failed: Int32Array;
  readonly errors: string[];
  readonly busyNs: Float64Array;
  readonly cancelled: Uint8Array = new Uint8Array(RUNS);
  readonly bytes: (Uint8Array | undefined)[];
  /** Records started so far. */
  started = 0;
  /** Kernels started that were not cancelled, by run. */
  readonly launched: Int32Array = new Int32Array(RUNS);
  /** The machine is gone: nothing starts or ends any more. */
  isDead = false;
  readonly lanes: Lanes = new Lanes();
  /** What the commands of lanes do. */
  readonly messages: LaneCommands;
  /** Bytes of host space, where memory is real; lanes read and write them. */
  host: Uint8Array | undefined;
  /** Gets a call for every record that ended. */
  onFinished: (queue: QueueId) => void = () => {};
  /** Writes the next records of a play for a queue that has none; true when there are new ones. */
  refill: (queue: QueueId, at: number) => boolean = () => false;

  private readonly world: World;
  private readonly machine: MachineDescription;
  private readonly adversary: Adversary;
  private readonly faults: FaultPlan;
  private readonly watcher: Watcher | undefined;
  private readonly bodies: Readonly<Record<string, SimulatedKernel>> | undefined;
  private readonly firstEvent: number;
  /** Last record that started (and, unless running, ended). */
  private readonly cursor: Int32Array;
  private readonly state: Uint8Array;
  private readonly blockedSeq: Int32Array;
  private readonly waiters: Int32Array;
  private readonly waitersNext: Int32Array;
  private readonly kernelNames: string[] = [];
  private readonly kernelIds: Map<string, number> = new Map();
  /** Parameters that kernels read from memory, by id. */
  private readonly steers: (readonly SteeredKernelParameter[] | undefined)[] = [];
  private readonly gpuTimes: CompiledTime[] = [];
  private readonly hostTimes: CompiledTime[] = [];
  /** What a kernel takes of its GPU. */
  private readonly demands: (readonly Demand[])[] = [];
  private readonly bandwidth: Float64Array;
  private readonly latency: Float64Array;
  private readonly launchNs: number;
  private readonly sharing: Sharing;

  // biome-ignore lint/complexity/useMaxParams: made in one place, by the backend in this folder.
  constructor(
    world: World,
    machine: MachineDescription,
    ringRecords: number,
    adversary: Adversary,
    faults: FaultPlan,
    watcher: Watcher | undefined,
    bodies: Readonly<Record<string, SimulatedKernel>> | undefined,
  ) {
    this.world = world;
    this.machine = machine;
    this.adversary = adversary;
    this.faults = faults;
    this.watcher = watcher;
    this.bodies = bodies;
    this.spaces = spacesOf(machine);
    this.queues = queuesOf(machine);
    const n = this.queues.length;
    this.records = new Records(n, ringRecords);
    this.published = new Int32Array(n);
    this.done = new Int32Array(n);
    this.failed = new Int32Array(n);
    this.errors = new Array<string>(n).fill('');
    this.busyNs = new Float64Array(n);
    this.cursor = new Int32Array(n);
    this.state = new Uint8Array(n);
    this.blockedSeq = new Int32Array(n);
    this.waiters = new Int32Array(n).fill(-1);
    this.waitersNext = new Int32Array(n).fill(-1);
    this.firstEvent = world.reserve(this, n);
    this.bytes = this.spaces.map((s) =>
      bodies === undefined ? undefined : new Uint8Array(s.bytes),
    );
    this.bandwidth = new Float64Array(n);
    this.latency = new Float64Array(n);
    this.queues.forEach((queue, q) => {
      const link = linkOf(machine, queue);
      this.bandwidth[q] = (link?.bandwidth ?? 1e11) / 1e9;
      this.latency[q] = (link?.latency ?? 0) * 1e9;
    });
    this.sharing = new Sharing(machine, this.queues, world, this.firstEvent);
    this.launchNs = machine.engine.launch * 1e9;
    this.host = this.bytes[0];
    this.messages = new LaneCommands(this, this.lanes, watcher);
  }

  /** Names of the kernels, by id. */
  get kernels(): readonly string[] {
    return this.kernelNames;
  }

  /** Number of a kernel, or -1. */
  kernel(name: string): number {
    const known = this.kernelIds.get(name);
    if (known !== undefined) return known;
    const { machine } = this;
    if (name === COPY_BLOCK) return this.addKernel(name, blockTime, blockTime, kernelDemands(0));
    const model = machine.kernels[name] ?? machine.kernels['*'];
    const hostModel = machine.hostKernels?.[name] ?? machine.hostKernels?.['*'] ?? model;
    if (model === undefined || (this.bodies !== undefined && this.bodies[name] === undefined))
      return -1;
    const demands = kernelDemands(shareOf(model, name));
    return this.addKernel(name, compileTime(model, name), compileTime(hostModel, name), demands);
  }

  private addKernel(
    name: string,
    onGpu: CompiledTime,
    onHost: CompiledTime,
    demands: readonly Demand[],
  ): number {
    const id = this.kernelNames.length;
    this.kernelIds.set(name, id);
    this.kernelNames.push(name);
    this.gpuTimes.push(onGpu);
    this.hostTimes.push(onHost);
    this.demands.push(demands);
    return id;
  }

  /** Number of a kernel that reads parameters from its last flows (`Backend.steered`). */
  steered(kernel: number, parameters: readonly SteeredKernelParameter[]): number {
    const name = `${this.kernelNames[kernel]} ${JSON.stringify(parameters)}`;
    const known = this.kernelIds.get(name);
    if (known !== undefined) return known;
    const id = this.kernelNames.length;
    this.kernelIds.set(name, id);
    this.kernelNames.push(this.kernelNames[kernel]);
    this.gpuTimes.push(steeredTime(this.gpuTimes[kernel], parameters));
    this.hostTimes.push(steeredTime(this.hostTimes[kernel], parameters));
    this.demands.push(this.demands[kernel]);
    this.steers[id] = parameters;
    return id;
  }

  /** Records of `queue` up to `seq` may run, from time `at` on. */
  publish(queue: QueueId, seq: number, at: number): void {
    this.published[queue] = seq;
    if (this.state[queue] === Queue.idle && !this.isDead) this.go(queue, at);
  }

  happens(queue: QueueId): void {
    if (this.isDead) return;
    if (this.state[queue] === Queue.begins) {
      this.state[queue] = Queue.running;
      this.sharing.begin(queue, this.adversary);
    } else this.end(queue, this.world.time);
  }

  /** Nanoseconds of the bytes of a copy over its link. */
  private bytesNs(queue: QueueId, slot: number): number {
    return this.records.args[slot * ARGS + 2] / this.bandwidth[queue];
  }

  /** The state of each queue, for reports. */
  describe(issued: Int32Array): string {
    const lines: string[] = [];
    const { records } = this;
    for (let q = FIRST_QUEUE; q < this.queues.length; q++) {
      if (issued[q] === this.done[q]) continue;
      const slot = records.slotOf(q, (this.cursor[q] + 1) | 0);
      lines.push(
        `queue ${q} (${this.queues[q].kind} of space ${this.queues[q].space}): done ${this.done[q]} of ${issued[q]}, ` +
          `published ${this.published[q]}${records.waits(slot) ? `, next waits for queue ${records.waitQueue[slot]} record ${records.waitSeq[slot]}` : ''}`,
      );
    }
    return lines.join('; ');
  }

  /** Starts records of a queue from time `at` on, as far as possible. */
  private go(q: QueueId, at: number): void {
    const { records } = this;
    while (this.cursor[q] !== this.published[q]) {
      const seq = (this.cursor[q] + 1) | 0;
      const slot = records.slotOf(q, seq);
      const on = records.waitQueue[slot];
      if (on !== NO_QUEUE && ((this.done[on] - records.waitSeq[slot]) | 0) < 0) {
        this.blockedSeq[q] = records.waitSeq[slot];
        this.waitersNext[q] = this.waiters[on];
        this.waiters[on] = q;
        this.state[q] = Queue.waiting;
        return;
      }
      const op = records.op[slot];
      if (op >= Op.send) {
        this.state[q] = Queue.waiting;
        this.messages.start(q, slot, at);
        return;
      }
      if (op !== Op.wait) {
        this.start(q, slot, at);
        return;
      }
      this.watcher?.started(q, seq);
      this.watcher?.finished(q, seq, seq);
      this.cursor[q] = seq;
      this.finish(q, seq, at);
    }
    this.state[q] = Queue.idle;
    if (this.refill(q, at) && this.state[q] === Queue.idle) this.go(q, at);
  }

  /** The rest of a play is skipped up to record `seq`, at time `at`. */
  skip(queue: QueueId, seq: number, at: number): void {
    this.published[queue] = seq;
    this.cursor[queue] = seq;
    this.finish(queue, seq, at);
  }

  /** A queue without records may have a play: looks for its next ones. */
  look(queue: QueueId, at: number): void {
    if (this.state[queue] === Queue.idle && !this.isDead) this.go(queue, at);
  }

  private start(q: QueueId, slot: number, at: number): void {
    const { records, adversary } = this;
    const { space } = this.queues[q];
    let ns = 0;
    let status: number = Status.ok;
    this.state[q] = Queue.running;
    this.started++;
    this.watcher?.started(q, (this.cursor[q] + 1) | 0);
    const run = records.run[slot];
    if (run >= 0 && this.cancelled[run] !== 0) status = Status.cancelled;
    else if (records.op[slot] === Op.exec) {
      status = this.faults.kernel(space);
      this.launched[run]++;
      const model = (space === 0 ? this.hostTimes : this.gpuTimes)[records.what[slot]];
      const args = records.argumentsOf(q, slot);
      const flows = records.flows[slot];
      const alone = model(args, flows, args.length - flows) * 1e9;
      ns =
        space === 0
          ? adversary.stretch(alone)
          : this.timeOf(q, this.demands[records.what[slot]], this.launchNs, alone);
    } else if (records.op[slot] === Op.copy) {
      status = this.faults.copy(space);
      ns = this.timeOf(q, this.sharing.demandsOfCopies(q), this.latency[q], this.bytesNs(q, slot));
    } else ns = adversary.stretch(this.launchNs);
    records.outcome[slot] = status;
    records.startAt[slot] = at;
    if (!Number.isNaN(status)) this.world.schedule(this.firstEvent + q, at + ns);
  }

  /** Nanoseconds of a command until its end, or until it shares its device with others: it takes `alone` from then on at the best. */
  private timeOf(q: QueueId, demands: readonly Demand[], lead: number, alone: number): number {
    if (demands.length === 0) return this.adversary.stretch(lead + alone);
    this.state[q] = Queue.begins;
    this.sharing.prepare(q, alone, demands);
    return this.adversary.stretch(lead);
  }

  /** The run is cancelled from `at` on: its messages end. */
  cancel(run: number, at: number): void {
    this.cancelled[run] = 1;
    this.messages.runIsCancelled(run, at);
  }

  // --- The queues of lanes, as their commands see them -------------------------------------------------------------

  get time(): number {
    return this.world.time;
  }

  head(queue: QueueId): number {
    return (this.cursor[queue] + 1) | 0;
  }

  endsLater(queue: QueueId, at: number, ns: number): void {
    this.started++;
    this.watcher?.started(queue, this.head(queue));
    this.state[queue] = Queue.running;
    this.world.schedule(this.firstEvent + queue, at + this.adversary.stretch(ns));
  }

  /** Nanoseconds that a queue has spent in kernels and copies until `at`, the present. */
  busy(q: QueueId, at: number): number {
    const { records, cursor } = this;
    if (this.state[q] !== Queue.running && this.state[q] !== Queue.begins) return this.busyNs[q];
    const slot = records.slotOf(q, (cursor[q] + 1) | 0);
    return this.busyNs[q] + (records.op[slot] === Op.fill ? 0 : at - records.startAt[slot]);
  }

  private end(q: QueueId, at: number): void {
    const { records } = this;
    const first = (this.cursor[q] + 1) | 0;
    const slot = records.slotOf(q, first);
    const last = (first + records.span[slot] - 1) | 0;
    const op = records.op[slot];
    const isMessage = op >= Op.send;
    if (op === Op.copy || op === Op.exec) this.sharing.end(q);
    if (isMessage) this.messages.carryOut(q, slot, first);
    else this.effects(q, slot, first);
    records.endAt[slot] = at;
    if (op !== Op.fill && !isMessage) this.busyNs[q] += at - records.startAt[slot];
    const status = records.outcome[slot];
    if (status !== Status.ok) {
      this.failed[q]++;
      this.lanes.failed++;
      // Slot 0 is the runtime's own, which is never cancelled. The slot of a cancelled command may be that of another run by now.
      if (records.run[slot] > 0 && status !== Status.cancelled) this.cancel(records.run[slot], at);
      if (status === Status.driver || status === Status.deviceLost)
        this.errors[q] = 'injected fault';
    }
    this.watcher?.finished(q, first, last);
    this.cursor[q] = last;
    this.state[q] = Queue.idle;
    this.finish(q, last, at);
    if (this.state[q] === Queue.idle) this.go(q, at);
  }

  private bodyOf(name: string): SimulatedKernel | undefined {
    return this.bodies?.[name] ?? (name === COPY_BLOCK ? copyBlock : undefined);
  }

  /** The effect of a record on memory; all of it happens at its end. */
  private effects(q: QueueId, slot: number, seq: number): void {
    const { records, watcher } = this;
    const { space } = this.queues[q];
    const op = records.op[slot];
    const at = slot * ARGS;
    if (op === Op.exec) {
      const args = records.argumentsOf(q, slot);
      const flows = records.flows[slot];
      const body = this.bodyOf(this.kernelNames[records.what[slot]]);
      const memory = this.bytes[space];
      if (records.outcome[slot] === Status.ok && body !== undefined && memory !== undefined) {
        const list = Array.from(args);
        const call = { memory, flows: list.slice(0, flows), params: list.slice(flows) };
        const steers = this.steers[records.what[slot]];
        records.outcome[slot] = body(steers === undefined ? call : steeredCall(call, steers));
      }
      watcher?.exec(q, seq, space, records.task[slot], records.outcome[slot], args, flows);
    } else if (op === Op.copy) {
      const destination = (records.what[slot] & 0xff) as SpaceId;
      const source = (records.what[slot] >> 8) as SpaceId;
      const [toOffset, fromOffset, bytes] = records.args.subarray(at, at + 3);
      const status = records.outcome[slot];
      const from = this.bytes[source];
      if (from !== undefined && status === Status.ok)
        this.bytes[destination]?.set(from.subarray(fromOffset, fromOffset + bytes), toOffset);
      watcher?.copy(
        q,
        seq,
        records.task[slot],
        status,
        destination,
        toOffset,
        source,
        fromOffset,
        bytes,
      );
    } else if (op === Op.fill) {
      const [offset, bytes, value] = records.args.subarray(at, at + 3);
      this.bytes[space]?.fill(value, offset, offset + bytes);
      watcher?.fill(q, seq, space, offset, bytes);
    }
  }

  /** Marks a record done and releases those that waited for it. */
  private finish(q: QueueId, seq: number, at: number): void {
    this.done[q] = seq;
    let w = this.waiters[q] as QueueId;
    this.waiters[q] = -1;
    while (w >= 0) {
      const next = this.waitersNext[w] as QueueId;
      // A queue that has gone on may have brought this one further than `seq`.
      if (((this.done[q] - this.blockedSeq[w]) | 0) >= 0) {
        this.state[w] = Queue.idle;
        this.go(w, at);
      } else {
        this.waitersNext[w] = this.waiters[q];
        this.waiters[q] = w;
      }
      w = next;
    }
    this.onFinished(q);
  }
}
