// Many ranks, one program: every rank inserts the same tasks; this file decides which of them run here and what has
// to move, and turns every movement into a task of its own.
//
// A task belongs to the rank that owns the first datum it writes. Inserting a task of another rank costs a send for
// each input whose latest version is here and not there yet; inserting a task of this rank costs a receive for each
// input whose latest version is elsewhere. Both are tasks on the data they move, so that the graph's own order keeps
// versions apart: a later writer waits for the send, a reader for the receive.
//
// Invariants:
// - `producer[d]` is the rank whose task writes the latest version in program order, on every rank that follows d;
// - the n-th send of a datum from rank a to rank b matches the n-th receive of it on b from a: both count in program
//   order, so no version numbers travel;
// - a send that has not started takes further destinations of the same version;
// - one receive per version and rank, whoever wants it.
import { Status } from '../devices/backend.js';
import { Poison } from '../devices/directory.js';
import { HeadraceError } from '../devices/errors.js';
import {
  type Announcement,
  keyOf,
  MAX_RANKS,
  NetworkDevice,
  type NetworkListener,
  type NetworkOptions,
  type NetworkWay,
  transferError,
} from '../devices/network.js';
import { NetOutcome, type NetworkPort } from '../devices/network-port.js';
import type { WireRecord } from '../devices/network-wire.js';
import { roundedBytes } from '../devices/zone.js';
import { grantOffer, grantReceive, NetworkCredits } from '../stages/comm-in.js';
import { advance, complete } from '../stages/pipeline.js';
import { Outcome } from '../stages/stage.js';
import { AccessMode, ANY_DEVICE, NetworkRole, type TaskClassRow } from '../stages/task-table.js';
import { type Engine, INTERNAL_RUN } from './engine.js';
import { RankRuns } from './rank-runs.js';
import type { NetworkReport } from './report.js';
import type { RunState } from './run-state.js';

/** One send, receive or forward: what its task row has no columns for. */
interface Movement {
  readonly index: number;
  readonly role: number;
  readonly d: number;
  readonly gid: number;
  readonly run: number;
  readonly origin: number;
  readonly key: number;
  /** Pairs (rank, sequence). */
  readonly destinations: number[];
  /** Space the consumer is expected to run on. */
  readonly wanted: number;
  /** The receive a forward belongs to. */
  readonly receive: Movement | undefined;
  task: number;
  /** Space granted to a receive, -1 before. */
  space: number;
  announcement: Announcement | undefined;
  /** The row is released and waits for the announcement. */
  waits: boolean;
  started: boolean;
}

const NOT_SENT = -1;
/** Tasks of other ranks between two passes of the engine; a power of two. */
const PASS_EVERY = 64;
/** A row whose body has begun: the engine's own mark. */
const BODY_RUNNING = -2;

export class Ranks implements NetworkListener {
  readonly rank: number;
  readonly size: number;
  readonly device: NetworkDevice;
  readonly credits: NetworkCredits;
  readonly runs: RankRuns;
  /** Set once a rank was lost; nothing works from then on. */
  lostError: HeadraceError | undefined;
  /** Payload bytes sent and received, and the number of dependencies they were for. */
  readonly figures = { sentBytes: 0, receivedBytes: 0, sends: 0, receives: 0 };

  private readonly engine: Engine;
  private readonly treeFrom: number;
  /** Devices are real and the message layer cannot reach their memory: everything goes through host memory. */
  private readonly viaHost: boolean;
  private readonly sendClass: TaskClassRow;
  private readonly receiveClass: TaskClassRow;
  private readonly forwardClass: TaskClassRow;

  // Per datum row.
  private gid: Int32Array = new Int32Array(256);
  private owner: Int16Array = new Int16Array(256);
  private producer: Int16Array = new Int16Array(256);
  /** 1: the latest version is here, or will be in the order of the graph. */
  private have: Uint8Array = new Uint8Array(256);
  /** Movement that may take more destinations for the latest version, or NOT_SENT. */
  private openSend: Int32Array = new Int32Array(256).fill(NOT_SENT);
  /** Ranks the latest version was sent to; `maskWords` words per datum. */
  private sentTo: Int32Array;
  private readonly maskWords: number;
  private nextGid = 1;
  private elsewhere = 0;

