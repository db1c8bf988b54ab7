// Many ranks, one program: every rank inserts the same tasks. plan.ts decides which tasks run here and which data move,
// and turns each movement into a task of its own. This file runs those tasks: it starts sends and receives when the
// engine releases them, and ends them when the network reports their end.
//
// Invariant: a movement's task ends exactly once, and with it every pin and credit that the movement held.

import { Status } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, NO_QUEUE, type SpaceId } from '../../devices/handles.js';
import { Poison } from '../../devices/memory/directory.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import {
  type Announcement,
  keepPayload,
  laneEra,
  MAX_RANKS,
  messageNumber,
} from '../../devices/network/announcement.js';
import {
  type NetworkListener,
  type NetworkOptions,
  type NetworkTimes,
  type NetworkWay,
  NO_TIMES,
} from '../../devices/network/context.js';
import { NetworkDevice, transferError } from '../../devices/network/device.js';
import { NetOutcome, type NetworkPort } from '../../devices/network/port.js';
import { Wire, type WireRecord } from '../../devices/network/wire.js';
import { grantOffer, grantReceive, NetworkCredits, returnOffer } from '../../stages/comm-in.js';
import type { Parcel } from '../../stages/parcel.js';
import { advance } from '../../stages/pipeline.js';
import { Outcome } from '../../stages/stage.js';
import { Execution, NetworkRole, TaskStage } from '../../stages/task-table.js';
import type { Payload } from '../engine/observer.js';
import type { NetworkReport, Remote } from '../engine/remote.js';
import { INTERNAL_RUN, type RunState } from '../engine/run-state.js';
import { RankRuns } from './agreement.js';
import type { SharedObject } from './call-log.js';
import { RankCalls } from './calls.js';
import { RankClocks } from './clocks.js';
import { RankAfter } from './cross-rank-order.js';
import { NO_GID, NOT_SENT, type RankData } from './data.js';
import type { Doubt } from './eras.js';
import type { RankHost } from './host.js';
import type { RankLinks } from './links.js';
import { type Movement, Movements } from './movements.js';
import { RankPlan } from './plan.js';
import { RankPulls } from './pull-admission.js';
import { SmallMessages } from './small-messages.js';

export class Ranks implements NetworkListener, RankLinks, Remote {
  readonly rank: number;
  readonly size: number;
  readonly device: NetworkDevice;
  readonly credits: NetworkCredits;
  readonly runs: RankRuns;
  readonly calls: RankCalls;
  readonly clocks: RankClocks;
  /** Set once a rank was lost or made different calls; after that no communication is possible. */
  lostError: HeadraceError | undefined;
  readonly plan: RankPlan;
  readonly after: RankAfter;
  /** Payload bytes sent and received. */
  private readonly figures = { sentBytes: 0, receivedBytes: 0 };
  private readonly engine: RankHost;
  private readonly data: RankData;
  private readonly movements: Movements = new Movements();
  private readonly pulls: RankPulls;
  private readonly small: SmallMessages;
  /** By datum: the receive that left it without a value, and the reason. */
  private readonly failures: Map<number, { readonly by: number; readonly error: HeadraceError }> =
    new Map();
  /** The last value that the port received: whether this rank waits for no other. */
  private isQuiet = false;
  /** Announcements of the present era that belong to no call, until its first common call is known. */
  private readonly unsure: Announcement[] = [];
  /** A rank's process has ended. */
  isLost = false;

  constructor(engine: RankHost, port: NetworkPort, options: NetworkOptions) {
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
    this.small = new SmallMessages(engine, this.credits, (bytes) => this.device.isInline(bytes));
    this.runs = new RankRuns(engine, this);
    this.clocks = new RankClocks(engine, this);
    this.pulls = new RankPulls(engine, engine.x, (receive) => this.beginReceive(receive));
    this.plan = new RankPlan(
      { engine, movements: this.movements, pulls: this.pulls, runs: this.runs },
      {
        rank: this.rank,
        size: this.size,
        treeFrom: options.treeFrom,
        isInline: (bytes) => this.device.isInline(bytes),
        onLane: (d, run, call) => this.small.carries(d, run, call),
        largest: this.credits.floor,
      },
    );
    this.data = this.plan.data;
    this.after = new RankAfter(engine, this.plan, this.rank);
    this.calls = new RankCalls(engine, this, this.data);
    engine.backend.alsoDue = () => port.due();
  }

