// The queues of a simulated machine: the effects of their records, their durations, and their order.
// Invariants: a queue runs one record at a time, in order; a record starts when its wait is over, all records before it
// are over and it was published; `done` counts the finished ones, seen by the engine or not.

import {
  type QueueInfo,
  type SpaceInfo,
  Status,
  type SteeredKernelParameter,
} from '../../backend.js';
import { FIRST_QUEUE, NO_QUEUE, type QueueId, type SpaceId } from '../../handles.js';
import { NetOutcome, VisibleTo, WireMode } from '../../network/port.js';
import { tree } from '../../network/tree.js';
import { arrivalOf } from '../../network/ways.js';
import type { Adversary } from './adversary.js';
import { blockTime, COPY_BLOCK, copyBlock } from './block-copy.js';
import type { FaultPlan } from './faults.js';
import { type CompiledTime, compileTime } from './kernel-times.js';
import { type Carrier, type LanePlace, Lanes, type Letter, type Offered } from './lanes.js';
import { type MachineDescription, pairLink, queuesOf, spacesOf } from './machine.js';
import { ARGS, Op, Records } from './records.js';
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

/** States of a queue; values of `state`. A lane also waits for letters, and for the engine to handle failures. */
const Queue = { idle: 0, running: 1, waiting: 2 } as const;

/** Arguments of an offer before its destinations. */
const OFFER_ARGS = 7;
/** Arguments of a receive that names no memory space. */
const RECEIVE_ARGS = 4;
/** Time in which a lane copies a letter's bytes. */
const LETTER_NS = 100;