  private readonly sendCounts: Map<number, number> = new Map();
  private readonly receiveCounts: Map<number, number> = new Map();
  private readonly movements: (Movement | undefined)[] = [undefined];
  private readonly freeMovements: number[] = [];
  private readonly byKey: Map<number, Movement> = new Map();
  private readonly early: Map<number, Announcement> = new Map();
  private readonly failures: Map<number, HeadraceError> = new Map();
  private readonly oneFlow: Int32Array = new Int32Array(1);
  private readonly oneParam: Float64Array = new Float64Array(1);
  /** Movements whose tasks are live. */
  live = 0;

  constructor(engine: Engine, port: NetworkPort, options: NetworkOptions) {
    if (port.size > MAX_RANKS) {
      throw new HeadraceError(
        'ERR_OPTION',
        `at most ${MAX_RANKS} ranks are supported, not ${port.size}`,
      );
    }
    this.engine = engine;
    this.rank = port.rank;
    this.size = port.size;
    this.treeFrom = options.treeFrom;
    this.viaHost = engine.backend.spaces.some(({ kind }) => kind === 'cuda' || kind === 'hip');
    this.maskWords = (port.size + 31) >> 5;
    this.sentTo = new Int32Array(256 * this.maskWords);
    this.device = new NetworkDevice(port, engine.backend.spaces, options, this);
    this.credits = new NetworkCredits(engine.x);
    this.sendClass = this.networkClass('send', AccessMode.read, NetworkRole.send);
    this.receiveClass = this.networkClass('receive', AccessMode.write, NetworkRole.receive);
    this.forwardClass = this.networkClass('forward', AccessMode.read, NetworkRole.forward);
    this.runs = new RankRuns(engine, this);
    engine.backend.alsoDue = () => port.due();
  }

