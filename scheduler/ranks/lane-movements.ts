// Sends and receives as commands of lanes: when the stages get them, and what their end means. rank-lanes.ts chooses the
// lanes; stages/exec-message.ts writes the commands.
//
// A send or receive is handed to the stages with its parcel, which says how its version travels. From then on it can be
// ended until its command is written: by news that it has no version, by the loss of a rank, by the end of its era. So
// no stage asks whether it is still wanted.
//
// If a rank has GPUs, the receive of a long version takes a lane and memory on a GPU where that is granted (`receiveOnDevice`), and leaves
// open how the bytes come. Otherwise it waits for its announcement. Then it takes memory on a GPU or on the host (`Receives.begin`), and a
// lane after that.
//
// The command of a long version only announces it. Its send holds the copy until the message layer says that no rank needs
// the bytes any more (`departed`). Receives end as commands, whatever the length.
//
// Versions for a `read` belong to no run that could be cancelled. So their sends are commanded when the writer is over
// (sends.ts), no queue waits for their receives (scheduler/engine/arrivals.ts), and a receive that gets no version is
// withdrawn.
//
// Invariants:
// - a send or receive that was handed over is wanted when its command is written: what makes it unwanted ends it at once;
// - a send that has announced a version ends with its last `departed`, also when its run has failed;
// - a receive of a `read` that is withdrawn has the reason noted, and its datum has no value then.