export class Executor implements EventOwner {
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
  /** Bytes of host space, where memory is real; lanes read and write them. */
  host: Uint8Array | undefined;
  /** Letters that lanes are writing, by queue; of announced versions with the outcome of their transfer. */
  private readonly letters: ({ letter: Letter; outcome?: number } | undefined)[] = [];
  /** Deliveries that wait for their receivers: their runs, and the numbers of their offers on the wire. */
  private readonly delivering: Map<QueueId, { run: number; offer: number | undefined }> = new Map();
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
  private readonly bandwidth: Float64Array;
  private readonly latency: Float64Array;
  private readonly launchNs: number;

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
    this.launchNs = machine.engine.launch * 1e9;
    this.host = this.bytes[0];
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
    if (name === COPY_BLOCK) return this.addKernel(name, blockTime, blockTime);
    const model = machine.kernels[name] ?? machine.kernels['*'];
    const hostModel = machine.hostKernels?.[name] ?? machine.hostKernels?.['*'] ?? model;
    if (model === undefined || (this.bodies !== undefined && this.bodies[name] === undefined))
      return -1;
    return this.addKernel(name, compileTime(model, name), compileTime(hostModel, name));
  }

  private addKernel(name: string, onGpu: CompiledTime, onHost: CompiledTime): number {
    const id = this.kernelNames.length;
    this.kernelIds.set(name, id);
    this.kernelNames.push(name);
    this.gpuTimes.push(onGpu);
    this.hostTimes.push(onHost);
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
    this.steers[id] = parameters;
    return id;
  }

  /** Records of `queue` up to `seq` may run, from time `at` on. */
  publish(queue: QueueId, seq: number, at: number): void {
    this.published[queue] = seq;
    if (this.state[queue] === Queue.idle && !this.isDead) this.go(queue, at);
  }

  happens(queue: QueueId): void {
    if (!this.isDead) this.end(queue, this.world.time);
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
        this.startMessage(q, slot, at);
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
      ns = adversary.stretch(
        model(args, flows, args.length - flows) * 1e9 + (space === 0 ? 0 : this.launchNs),
      );
    } else if (records.op[slot] === Op.copy) {
      status = this.faults.copy(space);
      ns = adversary.stretch(this.latency[q] + records.args[slot * ARGS + 2] / this.bandwidth[q]);
    } else ns = adversary.stretch(this.launchNs);
    records.outcome[slot] = status;
    records.startAt[slot] = at;
    this.state[q] = Queue.running;
    if (!Number.isNaN(status)) this.world.schedule(this.firstEvent + q, at + ns);
  }

  /** A lane sends when all failures are known, or receives when its letter is there. A cancelled run's do nothing. */
  private startMessage(q: QueueId, slot: number, at: number): void {
    const { records, lanes } = this;
    const isSend = records.op[slot] !== Op.receive;
    const isWithdrawn = !isSend && lanes.isWithdrawn(q, this.lastOf(q, slot));
    const isCancelled = isWithdrawn || this.cancelled[records.run[slot]] !== 0;
    this.state[q] = Queue.waiting;
    if (isWithdrawn) {
      const [, , era, key] = records.argumentsOf(q, slot);
      lanes.refuse(era, key);
    }
    if (!isCancelled && isSend && lanes.unhandled) {
      lanes.hold(q);
      return;
    }
    if (!isCancelled && !isSend) {
      const [, , era, key] = records.argumentsOf(q, slot);
      const letter = lanes.take(era, key, q, records.run[slot]);
      if (letter === undefined) return;
      this.takeLetter(q, slot, at, letter);
      return;
    }
    if (!isCancelled && records.op[slot] === Op.deliver) this.deliver(q, slot);
    else this.endMessage(q, slot, at, isCancelled);
  }

  /** A delivery announces its version. It ends when no rank needs the bytes any more. */
  private deliver(q: QueueId, slot: number): void {
    const { records, lanes, watcher } = this;
    const { offers, carrier } = lanes;
    const [offset, bytes, era, rank, key] = records.argumentsOf(q, slot);
    this.delivering.set(q, { run: records.run[slot], offer: undefined });
    // A later era or the loss of a rank: the end of the run ends it.
    if (era < lanes.era || offers.refusal !== undefined || carrier === undefined) return;
    const seq = (this.cursor[q] + 1) | 0;
    watcher?.started(q, seq);
    const knowledge = watcher?.offers(q, seq, 0, offset, bytes);
    const id = offers.open(-1 - q, { space: 0, offset, bytes }, 1);
    this.delivering.set(q, { run: records.run[slot], offer: id });
    const offered = { id, space: 0, offset, children: [] };
    const from = carrier.rank;
    carrier.carry(rank, { from, era, key, bytes, payload: undefined, knowledge, offered });
  }

  /** The offer of a delivery has departed. */
  delivered(q: QueueId, outcome: number): void {
    const delivery = this.delivering.get(q);
    if (delivery === undefined || this.isDead) return;
    const isCancelled = this.cancelled[delivery.run] !== 0;
    if (outcome !== NetOutcome.ok && !isCancelled) {
      this.delivering.set(q, { run: delivery.run, offer: undefined });
      return;
    }
    this.delivering.delete(q);
    this.endMessage(q, this.headOf(q), this.world.time, isCancelled);
  }

  /** The run is cancelled: its deliveries end, those whose bytes are under way a little later. */
  private endDeliveries(run: number, at: number): void {
    for (const [q, delivery] of [...this.delivering]) {
      if (delivery.run !== run) continue;
      if (delivery.offer !== undefined) {
        this.lanes.offers.withdraw(delivery.offer, NetOutcome.cancelled);
        continue;
      }
      this.delivering.delete(q);
      this.endMessage(q, this.headOf(q), at, true);
    }
  }

  /** The letter of a receive has come. A version that it only announces is fetched. */
  private takeLetter(q: QueueId, slot: number, at: number, letter: Letter): void {
    const { records, lanes, watcher } = this;
    const { offered } = letter;
    const [offset, bytes] = records.argumentsOf(q, slot);
    const run = records.run[slot];
    if (offered === undefined || letter.bytes !== bytes) {
      lanes.decline(letter);
      this.letters[q] = { letter };
      this.endMessage(q, slot, at, false);
      return;
    }
    const seq = (this.cursor[q] + 1) | 0;
    const { space, mode, scope } = placeOf(records.argumentsOf(q, slot));
    watcher?.started(q, seq);
    watcher?.fetches(q, seq, space, offset, bytes);
    lanes.fetches(letter, offered.children, q, run);
    lanes.carrier?.fetch(
      letter,
      { space, offset, mode, scope },
      (outcome) => {
        if (this.isDead) return;
        lanes.fetched(q);
        watcher?.fetched(space, offset, bytes);
        this.letters[q] = { letter, outcome };
        const isWithdrawn = lanes.isWithdrawn(q, this.lastOf(q, slot));
        this.endMessage(q, slot, this.world.time, isWithdrawn || this.cancelled[run] !== 0);
      },
      () => this.refused(q),
    );
  }

  /** The bytes for which a lane has asked will not come. */
  private refused(q: QueueId): void {
    if (this.isDead) return;
    const { records, lanes, watcher } = this;
    const slot = this.headOf(q);
    const args = records.argumentsOf(q, slot);
    watcher?.fetched(placeOf(args).space, args[0], args[1]);
    lanes.refused(q);
    const run = records.run[slot];
    if (this.cancelled[run] !== 0) this.cancel(run, this.world.time);
    else if (lanes.isWithdrawn(q, this.lastOf(q, slot)) && lanes.stopWaiting(q))
      this.endMessage(q, slot, this.world.time, true);
  }

  /** The receive that is command `seq` of a lane ends as cancelled, unless its bytes have come. */
  withdraw(q: QueueId, seq: number): void {
    if (this.lanes.withdraw(q, seq) && !this.isDead)
      this.endMessage(q, this.headOf(q), this.world.time, true);
  }

  /** Another rank is lost: no bytes come any more, and none leave. */
  lost(): void {
    if (this.isDead) return;
    for (const q of this.lanes.lost()) this.refused(q);
    this.lanes.offers.close(NetOutcome.lost);
  }

  private endMessage(q: QueueId, slot: number, at: number, isCancelled: boolean): void {
    const { records } = this;
    this.started++;
    this.watcher?.started(q, (this.cursor[q] + 1) | 0);
    records.outcome[slot] = isCancelled ? Status.cancelled : Status.ok;
    records.startAt[slot] = at;
    this.state[q] = Queue.running;
    this.world.schedule(this.firstEvent + q, at + this.adversary.stretch(LETTER_NS));
  }

  /** The slot of the record that a lane is about to carry out. */
  private headOf(q: QueueId): number {
    return this.records.slotOf(q, (this.cursor[q] + 1) | 0);
  }

  /** The number of a command: that of its last record. */
  private lastOf(q: QueueId, slot: number): number {
    return (this.cursor[q] + this.records.span[slot]) | 0;
  }

  /** A letter has come to this rank. */
  letterArrives(letter: Letter): void {
    if (this.isDead) return;
    const q = this.lanes.arrives(letter);
    if (q === undefined) return;
    this.takeLetter(q, this.headOf(q), this.world.time, letter);
  }

  /** The run is cancelled from `at` on: its messages end. */
  cancel(run: number, at: number): void {
    this.cancelled[run] = 1;
    if (this.isDead) return;
    const { receives, held } = this.lanes.cancel(run);
    for (const q of receives) this.endMessage(q, this.headOf(q), at, true);
    for (const q of held) this.startMessage(q, this.headOf(q), at);
    this.endDeliveries(run, at);
  }

  /** The engine has handled that many failures. */
  handles(count: number, at: number): void {
    if (this.isDead) return;
    for (const q of this.lanes.handles(count)) this.startMessage(q, this.headOf(q), at);
  }

  /** The effect of a message on memory. */
  private carryOut(q: QueueId, slot: number, seq: number): void {
    const { records, watcher, host, lanes } = this;
    const args = records.argumentsOf(q, slot);
    const [offset, bytes, era] = args;
    const received = this.letters[q];
    this.letters[q] = undefined;
    if (records.op[slot] === Op.offer) {
      this.announce(q, seq, args, records.outcome[slot] === Status.ok);
      return;
    }
    if (received?.outcome !== undefined) {
      const { letter, outcome } = received;
      watcher?.receives(q, seq, placeOf(args).space, offset, bytes, letter.knowledge, true);
      if (outcome !== NetOutcome.ok && records.outcome[slot] === Status.ok)
        records.outcome[slot] = Status.transfer - outcome;
      return;
    }
    if (records.outcome[slot] !== Status.ok || records.op[slot] === Op.deliver) return;
    if (records.op[slot] === Op.send) {
      const knowledge = watcher?.sends(q, seq, offset, bytes);
      const payload = host?.slice(offset, offset + bytes);
      const { carrier } = lanes;
      for (let i = 3; carrier !== undefined && i < args.length; i += 2)
        carrier.carry(args[i], {
          from: carrier.rank,
          era,
          key: args[i + 1],
          bytes,
          payload,
          knowledge,
          offered: undefined,
        });
      return;
    }
    if (received === undefined) return;
    const { letter } = received;
    if (letter.bytes !== bytes) records.outcome[slot] = Status.truncated;
    else {
      watcher?.receives(q, seq, 0, offset, bytes, letter.knowledge, false);
      if (letter.payload !== undefined) host?.set(letter.payload, offset);
    }
  }

  /** Tells other ranks of a long version: those that the command names, or those to which it goes on. */
  private announce(q: QueueId, seq: number, args: Float64Array, isOk: boolean): void {
    const { lanes, watcher } = this;
    const { offers, carrier } = lanes;
    const [offset, bytes, era, number, key, space] = args;
    const refusal = isOk && era >= lanes.era ? offers.refusal : NetOutcome.cancelled;
    const given = Array.from(args.subarray(OFFER_ARGS));
    const pairs = given.length > 0 ? given : lanes.takeBranches(era, key);
    if (refusal !== undefined || pairs.length === 0 || carrier === undefined) {
      offers.ends(number, refusal ?? NetOutcome.ok);
      return;
    }
    const knowledge = watcher?.offers(q, seq, space, offset, bytes);
    const branches = tree(pairs, carrier.treeFrom);
    const id = offers.open(number, { space, offset, bytes }, branches.length);
    announceTo(carrier, branches, { id, space, offset, era, bytes, knowledge });
  }

  /** A rank needs no bytes of an offer: this one serves those to which that one should have passed them on. */
  declined({ era, bytes, knowledge, offered }: Letter): void {
    const { offers, carrier, era: present } = this.lanes;
    if (this.isDead || carrier === undefined || offered === undefined) return;
    const { id, children, space, offset } = offered;
    const branches = era >= present ? tree(children, carrier.treeFrom) : [];
    if (branches.length > 0 && offers.extend(id, branches.length))
      announceTo(carrier, branches, { id, space, offset, era, bytes, knowledge });
    offers.declined(id);
  }

  /** Nanoseconds that a queue has spent in kernels and copies until `at`, the present. */
  busy(q: QueueId, at: number): number {
    const { records, cursor } = this;
    if (this.state[q] !== Queue.running) return this.busyNs[q];
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
    if (isMessage) this.carryOut(q, slot, first);
    else this.effects(q, slot, first);
    records.endAt[slot] = at;
    if (op !== Op.fill && !isMessage) this.busyNs[q] += at - records.startAt[slot];
    const status = records.outcome[slot];
    if (status !== Status.ok) {
      this.failed[q]++;
      this.lanes.failed++;
      // Slot 0 is the runtime's own, which is never cancelled.
      if (records.run[slot] > 0) this.cancel(records.run[slot], at);
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

function linkOf(
  machine: MachineDescription,
  queue: QueueInfo,
): { bandwidth: number; latency: number } | null {
  switch (queue.kind) {
    case 'h2d':
      return machine.h2d;
    case 'd2h':
      return machine.d2h;
    case 'peer':
      return pairLink(machine, queue.space - 1, queue.peer - 1);
    default:
      return null;
  }
}

/** Tells the first rank of each branch of an offer. The others of the branch get the version from that rank. */
function announceTo(
  carrier: Carrier,
  branches: readonly number[][],
  offer: Pick<Letter, 'era' | 'bytes' | 'knowledge'> & Omit<Offered, 'children'>,
): void {
  const { id, space, offset, era, bytes, knowledge } = offer;
  const from = carrier.rank;
  for (const [rank, key, ...children] of branches) {
    const offered = { id, space, offset, children };
    carrier.carry(rank, { from, era, key, bytes, payload: undefined, knowledge, offered });
  }
}

/** Where and how the bytes of a receive come, by its arguments. */
function placeOf(args: Float64Array): Pick<LanePlace, 'space' | 'mode' | 'scope'> {
  const isAnnounced = args.length > RECEIVE_ARGS;
  if (!isAnnounced) return { space: 0, mode: WireMode.direct, scope: VisibleTo.none };
  return arrivalOf(args[RECEIVE_ARGS]);
}
