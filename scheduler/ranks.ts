// Many ranks, one program: every rank inserts the same tasks; rank-plan.ts decides which of them run here and what has
// to move, and turns every movement into a task of its own. This file runs those tasks: it starts sends and receives
// when the engine says that their turn has come, and ends them when the network says that they are over.
//
// Invariant: a movement's task ends exactly once, and with it every pin and credit that the movement held.
import { Status } from '../devices/backend.js';
import { Poison } from '../devices/directory.js';
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { NetworkDevice, transferError } from '../devices/network.js';
import { type Announcement, keepPayload, MAX_RANKS } from '../devices/network-announcement.js';
import type { NetworkListener, NetworkOptions, NetworkWay } from '../devices/network-context.js';
import { NetOutcome, type NetworkPort } from '../devices/network-port.js';
import { Wire, type WireRecord } from '../devices/network-wire.js';
import { roundedBytes } from '../devices/zone.js';
import { grantOffer, grantReceive, NetworkCredits, returnOffer } from '../stages/comm-in.js';
import { advance, complete } from '../stages/pipeline.js';
import { Outcome } from '../stages/stage.js';
import { NetworkRole } from '../stages/task-table.js';
import { type Engine, INTERNAL_RUN } from './engine.js';
import { RankAfter } from './rank-after.js';
import { RankCalls } from './rank-calls.js';
import { RankClocks } from './rank-clocks.js';
import { NOT_SENT, type RankData } from './rank-data.js';
import { type Movement, Movements } from './rank-movements.js';
import { RankPlan } from './rank-plan.js';
import { RankPulls } from './rank-pulls.js';
import { RankRuns } from './rank-runs.js';
import type { NetworkReport } from './report.js';
import type { RunState } from './run-state.js';

/** A row whose body has begun: the engine's own mark. */
const BODY_RUNNING = -2;