import { Status } from '../../devices/backend.js';
import type { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { HOST, NO_QUEUE, type QueueId } from '../../devices/handles.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import { type NetworkDevice, transferError } from '../../devices/network/device.js';
import { laneEra, messageNumber } from '../../devices/network/keys.js';
import type { NetworkTimes, NetworkWay } from '../../devices/network/listener.js';
import { type AnnouncedPlace, NetOutcome, WireMode } from '../../devices/network/port.js';
import { arrivalOf, MODES, WAYS } from '../../devices/network/ways.js';
import { grantAhead, type NetworkCredits, returnOffer } from '../../stages/comm-in.js';
import type { Parcel, ParcelArrival } from '../../stages/parcel.js';
import { advance } from '../../stages/pipeline.js';
import { Execution, isCommand, NetworkRole } from '../../stages/task-table.js';
import type { Payload } from '../engine/observer.js';
import { INTERNAL_RUN, type RunState } from '../engine/run-state.js';
import type { RankData } from './data.js';
import type { RankHost } from './host.js';
import type { RankLoss } from './loss.js';
import type { Movement, Movements } from './movements.js';
import type { RankLanes } from './rank-lanes.js';
import type { Refusals } from './refusals.js';
import type { RankTraffic } from './traffic.js';

const MOST_EXPECTED = 2 ** 30;

/** The parts that movements on lanes use. */
interface LaneParts {
  readonly engine: RankHost;
  readonly device: NetworkDevice;
  readonly movements: Movements;
  readonly rank: number;
  readonly credits: NetworkCredits;
  readonly data: Pick<RankData, 'closeSend' | 'owner'>;
  readonly rankLanes: RankLanes;
  readonly refusals: Refusals;
  readonly traffic: RankTraffic;
  readonly loss: Pick<RankLoss, 'error'>;
}

export class LaneMovements {
  private readonly engine: RankHost;
  private readonly device: NetworkDevice;
  private readonly movements: Movements;
  private readonly rank: number;
  private readonly credits: NetworkCredits;
  private readonly data: Pick<RankData, 'closeSend' | 'owner'>;
  private readonly rankLanes: RankLanes;
  private readonly refusals: Refusals;
  private readonly traffic: RankTraffic;
  private readonly loss: Pick<RankLoss, 'error'>;
  /** Receives that get news of their version, by the number of the news; and the next number. */
  private readonly expected: Map<number, Movement> = new Map();
  private nextExpected = 1;

  constructor(parts: LaneParts) {
    this.engine = parts.engine;
    this.device = parts.device;
    this.movements = parts.movements;
    this.rank = parts.rank;
    this.credits = parts.credits;
    this.data = parts.data;
    this.rankLanes = parts.rankLanes;
    this.refusals = parts.refusals;
    this.traffic = parts.traffic;
    this.loss = parts.loss;
  }

  /** The engine gets the news when the version of a receive that waits for them has come, or its announcement. */
  expect(movement: Movement): void {
    const { era, origin, key } = movement;
    movement.expected = this.nextExpected;
    this.nextExpected = (this.nextExpected % MOST_EXPECTED) + 1;
    this.expected.set(movement.expected, movement);
    this.device.port.expect(laneEra(era, origin), key, movement.expected);
  }

  /** A version has come; returns its receive, unless that is over. */
  came(number: number, from: AnnouncedPlace): Movement | undefined {
    const movement = this.expected.get(number);
    this.expected.delete(number);
    if (movement !== undefined) movement.from = from;
    return movement;
  }

  /** Whether the receive waits for the news that its version has come. */
  awaitsNews({ d, pull }: Movement): boolean {
    return pull !== undefined || this.rankLanes.awaitsNews(d);
  }

  /** A receive on a lane begins before its version comes; without a lane or room it waits. */
  receive(row: number, movement: Movement): void {
    movement.waits = !this.rankLanes.begins(row);
    if (movement.waits) this.engine.x.waitForReceive(row);
    else this.goOn(row, movement, this.rankLanes.laneAhead(row));
  }

  /** The receive of a long version begins before its announcement, with memory on a device; false: that is not granted. */
  receiveOnDevice(row: number, movement: Movement): boolean {
    const { engine, rankLanes } = this;
    const { d, wanted, run, isNamed } = movement;
    // One that is pulled comes at its own time. Whether to pass a version on is known from its announcement only.
    const mayBegin = wanted > HOST && !isNamed && run !== INTERNAL_RUN;
    if (!mayBegin || !rankLanes.hasLaneOnDevice(row)) return false;
    if (engine.arrivals.isBehindBody(engine.tasks.idOf(row))) return false;
    if (!grantAhead(engine.x, this.credits, d, wanted)) return false;
    movement.space = wanted;
    movement.isAhead = true;
    engine.moveTo(row, wanted);
    this.goOn(row, movement, rankLanes.laneOnDevice(row));
    return true;
  }

  /** A receive whose version has come takes its memory first and then a lane, which it so holds for a short time. */
  receiveAnnounced(row: number, movement: Movement): void {
    this.goOn(row, movement, NO_QUEUE);
  }

  /** The stages get the receive, with a lane or to take one after its memory. */
  private goOn(row: number, movement: Movement, lane: QueueId): void {
    const hasLane = lane !== NO_QUEUE;
    this.engine.tasks.target[row] = hasLane ? lane : this.rankLanes.anyLane;
    this.handOver(row, movement).hasLane = hasLane;
    advance(this.engine.x, row);
  }

  markLanes(wakes: Uint8Array): void {
    this.rankLanes.markLanes(wakes);
  }

  /** On how many lists the receive in `row` stands: for news of its version, or for a lane. */
  waitLists(row: number): number {
    const { tasks } = this.engine;
    const movement = this.movements.ofTask(tasks, row);
    const isExpected = this.expected.get(movement.expected) === movement;
    return (isExpected ? 1 : 0) + this.rankLanes.waitLists(tasks.idOf(row));
  }

  /** Begins the receives whose turn has come; true when there were any. */
  commandHeld(): boolean {
    let row = this.rankLanes.next();
    if (row < 0) return false;
    const { tasks } = this.engine;
    for (; row >= 0; row = this.rankLanes.next()) {
      const movement = this.movements.ofTask(tasks, row);
      if (movement.parcel !== undefined) advance(this.engine.x, row);
      else if (!this.isUnwanted(row, movement)) this.receive(row, movement);
    }
    return true;
  }

  /** Whether the movement in `row`, which waited and holds no memory yet, has nothing to move any more; it is ended then. */
  isUnwanted(row: number, movement: Movement): boolean {
    const { engine } = this;
    const refusal = movement.call >= 0 ? this.refusals.of(movement) : undefined;
    if (this.loss.error !== undefined) engine.fail(row, this.loss.error);
    else if (movement.noVersion !== undefined) engine.fail(row, this.refusals.told(movement));
    else if (refusal !== undefined) engine.fail(row, refusal);
    else if (movement.era !== this.movements.era) this.drop(row, movement);
    else return false;
    return true;
  }

  private drop(row: number, movement: Movement): void {
    this.engine.dropTask(row, this.engine.runs[movement.run] as RunState);
  }

  /** The stages get the movement in `row`, with its way. */
  handOver(row: number, movement: Movement): Parcel {
    const { engine } = this;
    this.data.closeSend(movement.d, movement.index);
    movement.startedAt = engine.x.tracing ? engine.backend.now() : 0;
    const parcel = this.rankLanes.parcelOf(movement, this.arrivalOf(row, movement));
    movement.parcel = parcel;
    const { parcels } = engine.x;
    while (parcels.length <= movement.index) parcels.push(undefined);
    parcels[movement.index] = parcel;
    return parcel;
  }

  /** Whether the stages have the movement and have not written a command of it. */
  private isUncommanded({ task, parcel }: Movement): boolean {
    const { tasks } = this.engine;
    // A forward has no destinations, so `next` is 0 also behind its command.
    return parcel?.next === 0 && tasks.execution[task & tasks.mask] === Execution.none;
  }

  /** No rank is reached any more: the sends of the runtime's own run fail that were not commanded. */
  failSends(error: HeadraceError): void {
    for (const movement of [...this.movements.all()]) {
      if (movement.role === NetworkRole.receive || movement.run !== INTERNAL_RUN) continue;
      if (this.isUncommanded(movement))
        this.engine.fail(movement.task & this.engine.tasks.mask, error);
    }
  }

  /** The era of earlier movements is over: those that were not commanded end without a version. */
  endEra(): void {
    const { movements, engine, refusals } = this;
    if (!guards.eraEndsMovements) return;
    for (const movement of [...movements.all()]) {
      if (movement.era === movements.era || !this.isUncommanded(movement)) continue;
      if (this.isWithdrawable(movement)) this.withdraw(movement, refusals.leftBehind(movement));
      else if (movement.role !== NetworkRole.receive)
        this.drop(movement.task & engine.tasks.mask, movement);
    }
  }

  /** The run of a send has failed whose copy other ranks may still read: no more of its commands are written. */
  outlives(row: number, movement: Movement): void {
    const { parcel } = movement;
    if (parcel === undefined) return;
    parcel.next = parcel.destinations.length;
    if (parcel.open === 0) this.engine.ended(row, Status.cancelled);
  }

  /** How a long version comes. If its run fails, its owner sends it to other ranks from then on. */
  private arrivalOf(row: number, { d, from, isAhead }: Movement): ParcelArrival | undefined {
    const { device } = this;
    const space = this.engine.tasks.device[row];
    const isOwn = this.data.owner[d] === this.rank;
    if (isAhead) return { mode: WireMode.open, scope: device.flushFor(space, 'direct', isOwn) };
    if (from === undefined || !this.rankLanes.awaitsNews(d)) return undefined;
    const way = device.wayFrom(from, space);
    return { mode: MODES[way], scope: device.flushFor(space, way, isOwn || from.forwards) };
  }

  /** How the version of the receive in `row` has come, or left as a send. */
  private wayOf(row: number, { d }: Movement, { arrival }: Parcel): NetworkWay {
    if (!this.rankLanes.isLong(d)) return 'inline';
    if (arrival === undefined) return 'direct';
    const { tasks, backend } = this.engine;
    return WAYS[arrivalOf(backend.arrivalOf(tasks.queue[row], tasks.seq[row])).mode];
  }

  /** No rank needs the bytes of a command any more. */
  departed(index: number, outcome: number, way: NetworkWay, times: NetworkTimes): void {
    const movement = this.movements.at(index);
    if (movement?.parcel === undefined) return;
    const { parcel } = movement;
    parcel.open--;
    if (parcel.outcome === NetOutcome.ok) parcel.outcome = outcome;
    if (parcel.open > 0 || parcel.next < parcel.destinations.length) return;
    const { engine } = this;
    const row = movement.task & engine.tasks.mask;
    if (parcel.outcome === NetOutcome.ok) {
      this.tellSent(movement, parcel, way, times);
      engine.ended(row, Status.ok);
    } else if (parcel.outcome === NetOutcome.cancelled) engine.ended(row, Status.cancelled);
    else {
      const datum = this.refusals.nameOf(movement.d);
      const peer = parcel.destinations[0];
      engine.fail(row, this.loss.error ?? transferError(parcel.outcome, datum, peer));
    }
  }

  private tellSent(
    movement: Movement,
    { destinations }: Parcel,
    way: NetworkWay,
    times: NetworkTimes,
  ): void {
    const { observer, directory } = this.engine;
    if (observer === undefined) return;
    const bytes = directory.bytes[movement.d];
    for (let i = 0; i < destinations.length; i += 2) {
      const [peer, key] = destinations.slice(i, i + 2);
      const message = messageNumber(key);
      this.traffic.tell(movement, 'sent', { peer, message, way, bytes }, times);
    }
  }

  /** The command of the task in `row` is written. */
  commanded(row: number): void {
    const { tasks, directory } = this.engine;
    const { d, parcel } = this.movements.ofTask(tasks, row);
    this.device.port.commanded();
    if (parcel === undefined || parcel.kind === 'receive') return;
    this.traffic.countSent((directory.bytes[d] * parcel.destinations.length) / 2);
    if (parcel.kind === 'offer' && !guards.longSendHeld) this.engine.ended(row, Status.ok);
  }

  /** Whether the receive is a command that ends without its version only if it is withdrawn. */
  isWithdrawable({ role, run, parcel, withdrawn }: Movement): boolean {
    return (
      role === NetworkRole.receive && run === INTERNAL_RUN && parcel !== undefined && !withdrawn
    );
  }

  /** The command ends without its version, unless that has come. */
  withdraw(movement: Movement, error: HeadraceError): void {
    const { tasks } = this.engine;
    const row = movement.task & tasks.mask;
    movement.withdrawn = true;
    if (!isCommand(tasks.execution[row])) {
      // It waits for room in its lane.
      this.engine.fail(row, error);
      return;
    }
    this.refusals.note(movement.d, movement.task, error);
    const lane = this.rankLanes.numberOf(tasks.queue[row]);
    if (guards.laneWithdrawn) this.device.port.withdraw(lane, tasks.seq[row]);
  }

  /** The version of a commanded receive will not come: its run fails, and with it the command ends. */
  refused(movement: Movement): void {
    const { engine, refusals } = this;
    const error = refusals.told(movement);
    if (movement.run === INTERNAL_RUN) {
      if (this.isWithdrawable(movement)) this.withdraw(movement, error);
      return;
    }
    refusals.note(movement.d, movement.task, error);
    const run = engine.runs[movement.run];
    if (run !== undefined) engine.failRun(run, error);
  }

  /** The error of a receive whose command has ended with `status`, if that names the outcome of its transfer. */
  failure(row: number, status: number): HeadraceError | undefined {
    if (status > Status.transfer) return undefined;
    const { d, from, origin } = this.movements.ofTask(this.engine.tasks, row);
    const outcome = Status.transfer - status;
    return transferError(outcome, this.refusals.nameOf(d), from?.rank ?? origin);
  }

  /** The send or receive is over with `status`, or was dropped. */
  ended(row: number, movement: Movement, status: number): void {
    const { tasks, observer, x, directory } = this.engine;
    const { d, role, parcel, space, pull } = movement;
    const isReceive = role === NetworkRole.receive;
    const isHeld = isReceive ? movement.isAhead : space > 0 || parcel?.isHeld === true;
    if (isHeld) {
      if (!isReceive || guards.aheadHeld) returnOffer(x, space, d);
    } else if (isReceive && space >= 0 && pull === undefined)
      this.credits.inFlight[space] -= roundedBytes(directory.bytes[d]);
    if (movement.expected !== 0) this.expected.delete(movement.expected);
    if (parcel === undefined) return;
    x.parcels[movement.index] = undefined;
    if (isReceive) {
      const lane = parcel.hasLane ? tasks.target[row] : NO_QUEUE;
      const isOnHost = movement.from === undefined && !movement.isAhead;
      this.rankLanes.ended(row, lane, isOnHost);
    }
    if (tasks.execution[row] === Execution.command && status === Status.ok) {
      const way = this.wayOf(row, movement, parcel);
      if (isReceive) this.traffic.countReceived(way, directory.bytes[d]);
      if (observer !== undefined) this.tellEnded(row, movement, parcel, way);
    }
    movement.parcel = undefined;
    this.rankLanes.parcelIsOver(parcel);
  }

  private tellEnded(row: number, movement: Movement, parcel: Parcel, way: Payload['way']): void {
    const { tasks, backend, directory } = this.engine;
    const lane = tasks.queue[row];
    const seq = tasks.seq[row];
    const times = { start: backend.startOf(lane, seq), end: backend.endOf(lane, seq) };
    if (movement.role !== NetworkRole.receive) {
      this.tellSent(movement, parcel, way, times);
      return;
    }
    const bytes = directory.bytes[movement.d];
    const message = messageNumber(parcel.key);
    this.traffic.tell(movement, 'received', { peer: movement.origin, message, way, bytes }, times);
  }
}