  // --- Data -------------------------------------------------------------------------------------------------------

  /** A datum was created on all ranks; a body creates it on this one only. */
  addDatum(d: DatumId, owner: number): void {
    this.addShared(d, owner, this.engine.inBody ? NO_GID : this.data.reserve(1));
    this.calls.created(d, owner);
  }

  /** Names for `count` data that every rank may make later (`addShared`); returns the first. */
  share(count: number, of: SharedObject): number {
    this.calls.shared(count, of);
    return this.data.reserve(count);
  }

  /** This rank makes a datum with a name from `share`. */
  addShared(d: DatumId, owner: number, gid: number): void {
    this.failures.delete(d);
    const { floor } = this.credits;
    floor[HOST] = Math.max(floor[HOST], roundedBytes(this.engine.directory.bytes[d]));
    this.data.add(d, owner, gid);
  }

  /**
   * The program reads or restores a datum, in the program function of a run or outside of one. Undefined: every rank makes
   * the call in the same era (eras.ts).
   * @throws HeadraceError the failure of a run that is not settled; `ERR_PEER_FAILED`; `ERR_PEER_LOST`
   */
  uses(d: DatumId): Doubt | undefined {
    if (this.data.gid[d] === NO_GID) return undefined;
    // The loss failed the open runs, and their settlement never comes: the plans differ for ever (eras.ts).
    if (this.lostError !== undefined && guards.readsAfterLoss) throw this.lostError;
    const { program } = this.calls;
    const name = this.nameOf(d);
    // Ranks leave the program of a failed run at different points, so their plans are not equal.
    const failure =
      program === 0 ? this.runs.failing(name, this.position) : this.runs.failureIn(program);
    if (failure !== undefined) throw failure;
    return this.runs.eras.doubt(this.position, name);
  }

  /** Position of the program's last call; in the program function of a run, that of the run. */
  private get position(): number {
    const { calls, runs } = this;
    return calls.program === 0 ? calls.length - 1 : runs.positionOf(calls.program);
  }

  /** All ranks want the latest version of a datum. */
  read(d: DatumId): void {
    const { calls, movements, engine } = this;
    movements.program = calls.program;
    try {
      this.plan.planRead(d, engine.runs[INTERNAL_RUN] as RunState, this.position);
    } finally {
      movements.program = 0;
    }
  }

  /** The owner takes the latest version of a datum as its value again. */
  restore(d: DatumId): void {
    this.plan.planRestore(d, this.engine.runs[INTERNAL_RUN] as RunState, this.position);
  }

  private nameOf(d: DatumId): string {
    return this.engine.directory.info[d]?.name ?? `#${d}`;
  }

  ownerOf(d: DatumId): number {
    return this.data.owner[d];
  }

  /** Whether this rank must have seen every writer of a datum. */
  mustKnow(d: DatumId): boolean {
    return !this.runs.missesWrites || this.data.owner[d] === this.rank;
  }

  /** A datum of this rank has no value to read. Ranks that did not see this get a message. */
  refuseRead(d: DatumId): void {
    if (!this.runs.missesWrites) return;
    this.plan.refuseRead(d, this.position, (gid, to) =>
      this.device.offers.poison(gid, this.rank, this.movements.era, to),
    );
    this.engine.wake();
  }

  // --- The engine's hooks -------------------------------------------------------------------------------------------

  private movementOf(row: number): Movement {
    const { tasks } = this.engine;
    return this.movements.at(tasks.params[tasks.paramStart[row]]) as Movement;
  }