export class Ranks implements NetworkListener {
  readonly rank: number;
  readonly size: number;
  readonly device: NetworkDevice;
  readonly credits: NetworkCredits;
  readonly runs: RankRuns;
  readonly calls: RankCalls;
  readonly clocks: RankClocks;
  /** Set once a rank was lost or does not make the same calls; nothing works from then on. */
  lostError: HeadraceError | undefined;
  readonly plan: RankPlan;
  readonly after: RankAfter;
  /** Payload bytes sent and received. */
  private readonly figures = { sentBytes: 0, receivedBytes: 0 };
  private readonly engine: Engine;
  private readonly data: RankData;
  private readonly movements: Movements = new Movements();
  private readonly pulls: RankPulls;
  private readonly failures: Map<number, HeadraceError> = new Map();
  /** What the port was told: nothing is awaited here. */
  private isQuiet = false;
  /** A rank's process has ended. */
  isLost = false;

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
    this.device = new NetworkDevice(port, engine.backend.spaces, options, this);
    this.credits = new NetworkCredits(engine.x);
    this.runs = new RankRuns(engine, this);
    this.clocks = new RankClocks(engine, this);
    this.pulls = new RankPulls(engine, engine.x, (receive) => this.beginReceive(receive));
    this.plan = new RankPlan(
      engine,
      this.movements,
      this.pulls,
      this.runs,
      this.rank,
      this.size,
      options.treeFrom,
      (bytes) => this.device.isInline(bytes),
      this.credits.floor,
    );
    this.data = this.plan.data;
    this.after = new RankAfter(engine, this.plan, this.rank);
    this.calls = new RankCalls(engine, this, this.data);
    engine.backend.alsoDue = () => port.due();
  }

  // --- Data -------------------------------------------------------------------------------------------------------

  /** A datum was created on all ranks; from a body on this one only. */
  addDatum(d: number, owner: number): void {
    this.failures.delete(d);
    this.data.add(d, owner, this.engine.inBody);
    this.calls.created(d, owner);
  }

  /** All ranks want the latest version of a datum, in the program function of a run or outside of one. */
  read(d: number): void {
    const { calls, movements, engine } = this;
    movements.program = calls.program;
    const failure = this.runs.failureIn(movements.program);
    // Ranks leave the program of a failed run at different places: nobody may wait for another one there.
    if (failure !== undefined) {
      movements.program = 0;
      if (this.plan.isHere(d)) return;
      throw failure;
    }
    try {
      this.plan.planRead(d, engine.runs[INTERNAL_RUN] as RunState);
    } finally {
      movements.program = 0;
    }
  }

  ownerOf(d: number): number {
    return this.data.owner[d];
  }

  /** Whether this rank must have seen every writer of a datum. */
  mustKnow(d: number): boolean {
    return !this.runs.everPruned || this.data.owner[d] === this.rank;
  }

  /** A datum of this rank has no value to read; ranks that did not see that are told. */
  refuseRead(d: number): void {
    if (!this.runs.everPruned) return;
    this.plan.refuseRead(d, (gid, to) => this.device.offers.poison(gid, this.rank, to));
    this.engine.wake();
  }

  // --- The engine's hooks -------------------------------------------------------------------------------------------

  private movementOf(row: number): Movement {
    const { tasks } = this.engine;
    return this.movements.at(tasks.params[tasks.paramStart[row]]) as Movement;
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
    const run = engine.runs[movement.run] as RunState;
    const failure = this.runs.failureIn(movement.program);
    if (failure !== undefined && movement.role === NetworkRole.receive) {
      engine.fail(row, failure);
      return;
    }
    if (run.error !== undefined) {
      // It failed between planning and insertion: nobody takes what this offers, or sends what it wants.
      engine.dropTask(row, run);
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
    movement.space = this.device.isInline(directory.bytes[d]) ? 0 : grantOffer(x, this.credits, d);
    this.engine.moveTo(row, movement.space);
    advance(this.engine.x, row);
  }

  private accept(row: number, movement: Movement): void {
    movement.waits = false;
    const { from, isPoisoned, reason } = movement.announcement as Announcement;
    if (!isPoisoned) {
      if (movement.pull !== undefined) this.pulls.ready(movement.pull);
      else this.beginReceive(movement);
      return;
    }
    const datum = this.engine.directory.info[movement.d]?.name ?? `#${movement.d}`;
    const where = { datum, rank: from, stage: 'comm-in' };
    this.engine.fail(
      row,
      reason === ''
        ? new HeadraceError(
            'ERR_DATUM_POISONED',
            `datum '${datum}' has no usable value on rank ${from}`,
            where,
          )
        : new HeadraceError(
            'ERR_PEER_FAILED',
            `rank ${from} could not send datum '${datum}': ${reason}`,
            where,
          ),
    );
  }

  private beginReceive(movement: Movement): void {
    const announcement = movement.announcement as Announcement;
    const isHere = announcement.payload !== undefined;
    const { x, directory, tasks } = this.engine;
    const row = movement.task & tasks.mask;
    let space = 0;
    // Pulled inputs have their task's reservation: they take their turn on the device instead of going elsewhere.
    if (!isHere && movement.pull !== undefined) space = movement.wanted;
    else if (!isHere) space = grantReceive(x, this.credits, movement.d, movement.wanted);
    movement.space = space;
    if (movement.pull === undefined)
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
    const space = tasks.device[row];
    if (space === 0 && movement.role !== NetworkRole.receive) {
      // On a device it counts since it was granted. Who waits for room here may have nothing else to wait for now.
      engine.spaces[0].offered.add(movement.d);
      engine.spaces[0].freed = true;
    }
    if (this.lostError !== undefined) {
      // A rank was lost while this one's buffer came: nobody would ask for what it offers.
      engine.fail(row, this.lostError);
      return Outcome.running;
    }
    movement.startedAt = engine.tracer === undefined ? 0 : engine.backend.now();
    tasks.queue[row] = BODY_RUNNING;
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
        const isOwner = this.data.owner[movement.d] === this.rank;
        this.device.fetches.fetch(announcement, movement.index, space, offset, isOwner);
        if (!guards.receiveHeld) complete(engine.x, row, Status.ok);
      } else {
        engine.backend.hostView(offset, bytes).set(announcement.payload);
        this.count('inline', bytes);
        this.traceReceive(movement, 'inline', 0, 0);
        complete(engine.x, row, Status.ok);
      }
      return Outcome.running;
    }
    const payload = this.device.isInline(bytes)
      ? engine.backend.hostView(offset, bytes)
      : undefined;
    this.closeSend(movement);
    const served = this.device.offers.offer(
      movement.index,
      movement.gid,
      movement.origin,
      movement.destinations,
      movement.apart,
      space,
      offset,
      bytes,
      tasks.priority[row],
      payload,
    );
    this.figures.sentBytes += served * bytes;
    if (payload !== undefined || !guards.offerHeld) complete(engine.x, row, Status.ok);
    return Outcome.running;
  }

  /** The task of a movement fails. Those who wait for its datum are told; whoever reads it here finds it poisoned. */
  failing(row: number, error: HeadraceError): void {
    const movement = this.movementOf(row);
    if (movement.role === NetworkRole.receive) {
      this.failures.set(movement.d, error);
      if (!movement.started && movement.announcement !== undefined)
        this.device.fetches.decline(movement.announcement);
      this.engine.directory.setPoison(movement.d, Poison.writerCancelled);
      return;
    }
    if (movement.started) return;
    // Where it is the run that failed, the others are told that, and not that the datum has no value.
    if (movement.run !== INTERNAL_RUN && error.code !== 'ERR_DATUM_POISONED') return;
    // A datum that is here, or was on its way here, may have a value all the same.
    const cause = error.code === 'ERR_DATUM_POISONED' ? this.failures.get(movement.d) : error;
    const reason = cause?.code === 'ERR_DATUM_POISONED' ? '' : (cause?.message ?? '');
    for (const list of [movement.destinations, movement.apart])
      this.device.offers.poison(movement.gid, movement.origin, list, reason);
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
      if (movement.space >= 0 && movement.pull === undefined)
        this.credits.inFlight[movement.space] -= bytes;
    } else if (movement.space > 0 || movement.started)
      returnOffer(this.engine.x, movement.space, movement.d);
    this.closeSend(movement);
    this.movements.remove(movement);
  }

  /** A send takes no more destinations. */
  private closeSend({ d, index }: Movement): void {
    if (this.data.openSend[d] === index) this.data.openSend[d] = NOT_SENT;
  }

  /** Every thread has a core, and something from another rank may come any moment. */
  get maySpin(): boolean {
    return !this.device.port.crowded && this.expecting;
  }

  /** The engine has something to wait for. */
  get expecting(): boolean {
    return this.movements.live > 0 || this.runs.open > 0 || this.calls.leaving || this.mustRetry;
  }

  /** Messages that found no room have to be tried again; nobody rings when there is some. */
  get mustRetry(): boolean {
    return this.device.wire.unsent > 0 && this.lostError === undefined && guards.messageRetry;
  }

  poll(): boolean {
    return this.device.poll();
  }

  publish(): void {
    this.device.publish();
    if (this.isQuiet === !this.expecting) return;
    this.isQuiet = !this.isQuiet;
    this.device.port.setQuiet(this.isQuiet);
  }

  /** A run failed here: its offers are withdrawn, and the other ranks are told. */
  runFailed(run: RunState, error: HeadraceError): void {
    this.device.offers.abandon((cookie) => this.movements.at(cookie)?.run === run.slot);
    this.pulls.forget(run);
    for (const movement of [...this.movements.all()]) {
      if (movement.run !== run.slot || !movement.refused) continue;
      movement.refused = false;
      complete(this.engine.x, movement.task & this.engine.tasks.mask, Status.cancelled);
    }
    this.runs.failed(run, error);
  }

  /**
   * A failed run is settled: every datum is again what its owner has. What the failed run should have written
   * elsewhere stays as its owner last saw it.
   */
  beginEra(era: number): void {
    this.movements.forgetEarly();
    this.plan.beginEra();
    this.device.beginEra(era);
  }

  // --- The network's news -------------------------------------------------------------------------------------------

  announced(announcement: Announcement): void {
    const movement = this.movements.announced(announcement);
    if (movement?.waits === true) this.accept(movement.task & this.engine.tasks.mask, movement);
    if (movement?.started !== true) keepPayload(announcement);
  }

  received(
    cookie: number,
    outcome: number,
    way: NetworkWay,
    bytes: number,
    start: number,
    end: number,
  ): void {
    const movement = this.movements.at(cookie);
    if (movement === undefined) return;
    const { engine } = this;
    const row = movement.task & engine.tasks.mask;
    if (outcome === NetOutcome.ok) {
      this.count(way, bytes);
      this.traceReceive(movement, way, start, end);
      complete(engine.x, row, Status.ok);
      return;
    }
    const run = engine.runs[movement.run];
    if (outcome === NetOutcome.cancelled && movement.run !== INTERNAL_RUN) {
      // A rank withdraws offers because its run failed. If that began on a third rank, its message may come later.
      if (run?.error === undefined) movement.refused = true;
      else complete(engine.x, row, Status.cancelled);
      return;
    }
    const datum = engine.directory.info[movement.d]?.name ?? `#${movement.d}`;
    const error = outcome === NetOutcome.lost ? this.lostError : undefined;
    engine.fail(row, error ?? transferError(outcome, datum, movement.origin));
  }

  offerDone(cookie: number, outcome: number): void {
    const movement = this.movements.at(cookie);
    if (movement === undefined) return;
    const { engine } = this;
    const row = movement.task & engine.tasks.mask;
    if (outcome === NetOutcome.ok) complete(engine.x, row, Status.ok);
    else if (outcome === NetOutcome.cancelled) complete(engine.x, row, Status.cancelled);
    else {
      const datum = engine.directory.info[movement.d]?.name ?? `#${movement.d}`;
      engine.fail(
        row,
        this.lostError ??
          transferError(outcome, datum, movement.destinations[0] ?? movement.apart[0]),
      );
    }
  }

  control(from: number, record: WireRecord): void {
    if (record.kind === Wire.clock || record.kind === Wire.time) this.clocks.take(from, record);
    else if (record.kind >= Wire.waiting) this.calls.take(from, record);
    else this.runs.take(from, record);
  }

  lost(rank: number): void {
    this.isLost = true;
    this.lostError = new HeadraceError(
      'ERR_PEER_LOST',
      `rank ${rank} is gone: its process ended without closing`,
      {
        rank,
        remedy: 'look at the output of that rank',
      },
    );
    const { engine } = this;
    // Without the lost rank no two others can agree any more on who has closed what of whom.
    engine.backend.keepShared();
    this.runs.lost(this.lostError);
    this.failReads(this.lostError);
    this.calls.lost();
  }

  /**
   * The ranks are out of step: nothing that this rank waits for will come. What others ask for is refused, so that
   * requests under way end. True when the program hears of it by something that rejects.
   */
  breaksOff(error: HeadraceError): boolean {
    if (this.lostError !== undefined) return true;
    this.lostError = error;
    const { engine, movements } = this;
    const rejected = this.runs.lost(error) + this.failReads(error);
    this.device.offers.abandon(() => true);
    for (const movement of [...movements.all()]) {
      if (!movement.refused) continue;
      movement.refused = false;
      complete(engine.x, movement.task & engine.tasks.mask, Status.cancelled);
    }
    return rejected > 0;
  }

  /** Reads of the program itself wait outside of any run; those in the program function of run `program`, or all. */
  failReads(error: HeadraceError, program?: number): number {
    const { engine } = this;
    let failed = 0;
    for (const movement of [...this.movements.all()]) {
      if (movement.run !== INTERNAL_RUN || !movement.waits) continue;
      if (program !== undefined && movement.program !== program) continue;
      engine.fail(movement.task & engine.tasks.mask, error);
      failed++;
    }
    return failed;
  }

  /** What the program function of a failed run offered to others is offered no more: not all of them came to read it. */
  withdrawReads(program: number): void {
    this.device.offers.abandon((cookie) => this.movements.at(cookie)?.program === program);
  }

  sent(
    cookie: number,
    to: number,
    message: number,
    way: NetworkWay,
    bytes: number,
    start: number,
    end: number,
  ): void {
    const movement = this.movements.at(cookie);
    if (movement === undefined) return;
    const space = this.engine.tasks.device[movement.task & this.engine.tasks.mask];
    const began = start === 0 ? movement.startedAt : start;
    this.engine.tracer?.sent(movement, space, to, message, way, bytes, began, end);
  }

  private traceReceive(movement: Movement, way: NetworkWay, start: number, end: number): void {
    const { from, offer, bytes } = movement.announcement as Announcement;
    const space = this.engine.tasks.device[movement.task & this.engine.tasks.mask];
    const began = start === 0 ? movement.startedAt : start;
    this.engine.tracer?.received(movement, space, from, offer, way, bytes, began, end);
  }

  private count(way: NetworkWay, bytes: number): void {
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
      ...this.plan.figures,
      spilledReceives: this.credits.spilled,
      flushes: this.device.fetches.flushes,
    };
  }

  /** Joins all ranks; after that no rank needs anything from this one. */
  async close(): Promise<void> {
    await this.calls.leaves();
    this.calls.stop();
    this.engine.backend.alsoDue = undefined;
    this.device.publish();
    await this.device.port.close();
  }
}
