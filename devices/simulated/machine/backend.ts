// The backend port in virtual time: the same in-order queues, waits, doorbells and completions as the native
// backend, executed by an event queue instead of threads.
//
// There are two clocks. `hostTime` is that of the engine thread; it advances by the engine's work (commands, blocked
// time). The world's is that of the machine; events up to `hostTime` have happened when the engine polls. A
// sleeping engine gets its turn when a doorbell that it armed rings; a blocked one lets time run until then.
// Invariants: the engine never sees (`completed`) more than has happened; a requested turn comes.

import {
  type Backend,
  execRecords,
  type KernelSource,
  type LaneCommand,
  type NativePlay,
  type QueueInfo,
  type ScriptWorkers,
  type SpaceInfo,
  type SteeredKernelParameter,
} from '../../backend.js';
import { FIRST_QUEUE, HOST, NO_QUEUE, type QueueId, type SpaceId } from '../../handles.js';
import type { AnnouncedPlace } from '../../network/port.js';
import { ARRIVAL_ARGUMENT } from '../../network/ways.js';
import { Adversary, type AdversaryOptions, calm } from './adversary.js';
import { Executor, type SimulatedKernel } from './executor.js';
import { type Fault, FaultPlan } from './faults.js';
import type { Departure, LaneOffers } from './lane-offers.js';
import type { Carrier, Letter } from './lanes.js';
import type { MachineDescription } from './machine.js';
import { Player } from './player.js';
import { ARGS, Op } from './records.js';
import type { Watcher } from './watcher.js';
import { type EventOwner, type Inhabitant, World } from './world.js';

export type { KernelCall, SimulatedKernel } from './executor.js';

interface SimulatedOptions {
  readonly machine: MachineDescription;
  /** The world that it shares with others; by default its own. */
  readonly world?: World;
  /** Records per queue; a power of two. */
  readonly ringRecords?: number;
  readonly adversary?: AdversaryOptions;
  readonly faults?: readonly Fault[];
  /** Kernels with a body; memory then consists of real bytes. */
  readonly kernels?: Readonly<Record<string, SimulatedKernel>>;
  /** Sees every access to memory, with its order (weak-memory.ts). */
  readonly watcher?: Watcher;
  /** Whether engines keep stories; default true. */
  readonly story?: boolean;
  /** Bytes of host memory, if only those are real. */
  readonly hostBytes?: Uint8Array;
}

/** Limit of successive blocks of the engine without work of the machine; beyond it, that is an error. */
const MOST_IDLE_BLOCKS = 1000;
/** Limit for engines that poll within each other's polls: with many ranks the stack would overflow. */
const MOST_NESTED = 64;
/** From the request for a turn to the turn: an engine that asks again and again must let time pass. */
const TURN_NS = 1000;

export class SimulatedBackend implements Backend, EventOwner, Inhabitant {
  readonly kind = 'simulated';
  readonly graphs = undefined;
  readonly scripts: ScriptWorkers | undefined;
  readonly full = false;
  readonly keepsStory: boolean;
  readonly spaces: readonly SpaceInfo[];
  readonly queues: readonly QueueInfo[];
  readonly ringRecords: number;
  readonly completed: Int32Array;
  readonly issued: Int32Array;
  readonly failures: Int32Array;
  readonly world: World;
  readonly faults: FaultPlan;
  readonly adversary: Adversary;
  readonly executor: Executor;
  private readonly player: Player;
  /** An event outside of the queues is due: messages. */
  alsoDue: (() => boolean) | undefined;
  whenStill: (() => void) | undefined;

  private readonly watcher: Watcher | undefined;
  private readonly hostBytes: Uint8Array | undefined;
  private readonly count: number;
  private readonly armed: Uint8Array;
  private readonly armedAt: Int32Array;
  private readonly mustShow: Uint8Array;
  private readonly commandNs: number;
  private readonly wakeNs: number;
  private readonly turnEvent: number;
  private hostTime = 0;
  /** Time of the last event that this engine may see. */
  private lastNews = 0;
  /** Number of times that this engine is on the stack. */
  private depth = 0;
  private asleep = false;
  private turnScheduled = false;
  /** The turn came while the engine was on the stack. */
  private turnMissed = false;
  private turn: () => void = () => {};
  /** Blocks in a row since which the machine has done nothing, and its progress at the end of the last one. */
  private idleBlocks = 0;
  private movesAtBlock = 0;
  private scratch: Uint8Array = new Uint8Array(0);