  /** A movement's task has no predecessors left; the engine counted it on the host. */
  released(row: number): void {
    const { engine } = this;
    const movement = this.movementOf(row);
    movement.task = engine.tasks.idOf(row);
    engine.tasks.target[row] = NO_QUEUE;
    if (this.lostError !== undefined) {
      engine.fail(row, this.lostError);
      return;
    }
    const run = engine.runs[movement.run] as RunState;
    const failure = this.failureOfRead(movement);
    if (failure !== undefined) {
      engine.fail(row, failure);
      return;
    }
    if (this.movements.isLeftBehind(movement) || this.runs.eras.isTorn(movement.call)) {
      engine.fail(row, this.leftBehind(movement));
      return;
    }
    if (run.error !== undefined) {
      // It failed between planning and insertion: no rank takes its offer, and no rank sends to its receive.
      engine.dropTask(row, run);
      return;
    }
    switch (movement.role) {
      case NetworkRole.receive:
        if (movement.announcement !== undefined) this.accept(row, movement);
        else if (movement.onLane) this.commandReceive(row, movement);
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

  /** Sends start from the space of the datum; small ones from the host, because their bytes go into the message. */
  private beginSend(row: number, movement: Movement): void {
    const { directory, x, tasks } = this.engine;
    const { d } = movement;
    if (movement.onLane) tasks.target[row] = this.small.sendLane();
    movement.space = this.device.isInline(directory.bytes[d])
      ? HOST
      : grantOffer(x, this.credits, d);
    this.engine.moveTo(row, movement.space);
    advance(this.engine.x, row);
  }

  /** A receive on a lane begins before its version comes; without a lane or room it waits. */
  private commandReceive(row: number, movement: Movement): void {
    const { tasks, x } = this.engine;
    const lane = this.small.receiveLane(row);
    movement.waits = lane === NO_QUEUE;
    if (movement.waits) {
      x.waitForReceive(row);
      return;
    }
    tasks.target[row] = lane;
    movement.space = HOST;
    advance(x, row);
  }

  commandHeld(): boolean {
    let row = this.small.next();
    if (row < 0) return false;
    for (; row >= 0; row = this.small.next()) this.commandReceive(row, this.movementOf(row));
    return true;
  }

  parcel(row: number): Parcel | undefined {
    const { engine } = this;
    const movement = this.movementOf(row);
    if (movement.parcel !== undefined) return movement.parcel;
    if (this.lostError !== undefined) engine.fail(row, this.lostError);
    else if (movement.announcement !== undefined) engine.fail(row, this.refusal(movement));
    else if (movement.era !== this.movements.era) engine.ended(row, Status.cancelled);
    else {
      movement.started = true;
      this.closeSend(movement);
      movement.startedAt = engine.x.tracing ? engine.backend.now() : 0;
      movement.parcel = this.small.parcelOf(movement);
    }
    return movement.parcel;
  }

  commanded(row: number): void {
    const { d, parcel } = this.movementOf(row);
    this.device.port.commanded();
    if (parcel?.isSend === true)
      this.figures.sentBytes += (this.engine.directory.bytes[d] * parcel.destinations.length) / 2;
  }

  private accept(row: number, movement: Movement): void {
    movement.waits = false;
    const { isPoisoned } = movement.announcement as Announcement;
    if (isPoisoned) this.engine.fail(row, this.refusal(movement));
    else if (movement.pull !== undefined) this.pulls.ready(movement.pull);
    else this.beginReceive(movement);
  }

  /** The rank that has the value cannot send it. */
  private refusal(movement: Movement): HeadraceError {
    const { from, reason } = movement.announcement as Announcement;
    const datum = this.engine.directory.info[movement.d]?.name ?? `#${movement.d}`;
    const where = { datum, rank: from, stage: 'comm-in' };
    return reason === ''
      ? new HeadraceError(
          'ERR_DATUM_POISONED',
          `datum '${datum}' has no usable value on rank ${from}`,
          where,
        )
      : new HeadraceError(
          'ERR_PEER_FAILED',
          `rank ${from} could not send datum '${datum}': ${reason}`,
          where,
        );
  }

  private beginReceive(movement: Movement): void {
    const announcement = movement.announcement as Announcement;
    const isHere = announcement.payload !== undefined;
    const { x, directory, tasks } = this.engine;
    const row = movement.task & tasks.mask;
    let space: SpaceId = HOST;
    // The reservation of their task covers pulled inputs: they wait for the device instead of going to another space.
    if (!isHere && movement.pull !== undefined) space = movement.wanted;
    else if (!isHere) space = grantReceive(x, this.credits, movement.d, movement.wanted);
    movement.space = space;
    if (movement.pull === undefined)
      this.credits.inFlight[space] += roundedBytes(directory.bytes[movement.d]);
    this.engine.moveTo(row, space);
    advance(x, row);
  }

  /** The exec stage of a movement: its buffer is there and no other task uses it. */
  start(row: number): number {
    const { observer } = this.engine;
    observer?.movementStarts(row);
    const outcome = this.startNow(row);
    observer?.movementStarted(row);
    return outcome;
  }

  private startNow(row: number): number {
    const { engine } = this;
    const { tasks, directory: dir } = engine;
    const movement = this.movementOf(row);
    movement.started = true;
    const space = tasks.device[row];
    if (space === 0 && movement.role !== NetworkRole.receive) {
      // On a device it counts since it was granted. A task that waits for room here may have nothing else to wait for
      // now.
      engine.spaces[0].offered.add(movement.d);
      engine.spaces[0].wakeLine();
    }
    if (this.lostError !== undefined) {
      // A rank was lost while this one's buffer came: no rank would ask for the offer.
      engine.fail(row, this.lostError);
      return Outcome.running;
    }
    movement.startedAt = engine.x.tracing ? engine.backend.now() : 0;
    tasks.execution[row] = Execution.movement;
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
        if (!guards.receiveHeld) engine.ended(row, Status.ok);
      } else {
        engine.backend.hostView(offset, bytes).set(announcement.payload);
        this.count('inline', bytes);
        this.traceReceive(movement, 'inline', NO_TIMES);
        engine.ended(row, Status.ok);
      }
      return Outcome.running;
    }
    this.closeSend(movement);
    if (movement.era !== this.movements.era) {
      // Its era is over: every rank would decline.
      engine.ended(row, Status.cancelled);
      return Outcome.running;
    }
    const payload = this.device.isInline(bytes)
      ? engine.backend.hostView(offset, bytes)
      : undefined;
    const { index: cookie, gid, origin, era, destinations, apart } = movement;
    const served = this.device.offers.offer({
      cookie,
      gid,
      origin,
      era,
      destinations,
      apart,
      space,
      offset,
      bytes,
      priority: tasks.priority[row],
      payload,
    });
    this.figures.sentBytes += served * bytes;
    if (payload !== undefined || !guards.offerHeld) engine.ended(row, Status.ok);
    return Outcome.running;
  }