  private networkClass(name: string, mode: number, network: number): TaskClassRow {
    const { engine } = this;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name,
      flowNames: ['datum'],
      paramNames: ['movement'],
      modes: Uint8Array.of(mode),
      kernels: new Int32Array(engine.backend.spaces.length).fill(-1),
      body: () => {},
      explain: undefined,
      failureCode: undefined,
      network,
    };
    engine.x.classes.push(row);
    return row;
  }

  // --- Data -------------------------------------------------------------------------------------------------------

  /** A datum was created on all ranks; returns whether it is this rank's. */
  addDatum(d: number, owner: number): boolean {
    if (d >= this.gid.length) this.growTo(Math.max(d + 1, this.gid.length * 2));
    this.failures.delete(d);
    this.gid[d] = this.nextGid++;
    this.owner[d] = owner;
    this.producer[d] = owner;
    this.have[d] = owner === this.rank ? 1 : 0;
    this.forgetSends(d);
    return owner === this.rank;
  }

  ownerOf(d: number): number {
    return this.owner[d];
  }

  /** Name of a datum that is the same on all ranks. */
  globalId(d: number): number {
    return this.gid[d];
  }

  private growTo(rows: number): void {
    const grow = <T extends Int32Array | Int16Array | Uint8Array>(from: T, length: number): T => {
      const to = new (from.constructor as new (n: number) => T)(length);
      to.set(from as never);
      return to;
    };
    this.gid = grow(this.gid, rows);
    this.owner = grow(this.owner, rows);
    this.producer = grow(this.producer, rows);
    this.have = grow(this.have, rows);
    const from = this.openSend.length;
    this.openSend = grow(this.openSend, rows).fill(NOT_SENT, from);
    this.sentTo = grow(this.sentTo, rows * this.maskWords);
  }

  private forgetSends(d: number): void {
    this.openSend[d] = NOT_SENT;
    const at = d * this.maskWords;
    for (let w = 0; w < this.maskWords; w++) this.sentTo[at + w] = 0;
  }

  // --- Planning, in program order -----------------------------------------------------------------------------------

  /** Now and then true, for a program that inserts nothing here. */
  skipsTurn(): boolean {
    this.elsewhere = (this.elsewhere + 1) & (PASS_EVERY - 1);
    return this.elsewhere === 0;
  }

  /** Rank a task belongs to. */
  rankOf(cls: TaskClassRow, flows: Int32Array): number {
    const { modes } = cls;
    for (let i = 0; i < modes.length; i++)
      if (modes[i] !== AccessMode.read) return this.owner[flows[i]];
    return modes.length > 0 ? this.owner[flows[0]] : 0;
  }

  /**
   * Plans the movements of a task that is about to be inserted on all ranks. Returns true when it is this rank's and
   * has to be inserted here.
   */
  plan(
    cls: TaskClassRow,
    run: RunState,
    flows: Int32Array,
    params: Float64Array,
    priority: number,
    device: number,
    at: number,
  ): boolean {
    const target = at >= 0 ? at : this.rankOf(cls, flows);
    this.runs.count(run, cls, flows, params, this.gid, target);
    const { modes } = cls;
    const local = target === this.rank;
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.write) continue;
      const d = flows[i];
      if (local) {
        if (this.have[d] === 0)
          this.receive(d, run, priority, this.wantedSpace(cls, flows, device));
      } else if (this.producer[d] === this.rank) this.sendTo(d, target, run, priority);
    }
    if (local) {
      let bytes = 0;
      for (let i = 0; i < modes.length; i++) bytes += this.engine.directory.bytes[flows[i]] + 512;
      for (let s = 1; s < this.credits.floor.length; s++) {
        if (cls.kernels[s] >= 0 && bytes > this.credits.floor[s]) this.credits.floor[s] = bytes;
      }
    }
    for (let i = 0; i < modes.length; i++)
      if (modes[i] !== AccessMode.read) this.written(flows[i], target);
    return local;
  }

  /** The latest version of `d` in program order is written by `rank`. */
  written(d: number, rank: number): void {
    this.producer[d] = rank;
    this.have[d] = rank === this.rank ? 1 : 0;
    this.forgetSends(d);
    this.engine.directory.written[d] = 1;
  }

  /** All ranks want the latest version of `d`. */
  planRead(d: number, run: RunState): void {
    if (this.producer[d] === this.rank) {
      for (let i = 1; i < this.size; i++) this.sendTo(d, (this.rank + i) % this.size, run, 0);
    } else if (this.have[d] === 0) this.receive(d, run, 0, 0);
  }

  /** Space the consumer will most likely run on: where its first written datum belongs. */
  private wantedSpace(cls: TaskClassRow, flows: Int32Array, device: number): number {
    if (device >= 0) return device;
    const { modes, kernels } = cls;
    const dir = this.engine.directory;
    let gpu = 0;
    for (let s = 1; s < kernels.length && gpu === 0; s++) if (kernels[s] >= 0) gpu = s;
    if (gpu === 0) return 0;
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      const d = flows[i];
      const home = dir.home[d] >= 0 ? dir.home[d] : dir.owner(d);
      if (home > 0 && kernels[home] >= 0) return home;
      break;
    }
    return gpu;
  }

  private sendTo(d: number, to: number, run: RunState, priority: number): void {
    const word = d * this.maskWords + (to >> 5);
    const bit = 1 << (to & 31);
    if ((this.sentTo[word] & bit) !== 0) return;
    this.sentTo[word] |= bit;
    const counter = this.gid[d] * MAX_RANKS + to;
    const sequence = this.sendCounts.get(counter) ?? 0;
    this.sendCounts.set(counter, sequence + 1);
    this.runs.sent(run, to);
    this.figures.sends++;
    const open = this.openSend[d] === NOT_SENT ? undefined : this.movements[this.openSend[d]];
    if (open !== undefined && !open.started && open.run === run.slot && open.d === d) {
      open.destinations.push(to, sequence);
      return;
    }
    const movement = this.newMovement(
      NetworkRole.send,
      d,
      run,
      this.rank,
      0,
      [to, sequence],
      0,
      undefined,
    );
    this.openSend[d] = movement.index;
    this.insert(this.sendClass, movement, run, priority);
  }

  private receive(d: number, run: RunState, priority: number, wanted: number): void {
    const origin = this.producer[d];
    this.have[d] = 1;
    const counter = this.gid[d] * MAX_RANKS + origin;
    const sequence = this.receiveCounts.get(counter) ?? 0;
    this.receiveCounts.set(counter, sequence + 1);
    this.runs.expected(run, origin);
    this.figures.receives++;
    const key = keyOf(this.gid[d], origin, sequence);
    const movement = this.newMovement(
      NetworkRole.receive,
      d,
      run,
      origin,
      key,
      [],
      wanted,
      undefined,
    );
    movement.announcement = this.early.get(key);
    if (movement.announcement === undefined) this.byKey.set(key, movement);
    else this.early.delete(key);
    this.insert(this.receiveClass, movement, run, priority);
    // A tree may make this rank pass the datum on; whether it does is in the announcement.
    if (this.size - 1 >= this.treeFrom) {
      const forward = this.newMovement(NetworkRole.forward, d, run, origin, 0, [], 0, movement);
      this.insert(this.forwardClass, forward, run, priority);
    }
  }

  private newMovement(
    role: number,
    d: number,
    run: RunState,
    origin: number,
    key: number,
    destinations: number[],
    wanted: number,
    receive: Movement | undefined,
  ): Movement {
    const index = this.freeMovements.pop() ?? this.movements.length;
    const movement: Movement = {
      index,
      role,
      d,
      gid: this.gid[d],
      run: run.slot,
      origin,
      key,
      destinations,
      wanted,
      receive,
      task: 0,
      space: -1,
      announcement: undefined,
      waits: false,
      started: false,
    };
    this.movements[index] = movement;
    this.live++;
    return movement;
  }

  private insert(cls: TaskClassRow, movement: Movement, run: RunState, priority: number): void {
    const { oneFlow, oneParam, engine } = this;
    engine.reserveRow(1, 1);
    oneFlow[0] = movement.d;
    oneParam[0] = movement.index;
    // The consumer's class says what is written; a receive is not the program's write.
    run.movements++;
    engine.insert(cls, run, oneFlow, oneParam, priority, ANY_DEVICE, undefined);
  }

  // --- The engine's hooks -------------------------------------------------------------------------------------------

  private movementOf(row: number): Movement {
    const { tasks } = this.engine;
    return this.movements[tasks.params[tasks.paramStart[row]]] as Movement;
  }

  /** A movement's task has nothing left to follow; the engine counted it on the host. */
  released(row: number): void {
    const { engine } = this;
    const movement = this.movementOf(row);
    movement.task = engine.tasks.idOf(row);
    if (this.lostError !== undefined) {
      engine.fail(row, this.lostError);
      return;
    }
    switch (movement.role) {
      case NetworkRole.receive:
        if (movement.announcement !== undefined) this.accept(row, movement);
        else {
          movement.waits = true;
          engine.x.waitForReceive(row);
        }
        break;
      case NetworkRole.forward: {
        const announcement = movement.receive?.announcement;
        if (announcement === undefined || announcement.children.length === 0) engine.skip(row);
        else {
          movement.destinations.push(...announcement.children);
          this.beginSend(row, movement);
        }
        break;
      }
      default:
        this.beginSend(row, movement);
    }
  }

  /** Sends start from where the datum is; small ones from the host, because their bytes go into the message. */
  private beginSend(row: number, movement: Movement): void {
    const { directory, x } = this.engine;
    const { d } = movement;
    const viaHost = this.device.isInline(directory.bytes[d]) || this.viaHost;
    movement.space = viaHost ? 0 : grantOffer(x, this.credits, d);
    this.engine.moveTo(row, movement.space);
    advance(this.engine.x, row);
  }

  private accept(row: number, movement: Movement): void {
    movement.waits = false;
    const { from, isPoisoned } = movement.announcement as Announcement;
    if (!isPoisoned) {
      this.beginReceive(row, movement);
      return;
    }
    const datum = this.engine.directory.info[movement.d]?.name ?? `#${movement.d}`;
    this.engine.fail(
      row,
      new HeadraceError(
        'ERR_DATUM_POISONED',
        `datum '${datum}' has no usable value on rank ${from}`,
        {
          datum,
          rank: from,
          stage: 'comm-in',
        },
      ),
    );
  }

  private beginReceive(row: number, movement: Movement): void {
    const announcement = movement.announcement as Announcement;
    const viaHost = announcement.payload !== undefined || this.viaHost;
    const { x, directory } = this.engine;
    const space = viaHost ? 0 : grantReceive(x, this.credits, movement.d, movement.wanted);
    movement.space = space;
    this.credits.inFlight[space] += roundedBytes(directory.bytes[movement.d]);
    this.engine.moveTo(row, space);
    advance(x, row);
  }

  /** The exec stage of a movement: its buffer is there and nobody uses it. */
  start(row: number): number {
    const { engine } = this;
    const { tasks, directory: dir } = engine;
    const movement = this.movementOf(row);
    movement.started = true;
    tasks.queue[row] = BODY_RUNNING;
    const space = tasks.device[row];
    const offset = dir.block[movement.d * dir.spaces + space];
    const bytes = dir.bytes[movement.d];
    if (movement.role === NetworkRole.receive) {
      const announcement = movement.announcement as Announcement;
      if (announcement.bytes !== bytes) {
        const words = `rank ${announcement.from} sent ${announcement.bytes} bytes of a datum that has ${bytes} here`;
        engine.fail(
          row,
          new HeadraceError('ERR_GRAPH_MISMATCH', words, { rank: announcement.from }),
        );
      } else if (announcement.payload === undefined) {
        this.device.fetch(announcement, movement.index, space, offset);
      } else {
        engine.backend.hostView(offset, bytes).set(announcement.payload);
        this.count('inline', bytes);
        complete(engine.x, row, Status.ok);
      }
      return Outcome.running;
    }
    const payload = this.device.isInline(bytes)
      ? engine.backend.hostView(offset, bytes)
      : undefined;
    if (this.openSend[movement.d] === movement.index) this.openSend[movement.d] = NOT_SENT;
    this.figures.sentBytes += (bytes * movement.destinations.length) / 2;
    this.device.offer(
      movement.index,
      movement.gid,
      movement.origin,
      movement.destinations,
      space,
      offset,
      bytes,
      tasks.priority[row],
      payload,
    );
    if (payload !== undefined) complete(engine.x, row, Status.ok);
    return Outcome.running;
  }

  /** The task of a movement fails. Those who wait for its datum are told; whoever reads it here finds it poisoned. */
  failing(row: number, error: HeadraceError): void {
    const movement = this.movementOf(row);
    if (movement.role === NetworkRole.receive) {
      this.failures.set(movement.d, error);
      this.engine.directory.setPoison(movement.d, Poison.writerCancelled);
      return;
    }
    if (!movement.started) this.device.poison(movement.gid, movement.origin, movement.destinations);
  }

  /** Why a datum that should have come from elsewhere is poisoned. */
  failureOf(d: number): HeadraceError | undefined {
    return this.lostError ?? this.failures.get(d);
  }

  /** The task of a movement is over or was dropped. */
  ended(row: number): void {
    const movement = this.movementOf(row);
    if (movement === undefined) return;
    const bytes = roundedBytes(this.engine.directory.bytes[movement.d]);
    if (movement.role === NetworkRole.receive) {
      this.byKey.delete(movement.key);
      if (movement.space >= 0) this.credits.inFlight[movement.space] -= bytes;
    } else if (movement.space > 0) this.credits.offered[movement.space] -= bytes;
    if (this.openSend[movement.d] === movement.index) this.openSend[movement.d] = NOT_SENT;
    this.movements[movement.index] = undefined;
    this.freeMovements.push(movement.index);
    this.live--;
  }

  /** Every thread has a core, and something from another rank may come any moment. */
  get maySpin(): boolean {
    return !this.device.port.crowded && this.expecting;
  }

  /** The engine has something to wait for. */
  get expecting(): boolean {
    return this.live > 0 || this.runs.open > 0;
  }

  poll(): boolean {
    return this.device.poll();
  }

  publish(): void {
    this.device.publish();
  }

  /** A run failed here: its offers are withdrawn, and the other ranks are told. */
  runFailed(run: RunState, error: HeadraceError): void {
    this.device.abandon((cookie) => this.movements[cookie]?.run === run.slot);
    this.runs.failed(run, error);
  }

  /**
   * A failed run is settled: every datum is again what its owner has. What the failed run should have written
   * elsewhere stays as its owner last saw it.
   */
  beginEra(era: number): void {
    this.sendCounts.clear();
    this.receiveCounts.clear();
    this.early.clear();
    for (let d = 0; d < this.gid.length; d++) {
      this.producer[d] = this.owner[d];
      this.have[d] = this.owner[d] === this.rank ? 1 : 0;
      this.forgetSends(d);
    }
    this.device.beginEra(era);
  }

  // --- The network's news -------------------------------------------------------------------------------------------

  announced(announcement: Announcement): void {
    const movement = this.byKey.get(announcement.key);
    if (movement === undefined) {
      this.early.set(announcement.key, announcement);
      return;
    }
    this.byKey.delete(announcement.key);
    movement.announcement = announcement;
    if (movement.waits) this.accept(movement.task & this.engine.tasks.mask, movement);
  }

  received(cookie: number, outcome: number, way: NetworkWay, bytes: number): void {
    const movement = this.movements[cookie];
    if (movement === undefined) return;
    const { engine } = this;
    const row = movement.task & engine.tasks.mask;
    if (outcome === NetOutcome.ok) {
      this.count(way, bytes);
      complete(engine.x, row, Status.ok);
      return;
    }
    const datum = engine.directory.info[movement.d]?.name ?? `#${movement.d}`;
    const error = outcome === NetOutcome.lost ? this.lostError : undefined;
    engine.fail(row, error ?? transferError(outcome, datum, movement.origin));
  }

  offerDone(cookie: number, outcome: number): void {
    const movement = this.movements[cookie];
    if (movement === undefined) return;
    const { engine } = this;
    const row = movement.task & engine.tasks.mask;
    if (outcome === NetOutcome.ok) complete(engine.x, row, Status.ok);
    else if (outcome === NetOutcome.cancelled) complete(engine.x, row, Status.cancelled);
    else {
      const datum = engine.directory.info[movement.d]?.name ?? `#${movement.d}`;
      engine.fail(row, this.lostError ?? transferError(outcome, datum, movement.destinations[0]));
    }
  }

  control(from: number, record: WireRecord): void {
    this.runs.take(from, record);
  }

  lost(rank: number): void {
    this.lostError = new HeadraceError(
      'ERR_PEER_LOST',
      `rank ${rank} is gone: its process ended without closing`,
      {
        rank,
        remedy: 'look at the output of that rank',
      },
    );
    const { engine } = this;
    this.runs.lost(this.lostError);
    // Reads of the program itself wait outside of any run.
    for (const movement of this.movements) {
      if (movement?.run !== INTERNAL_RUN || !movement.waits) continue;
      engine.fail(movement.task & engine.tasks.mask, this.lostError);
    }
  }

  private count(taken: NetworkWay, bytes: number): void {
    const way = taken === 'direct' && this.viaHost ? 'staged' : taken;
    this.engine.transfers.bytes[way] += bytes;
    this.figures.receivedBytes += bytes;
  }

  /** Totals so far. */
  report(): NetworkReport {
    const { messagesSent, messagesReceived } = this.device.port.counters();
    return {
      rank: this.rank,
      ranks: this.size,
      messagesSent,
      messagesReceived,
      ...this.figures,
      spilledReceives: this.credits.spilled,
      flushes: this.device.flushes,
    };
  }

  /** Joins all ranks; after that no rank needs anything from this one. */
  async close(): Promise<void> {
    this.engine.backend.alsoDue = undefined;
    this.device.publish();
    await this.device.port.close();
  }
}