  constructor(options: SimulatedOptions) {
    const { machine } = options;
    this.world = options.world ?? new World();
    this.keepsStory = options.story ?? true;
    this.ringRecords = options.ringRecords ?? 4096;
    this.adversary = new Adversary(options.adversary ?? calm);
    this.faults = new FaultPlan(options.faults ?? []);
    this.watcher = options.watcher;
    this.hostBytes = options.hostBytes;
    this.executor = new Executor(
      this.world,
      machine,
      this.ringRecords,
      this.adversary,
      this.faults,
      options.watcher,
      options.kernels,
    );
    if (options.hostBytes !== undefined) this.executor.host = options.hostBytes;
    const { spaces, queues } = this.executor;
    this.spaces = spaces;
    this.queues = queues;
    // A body is a kernel with the name of its class; it throws nothing.
    if ((machine.scriptWorkers ?? 0) > 0) {
      this.scripts = {
        define: ({ name }) => this.executor.kernel(name),
        thrown: () => undefined,
        close: async () => {},
      };
    }
    const n = queues.length;
    this.count = n;
    this.completed = new Int32Array(n);
    this.issued = new Int32Array(n);
    this.failures = new Int32Array(n);
    this.armed = new Uint8Array(n);
    this.armedAt = new Int32Array(n);
    this.mustShow = new Uint8Array(n);
    this.commandNs = machine.engine.command * 1e9;
    this.wakeNs = machine.engine.wake * 1e9;
    this.turnEvent = this.world.reserve(this, 1);
    this.world.join(this);
    this.player = new Player(
      this.executor,
      () => Math.max(this.world.time, this.hostTime),
      (q, seq, onQueue, onSeq) => this.watcher?.issued(q, seq, onQueue, onSeq),
    );
    this.executor.onFinished = (q) => this.news(this.isReached(q) || this.executor.lanes.unhandled);
  }

  /** Records started so far. */
  get events(): number {
    return this.executor.started;
  }

  kernel(name: string, _space: SpaceId): number {
    return this.executor.kernel(name);
  }

  takesLengths(_kernel: number): boolean {
    return false;
  }

  steered(kernel: number, _space: SpaceId, parameters: readonly SteeredKernelParameter[]): number {
    return this.executor.steered(kernel, parameters);
  }

  /** The planner keeps the counts in the commands: the file of a plan has no numbers of one process. */
  numberLengths(_lengths: Float64Array): number {
    return 0;
  }

  loadKernels(): string[] {
    return [];
  }

  compileKernels(_source: KernelSource): string[] {
    return [];
  }

  // --- Commands -------------------------------------------------------------------------------------------------

  wait(queue: QueueId, onQueue: QueueId, onSeq: number): void {
    this.next(queue, Op.wait, 0, 0, onQueue, onSeq);
  }