  /** The task of a movement fails. Ranks that wait for its datum get a message; local readers find the datum poisoned. */
  failing(row: number, error: HeadraceError): void {
    const movement = this.movementOf(row);
    if (movement.role === NetworkRole.receive) {
      this.failures.set(movement.d, { by: this.engine.tasks.idOf(row), error });
      this.engine.directory.setPoison(movement.d, Poison.writerCancelled);
      return;
    }
    if (movement.started) return;
    // If the run failed, the other ranks learn of this failure, not that the datum has no value.
    if (movement.run !== INTERNAL_RUN && error.code !== 'ERR_DATUM_POISONED') return;
    // A datum that is here, or was on its way here, may have a value nevertheless.
    const cause = error.code === 'ERR_DATUM_POISONED' ? this.receiveFailure(movement.d) : error;
    const reason = cause?.code === 'ERR_DATUM_POISONED' ? '' : (cause?.message ?? '');
    for (const list of [movement.destinations, movement.apart])
      this.device.offers.poison(movement.gid, movement.origin, movement.era, list, reason);
  }

  /** The reason why a datum that should have come from another rank is poisoned. */
  failureOf(d: DatumId): HeadraceError | undefined {
    return this.lostError ?? this.receiveFailure(d);
  }

  /** The failure of a datum's last receive, unless another task has determined the datum's state since then. */
  private receiveFailure(d: DatumId): HeadraceError | undefined {
    const failure = this.failures.get(d);
    return failure?.by === this.engine.directory.poisonedBy[d] ? failure?.error : undefined;
  }

  /** The task of a movement is over or was dropped. */
  ended(row: number): void {
    const movement = this.movementOf(row);
    if (movement === undefined) return;
    const bytes = roundedBytes(this.engine.directory.bytes[movement.d]);
    if (movement.onLane) this.leaveLane(row, movement);
    else if (movement.role === NetworkRole.receive) {
      if (!movement.started && movement.announcement !== undefined)
        this.device.fetches.decline(movement.announcement);
      if (movement.space >= 0 && movement.pull === undefined)
        this.credits.inFlight[movement.space] -= bytes;
    } else if (movement.space > 0 || movement.started)
      returnOffer(this.engine.x, movement.space, movement.d);
    this.closeSend(movement);
    this.movements.remove(movement);
  }

  /** The send or receive of a small version is over, or was dropped. */
  private leaveLane(row: number, movement: Movement): void {
    const { tasks, backend, observer } = this.engine;
    const { d, role, origin, parcel, space } = movement;
    const isReceive = role === NetworkRole.receive;
    if (isReceive && space === HOST) this.small.giveBack(tasks.target[row], d);
    if (tasks.execution[row] !== Execution.command) return;
    const lane = tasks.queue[row];
    const seq = tasks.seq[row];
    if (parcel === undefined || backend.status(lane, seq) !== Status.ok) return;
    const bytes = this.engine.directory.bytes[d];
    if (isReceive) this.count('inline', bytes);
    if (observer === undefined) return;
    const times = { start: backend.startOf(lane, seq), end: backend.endOf(lane, seq) };
    if (isReceive) {
      const message = messageNumber(parcel.key);
      this.tell(movement, 'received', { peer: origin, message, way: 'inline', bytes }, times);
    } else
      for (let i = 0; i < parcel.destinations.length; i += 2) {
        const [peer, key] = parcel.destinations.slice(i, i + 2);
        const message = messageNumber(key);
        this.tell(movement, 'sent', { peer, message, way: 'inline', bytes }, times);
      }
  }

  /** The send takes no more destinations. */
  private closeSend({ d, index }: Movement): void {
    if (this.data.openSend[d] === index) this.data.openSend[d] = NOT_SENT;
  }

  /** Every thread has a core, and a message from another rank may come at any moment. */
  get maySpin(): boolean {
    return !this.device.port.crowded && this.expecting;
  }

  /** The engine has something to wait for. */
  get expecting(): boolean {
    const { movements, runs, calls } = this;
    return (
      movements.live > 0 || runs.open > 0 || runs.eras.isOpen || calls.leaving || this.mustRetry
    );
  }

  /** Messages that found no room must be sent again; nothing wakes the engine when room appears. */
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

  /** A run failed on this rank: its offers are withdrawn, and the other ranks get a message. */
  runFailed(run: RunState, error: HeadraceError): void {
    this.device.offers.withdraw((cookie) => this.movements.at(cookie)?.run === run.slot);
    this.pulls.forget(run);
    for (const movement of [...this.movements.all()]) {
      if (movement.run !== run.slot || !movement.refused) continue;
      movement.refused = false;
      this.engine.ended(movement.task & this.engine.tasks.mask, Status.cancelled);
    }
    this.runs.failed(run, error);
    for (const movement of [...this.movements.all()]) {
      // A rank may still read its copy. Later writers wait for the send, and the run does not.
      const row = movement.task & this.engine.tasks.mask;
      const isHeld = movement.role !== NetworkRole.receive && movement.started && !movement.onLane;
      // Not the send whose own failure fails the run: it is ending.
      const isLive = this.engine.tasks.stage[row] === TaskStage.exec;
      if (movement.run !== run.slot || !isHeld || !isLive) continue;
      movement.run = INTERNAL_RUN;
      this.engine.outlives(row, run);
    }
  }