  // biome-ignore lint/complexity/useMaxParams: one call per command, from submission.ts only; the order is that of the port.
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
    const { records } = this.executor;
    const slot = this.next(queue, Op.exec, task, run, waitQueue, waitSeq);
    const seq = this.issued[queue];
    const span = execRecords(nArgs);
    records.what[slot] = kernel;
    records.flows[slot] = nFlows;
    records.arguments[slot] = nArgs;
    records.span[slot] = span;
    records.setArguments(queue, slot, args, nArgs);
    this.issued[queue] = (seq + span - 1) | 0;
    this.hostTime += this.commandNs;
    return seq;
  }

  // biome-ignore lint/complexity/useMaxParams: one call per command, from submission.ts only; the order is that of the port.
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
    const { records } = this.executor;
    const slot = this.next(queue, Op.copy, id, -1, waitQueue, waitSeq);
    records.what[slot] = dstSpace | (srcSpace << 8);
    records.args[slot * ARGS] = dstOffset;
    records.args[slot * ARGS + 1] = srcOffset;
    records.args[slot * ARGS + 2] = bytes;
    this.hostTime += this.commandNs;
    return this.issued[queue];
  }

  // biome-ignore lint/complexity/useMaxParams: one call per command, from submission.ts only; the order is that of the port.
  message(
    kind: LaneCommand,
    lane: QueueId,
    task: number,
    run: number,
    nArgs: number,
    args: Float64Array,
    waitQueue: QueueId,
    waitSeq: number,
  ): number {
    const { records } = this.executor;
    const slot = this.next(lane, Op[kind], task, run, waitQueue, waitSeq);
    const seq = this.issued[lane];
    const span = execRecords(nArgs);
    records.flows[slot] = 0;
    records.arguments[slot] = nArgs;
    records.span[slot] = span;
    records.setArguments(lane, slot, args, nArgs);
    this.issued[lane] = (seq + span - 1) | 0;
    this.hostTime += this.commandNs;
    return seq;
  }

  fill(queue: QueueId, offset: number, bytes: number, value: number): number {
    const { args } = this.executor.records;
    const slot = this.next(queue, Op.fill, 0, -1, NO_QUEUE, 0);
    args[slot * ARGS] = offset;
    args[slot * ARGS + 1] = bytes;
    args[slot * ARGS + 2] = value;
    return this.issued[queue];
  }

  private next(
    queue: QueueId,
    op: number,
    task: number,
    run: number,
    waitQueue: QueueId,
    waitSeq: number,
  ): number {
    const seq = (this.issued[queue] + 1) | 0;
    if (((seq - this.completed[queue]) | 0) > this.ringRecords) {
      throw new Error(`simulation: ring of queue ${queue} overflows`);
    }
    this.issued[queue] = seq;
    this.watcher?.issued(queue, seq, waitQueue, waitSeq);
    return this.executor.records.write(queue, seq, op, task, run, waitQueue, waitSeq);
  }

  play(play: NativePlay): void {
    this.player.begin(play);
  }

  extendPlay(times: number): boolean {
    return this.player.extend(times);
  }

  playOutcome(): Float64Array {
    return this.player.outcome();
  }

  publish(): void {
    const { executor, issued } = this;
    const at = Math.max(this.world.time, this.hostTime);
    for (let q = FIRST_QUEUE; q < this.count; q++) {
      if (executor.published[q] !== issued[q] && !this.player.plays(q))
        executor.publish(q, issued[q], at);
    }
  }

  // --- Completions ----------------------------------------------------------------------------------------------

  poll(): boolean {
    const { adversary, executor } = this;
    if (adversary.active || this.faults.faults.length > 0)
      this.hostTime += adversary.heldUp() + this.faults.poll();
    const { world } = this;
    // Deeper on the stack an engine sees what has happened so far; what follows rings for it later.
    if (world.nested < MOST_NESTED) {
      this.depth++;
      world.nested++;
      world.runUntil(this.hostTime);
      world.nested--;
      this.leave();
    }
    let moved = false;
    for (let q = FIRST_QUEUE; q < this.count; q++) {
      if (this.completed[q] === executor.done[q]) continue;
      // A failure becomes visible before anything that ran behind it (the port's promise).
      const hides = adversary.active && executor.failed[q] === this.failures[q];
      const shown = hides ? this.shownOf(q) : executor.done[q];
      if (shown === this.completed[q]) continue;
      this.watcher?.seen(q, shown);
      this.completed[q] = shown;
      this.failures[q] = executor.failed[q];
      moved = true;
    }
    if (moved && this.lastNews > this.hostTime) this.hostTime = this.lastNews;
    return moved;
  }

  /** Simulated threads share one core, which nobody else uses while one of them spins. */
  spin(): boolean {
    return false;
  }

  status(queue: QueueId, seq: number): number {
    const { records } = this.executor;
    return records.outcome[records.slotOf(queue, seq)];
  }

  arrivalOf(lane: QueueId, seq: number): number {
    const { records } = this.executor;
    return records.args[records.slotOf(lane, seq) * ARGS + ARRIVAL_ARGUMENT];
  }

  startOf(queue: QueueId, seq: number): number {
    const { records } = this.executor;
    return records.startAt[records.slotOf(queue, seq)];
  }

  endOf(queue: QueueId, seq: number): number {
    const { records } = this.executor;
    return records.endAt[records.slotOf(queue, seq)];
  }

  lastError(queue: QueueId): string {
    return this.executor.errors[queue];
  }

  setTiming(): void {
    // Times are always kept.
  }

  keepTimes(): void {
    // Times are always kept.
  }

  setCancelled(run: number, on: boolean): void {
    if (on) this.executor.cancel(run, Math.max(this.world.time, this.hostTime));
    else this.executor.cancelled[run] = 0;
  }

  handledFailures(count: number): void {
    this.executor.messages.handles(count, Math.max(this.world.time, this.hostTime));
  }

  // --- The network's side -----------------------------------------------------------------------------------------

  connect(
    carrier: Carrier,
    departed: (departure: Departure) => void,
    came: (number: number, from: AnnouncedPlace) => void,
  ): void {
    this.executor.lanes.carrier = carrier;
    this.executor.lanes.came = came;
    this.executor.lanes.offers.departed = (departure) => {
      departed(departure);
      const { number, outcome } = departure;
      if (number < 0) this.executor.messages.delivered((-1 - number) as QueueId, outcome);
    };
  }

  get offers(): LaneOffers {
    return this.executor.lanes.offers;
  }

  lost(): void {
    this.executor.messages.lost();
  }

  letterArrives(letter: Letter): void {
    this.executor.messages.letterArrives(letter);
  }

  beginEra(era: number): void {
    this.executor.lanes.beginEra(era);
  }

  want(era: number, key: number): void {
    this.executor.lanes.want(era, key);
  }

  declineBefore(era: number): void {
    this.executor.lanes.declineBefore(era);
  }

  declined(letter: Letter): void {
    this.executor.messages.declined(letter);
  }

  withdraw(lane: number, sequence: number): void {
    const first = this.queues.findIndex(({ kind }) => kind === 'lane');
    this.executor.messages.withdraw((first + lane) as QueueId, sequence);
  }

  refuse(era: number, key: number): void {
    this.executor.lanes.refuse(era, key);
  }

  refuseCalls(from: number, until: number, above: number): void {
    this.executor.lanes.refuseCalls(from, until, above);
  }

  expect(era: number, key: number, number: number): void {
    this.executor.lanes.expect(era, key, number);
  }

  isCancelled(run: number): boolean {
    return this.executor.cancelled[run] !== 0;
  }

  /** The part of a queue's events that the adversary lets the engine see. */
  private shownOf(q: QueueId): number {
    const { executor, completed } = this;
    const done = executor.done[q];
    if (this.mustShow[q] !== 0) {
      this.mustShow[q] = 0;
      return done;
    }
    let left = this.adversary.shown((done - completed[q]) | 0);
    let seq = completed[q];
    // A play that has ended early has skipped the rest of its records: these were never written.
    if (((done - seq) | 0) > executor.records.capacity) return done;
    while (left > 0 && ((done - seq) | 0) > 0) {
      const span = Math.max(1, executor.records.span[executor.records.slotOf(q, (seq + 1) | 0)]);
      seq = (seq + span) | 0;
      left -= span;
    }
    return ((done - seq) | 0) < 0 ? done : seq;
  }

  // --- Doorbells and turns --------------------------------------------------------------------------------------

  arm(queue: QueueId, seq: number): void {
    this.armed[queue] = 1;
    this.armedAt[queue] = seq;
  }

  private isReached(q: QueueId): boolean {
    return this.armed[q] !== 0 && ((this.executor.done[q] - this.armedAt[q]) | 0) >= 0;
  }

  private isDue(): boolean {
    if (this.executor.lanes.unhandled) return true;
    for (let q = FIRST_QUEUE; q < this.count; q++) if (this.isReached(q)) return true;
    return this.alsoDue?.() === true;
  }

  /** The next poll shows the cause of a ring, whatever the adversary wants. */
  private disarm(): void {
    for (let q = FIRST_QUEUE; q < this.count; q++) if (this.isReached(q)) this.mustShow[q] = 1;
    this.armed.fill(0);
  }

  /** An event happened that the engine may see; `rings`: it asked for a ring. */
  news(rings: boolean): void {
    this.lastNews = this.world.time;
    if (rings && this.asleep) {
      this.asleep = false;
      this.scheduleTurn(Math.max(this.hostTime, this.world.time) + this.wakeNs);
    }
  }

  private scheduleTurn(at: number): void {
    if (this.turnScheduled) return;
    this.turnScheduled = true;
    this.world.scheduleTurn(this.turnEvent, at);
  }

  happens(): void {
    this.turnScheduled = false;
    this.world.turnBegins();
    if (this.executor.isDead) return;
    if (this.depth > 0) {
      this.turnMissed = true;
      return;
    }
    this.asleep = false;
    this.hostTime = Math.max(this.hostTime, this.world.time);
    this.disarm();
    this.depth++;
    try {
      this.turn();
    } finally {
      this.leave();
    }
  }

  private leave(): void {
    this.depth--;
    if (this.depth > 0 || !this.turnMissed) return;
    this.turnMissed = false;
    this.scheduleTurn(Math.max(this.hostTime, this.world.time));
  }

  soon(callback: () => void = this.turn): void {
    this.turn = callback;
    if (this.executor.isDead) return;
    this.scheduleTurn(Math.max(this.hostTime, this.world.time) + TURN_NS);
  }

  serve(): boolean {
    return false;
  }

  block(microseconds: number): void {
    const { world } = this;
    const until = this.hostTime + microseconds * 1000;
    this.depth++;
    let rang = this.isDue() || this.adversary.wakesForNothing();
    while (!rang && world.next <= until) {
      world.step();
      rang = this.isDue();
    }
    this.leave();
    if (rang) this.hostTime = Math.max(this.hostTime, this.lastNews) + this.wakeNs;
    else this.hostTime = Math.max(this.hostTime, until);
    this.disarm();
    if (this.executor.isDead) throw new Error('simulation: the rank is gone');
    // Engines may have turns for ever, on which they find nothing to do.
    if (world.moves !== this.movesAtBlock || world.isMoving) this.idleBlocks = 0;
    else if (++this.idleBlocks > MOST_IDLE_BLOCKS) throw this.blocksForEver();
    this.movesAtBlock = world.moves;
  }

  private blocksForEver(): Error {
    return new Error(
      'simulation: the engine blocks for ever. Simulated ranks share a thread: where another rank may wait for its program, ' +
        `await graph.space() before each insertion and value(). ${this.describeQueues()}`,
    );
  }

  sleep(): boolean {
    if (this.isDue() || this.adversary.wakesForNothing()) {
      this.disarm();
      this.hostTime += this.wakeNs;
      return false;
    }
    this.asleep = true;
    return true;
  }

  worldIsStill(): void {
    if (!this.executor.isDead) this.whenStill?.();
  }

  onWake(callback: () => void): void {
    this.turn = callback;
  }

  hold(): void {
    // No thread keeps the process alive; the world does while events are to come.
  }

  // --- Clock, memory --------------------------------------------------------------------------------------------

  now(): number {
    return this.hostTime;
  }

  workTime(): number {
    return this.hostTime;
  }

  hostView(offset: number, bytes: number): Uint8Array {
    const memory = this.hostBytes ?? this.executor.bytes[0];
    if (memory !== undefined) return memory.subarray(offset, offset + bytes);
    if (this.scratch.length < bytes) this.scratch = new Uint8Array(Math.ceil(bytes / 8) * 8);
    return this.scratch.subarray(0, bytes);
  }

  /** Bytes of a space, where memory is real. */
  memory(space: SpaceId): Uint8Array | undefined {
    return space === HOST ? this.executor.host : this.executor.bytes[space];
  }

  busy(queue: QueueId): number {
    return this.executor.busy(queue, this.world.time);
  }

  takeStolen(): number {
    return 0;
  }

  keepShared(): void {
    // No other process has memory of this one.
  }

  close(): void {
    // Nothing to release.
  }

  /** The rank is gone: its engine and its queues stand still from now on. */
  die(): void {
    this.executor.isDead = true;
    this.asleep = false;
  }

  /** The state of each queue, for reports. */
  describeQueues(): string {
    return this.executor.describe(this.issued);
  }
}