  /**
   * A failed run is settled: every datum has its owner's value again. Data that the failed run should have written
   * elsewhere keep the owner's last version. Reads of the program may still be under way. Reads without an announcement
   * end soon with the error of the failed run (`dropTorn`). Every rank takes or declines the other offers at its own time.
   */
  beginEra(era: number): void {
    const { movements, device } = this;
    const left = [...movements.beginEra(era), ...this.unsure.splice(0)];
    for (const announcement of left) device.fetches.decline(announcement);
    this.plan.beginEra();
    device.port.beginEra(laneEra(era));
    device.beginEra(era);
  }

  /** Calls before `first` are torn (eras.ts): not all ranks take part in their transfers. */
  dropTorn(first: number): void {
    const { movements, device, engine } = this;
    for (const announcement of this.unsure.splice(0)) this.announced(announcement);
    for (const announcement of movements.takeEarly(first)) device.fetches.decline(announcement);
    for (const movement of [...movements.all()]) {
      if (movement.waits && this.runs.eras.isTorn(movement.call))
        engine.fail(movement.task & engine.tasks.mask, this.leftBehind(movement));
    }
  }

  private leftBehind({ d, origin }: Movement): HeadraceError {
    return this.runs.tooLate(this.nameOf(d), origin);
  }

  // --- The network's news -------------------------------------------------------------------------------------------

  announced(announcement: Announcement): void {
    const { runs, movements } = this;
    if (runs.eras.isUnsure(announcement.call)) {
      keepPayload(announcement);
      this.unsure.push(announcement);
      return;
    }
    const isLate = runs.isFailing && !movements.isExpected(announcement);
    if (isLate || runs.eras.isTorn(announcement.call)) {
      this.device.fetches.decline(announcement);
      return;
    }
    const movement = this.movements.announced(announcement);
    if (movement?.waits === true) this.accept(movement.task & this.engine.tasks.mask, movement);
    else if (movement?.onLane === true && movement.started) this.refused(movement);
    if (movement?.started !== true) keepPayload(announcement);
  }

  /** The version of a commanded receive will not come: its run fails, and with it the command ends. */
  private refused(movement: Movement): void {
    const { engine } = this;
    const error = this.refusal(movement);
    this.failures.set(movement.d, { by: movement.task, error });
    const run = engine.runs[movement.run];
    if (run !== undefined) engine.failRun(run, error);
  }

  received(
    cookie: number,
    outcome: number,
    way: NetworkWay,
    bytes: number,
    times: NetworkTimes,
  ): void {
    const movement = this.movements.at(cookie);
    if (movement === undefined) return;
    const { engine } = this;
    const row = movement.task & engine.tasks.mask;
    if (outcome === NetOutcome.ok) {
      this.count(way, bytes);
      this.traceReceive(movement, way, times);
      engine.ended(row, Status.ok);
      return;
    }
    const run = engine.runs[movement.run];
    if (outcome === NetOutcome.cancelled && movement.run !== INTERNAL_RUN) {
      // A rank withdraws offers because its run failed. If the failure began on a third rank, that rank's message may
      // come later.
      if (run?.error === undefined) movement.refused = true;
      else engine.ended(row, Status.cancelled);
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
    if (outcome === NetOutcome.ok) engine.ended(row, Status.ok);
    else if (outcome === NetOutcome.cancelled) engine.ended(row, Status.cancelled);
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
    else if (record.kind >= Wire.waiting && record.kind <= Wire.left) this.calls.take(from, record);
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
    // Without the lost rank, no two other ranks can agree on the closed handles of each other's memory.
    engine.backend.keepShared();
    this.runs.lost(this.lostError);
    this.failReads(this.lostError);
    this.calls.lost();
  }

  /**
   * The ranks are out of step: this rank will get nothing for which it waits. Requests of other ranks are refused, so
   * that requests under way end. True if a promise of the program rejects because of it.
   */
  breaksOff(error: HeadraceError): boolean {
    if (this.lostError !== undefined) return true;
    this.lostError = error;
    const { engine, movements } = this;
    const rejected = this.runs.lost(error) + this.failReads(error);
    this.device.offers.abandon();
    for (const movement of [...movements.all()]) {
      if (!movement.refused) continue;
      movement.refused = false;
      engine.ended(movement.task & engine.tasks.mask, Status.cancelled);
    }
    return rejected > 0;
  }

  /** The failure because of which no rank may send the value of a read or restore. */
  private failureOfRead({
    role,
    program,
    call,
    d,
    era,
    announcement,
  }: Movement): HeadraceError | undefined {
    if (role !== NetworkRole.receive || call < 0) return undefined;
    if (program !== 0) return this.runs.failureIn(program);
    if (announcement !== undefined || era !== this.movements.era) return undefined;
    return this.runs.failing(this.nameOf(d), call);
  }

  /**
   * A run has failed that began here. Until the next era no further receive is planned: offers for which there is none are
   * declined. Reads after the run end, because other ranks may reject them.
   */
  failLaterReads(): void {
    const { engine } = this;
    if (!this.runs.isFailing) return;
    for (const announcement of this.movements.takeEarly())
      this.device.fetches.decline(announcement);
    for (const movement of [...this.movements.all()]) {
      const error = movement.waits ? this.failureOfRead(movement) : undefined;
      if (error !== undefined) engine.fail(movement.task & engine.tasks.mask, error);
    }
  }

  /** Rejects all reads of the program that wait for other ranks; returns their number. */
  private failReads(error: HeadraceError): number {
    const { engine } = this;
    let failed = 0;
    for (const movement of [...this.movements.all()]) {
      if (movement.run !== INTERNAL_RUN || !movement.waits) continue;
      engine.fail(movement.task & engine.tasks.mask, error);
      failed++;
    }
    return failed;
  }

  sent(
    cookie: number,
    to: number,
    message: number,
    way: NetworkWay,
    bytes: number,
    times: NetworkTimes,
  ): void {
    const movement = this.movements.at(cookie);
    if (movement === undefined) return;
    this.tell(movement, 'sent', { peer: to, message, way, bytes }, times);
  }

  private traceReceive(movement: Movement, way: NetworkWay, times: NetworkTimes): void {
    const { from, offer, bytes } = movement.announcement as Announcement;
    this.tell(movement, 'received', { peer: from, message: offer, way, bytes }, times);
  }

  /** Tells the observer of a message that has arrived, here or at the peer. */
  private tell(
    { d, task, startedAt }: Movement,
    event: 'sent' | 'received',
    message: Pick<Payload, 'peer' | 'message' | 'way' | 'bytes'>,
    { start, end }: NetworkTimes,
  ): void {
    const { observer, tasks } = this.engine;
    if (observer === undefined) return;
    const space = tasks.device[task & tasks.mask];
    observer[event]({ d, task, space, ...message, start: start === 0 ? startedAt : start, end });
  }

  private count(way: NetworkWay, bytes: number): void {
    this.engine.transfers.bytes[way] += bytes;
    this.figures.receivedBytes += bytes;
  }

  blocks(): void {
    this.calls.blocks();
  }

  runEnded(run: RunState): void {
    this.runs.ended(run);
  }

  waits(): string[] {
    const lines: string[] = [];
    if (this.calls.leaving)
      lines.push('this rank has closed its runtime and waits for the others to close theirs');
    if (this.runs.open > 0) lines.push(`${this.runs.open} of the runs have not ended on all ranks`);
    return lines;
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

  /** Joins all ranks; afterwards no rank needs anything from this one. */
  async close(): Promise<void> {
    await this.calls.leaves();
    this.calls.stop();
    this.engine.backend.alsoDue = undefined;
    this.device.publish();
    await this.device.port.close();
  }
}
