// Receives: the way of a version that comes to this rank. A receive waits until its version is announced, and takes
// memory only then (`accept`, `begin`). When it has its buffer, the device fetches the bytes (`start`). When they are
// here, the receive is over (`received`), and the engine releases the tasks that read the version.
//
// Versions on lanes come as commands (lane-movements.ts). Pulled versions wait for their group (pull-admission.ts). The message
// layer tells when they have come, or the announcement of a long one in a job with GPUs (`came`), and their receives are
// commanded then.

import { Status } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { type DatumId, HOST, type SpaceId } from '../../devices/handles.js';
import { Poison } from '../../devices/memory/directory.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import { type Announcement, keepPayload, laneEra } from '../../devices/network/announcement.js';
import { type NetworkTimes, type NetworkWay, NO_TIMES } from '../../devices/network/context.js';
import { type NetworkDevice, transferError } from '../../devices/network/device.js';
import { type AnnouncedPlace, NetOutcome } from '../../devices/network/port.js';
import { grantReceive, type NetworkCredits } from '../../stages/comm-in.js';
import { advance } from '../../stages/pipeline.js';
import { isCommand } from '../../stages/task-table.js';
import { INTERNAL_RUN } from '../engine/run-state.js';
import type { RankRuns } from './agreement.js';
import type { RankData } from './data.js';
import type { RankHost } from './host.js';
import type { LaneMovements } from './lane-movements.js';
import type { RankLoss } from './loss.js';
import type { Movement, Movements } from './movements.js';
import type { RankPulls } from './pull-admission.js';
import type { Refusals } from './refusals.js';
import type { RankTraffic } from './traffic.js';

/** The parts that receives use. */
interface ReceiveParts {
  readonly engine: RankHost;
  readonly rank: number;
  readonly device: NetworkDevice;
  readonly movements: Movements;
  readonly data: Pick<RankData, 'owner'>;
  readonly credits: NetworkCredits;
  readonly pulls: Pick<RankPulls, 'ready'>;
  readonly lanes: Pick<
    LaneMovements,
    | 'receive'
    | 'receiveAnnounced'
    | 'awaitsNews'
    | 'expect'
    | 'came'
    | 'refused'
    | 'isWithdrawable'
    | 'withdraw'
  >;
  readonly runs: Pick<RankRuns, 'failures' | 'eras'>;
  readonly refusals: Refusals;
  readonly traffic: RankTraffic;
  readonly loss: Pick<RankLoss, 'error'>;
}

export class Receives {
  private readonly engine: RankHost;
  private readonly rank: number;
  private readonly device: NetworkDevice;
  private readonly movements: Movements;
  private readonly data: Pick<RankData, 'owner'>;
  private readonly credits: NetworkCredits;
  private readonly pulls: Pick<RankPulls, 'ready'>;
  private readonly lanes: ReceiveParts['lanes'];
  private readonly runs: Pick<RankRuns, 'failures' | 'eras'>;
  private readonly refusals: Refusals;
  private readonly traffic: RankTraffic;
  private readonly loss: Pick<RankLoss, 'error'>;
  /** Announcements of the present era that belong to no call, until its first common call is known. */
  private readonly unsure: Announcement[] = [];

  constructor(parts: ReceiveParts) {
    this.engine = parts.engine;
    this.rank = parts.rank;
    this.device = parts.device;
    this.movements = parts.movements;
    this.data = parts.data;
    this.credits = parts.credits;
    this.pulls = parts.pulls;
    this.lanes = parts.lanes;
    this.runs = parts.runs;
    this.refusals = parts.refusals;
    this.traffic = parts.traffic;
    this.loss = parts.loss;
  }

  /** No task before the receive uses its copy any more. */
  released(row: number, movement: Movement): void {
    this.passOver(movement);
    if (movement.announcement !== undefined) this.accept(row, movement);
    else if (movement.onLane && !this.lanes.awaitsNews(movement)) this.lanes.receive(row, movement);
    else {
      if (movement.onLane) this.lanes.expect(movement);
      movement.waits = true;
      this.engine.x.waitForReceive(row);
    }
  }

  /** A version is announced: its receive may be waiting for it. */
  announced(announcement: Announcement): void {
    const { runs, movements } = this;
    if (runs.eras.isUnsure(announcement.call)) {
      keepPayload(announcement);
      this.unsure.push(announcement);
      return;
    }
    const isLate = runs.failures.isFailing && !movements.isExpected(announcement);
    if (isLate || runs.eras.isTorn(announcement.call)) {
      this.device.fetches.decline(announcement);
      return;
    }
    const movement = this.movements.announced(announcement);
    if (movement !== undefined && this.passOver(movement)) return;
    if (movement?.waits === true) this.accept(movement.task & this.engine.tasks.mask, movement);
    else if (movement?.onLane === true && movement.started) this.lanes.refused(movement);
    if (movement?.started !== true) keepPayload(announcement);
  }

  /** The version of a receive on a lane is here, or announced. */
  came(number: number, from: AnnouncedPlace): void {
    const movement = this.lanes.came(number, from);
    if (movement === undefined || !movement.waits) return;
    movement.waits = false;
    if (movement.pull !== undefined) this.pulls.ready(movement.pull);
    else this.begin(movement);
  }

  /**
   * A receive on a lane takes no version that was sent for a read: the ranks make different calls, and will find that out.
   * True if it was announced one.
   */
  private passOver(movement: Movement): boolean {
    const { announcement } = movement;
    if (!movement.onLane || announcement === undefined || announcement.isPoisoned) return false;
    this.device.fetches.decline(announcement);
    movement.announcement = undefined;
    return true;
  }

  /** Whether the receive waits for its version in a way that can still end without it. */
  mayGiveUp(movement: Movement): boolean {
    return movement.waits || this.lanes.isWithdrawable(movement);
  }

  /** The receive, which may give up, gets no version. */
  giveUp(movement: Movement, error: HeadraceError): void {
    if (movement.waits) this.engine.fail(movement.task & this.engine.tasks.mask, error);
    else this.lanes.withdraw(movement, error);
  }

  /** Removes the announcements that could not be matched so far, and returns them. */
  takeUnsure(): Announcement[] {
    return this.unsure.splice(0);
  }

  private accept(row: number, movement: Movement): void {
    movement.waits = false;
    const { isPoisoned } = movement.announcement as Announcement;
    if (isPoisoned) this.engine.fail(row, this.refusals.announced(movement));
    else if (movement.pull !== undefined) this.pulls.ready(movement.pull);
    else this.begin(movement);
  }

  /** The receive takes memory. Its version is announced, and if it is pulled, its group is admitted. */
  begin(movement: Movement): void {
    // Another receive of its group may have failed the run.
    if (this.movements.at(movement.index) !== movement) return;
    const isHere = movement.onLane
      ? this.isShort(movement.d)
      : movement.announcement?.payload !== undefined;
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
    if (movement.onLane) this.lanes.receiveAnnounced(row);
    else advance(x, row);
  }

  /** The version is in its message. */
  private isShort(d: DatumId): boolean {
    return this.device.isInline(this.engine.directory.bytes[d]);
  }

  /** The buffer is there and no other task uses it: fetches the bytes, or takes them from the announcement. */
  start(row: number, movement: Movement): void {
    const { engine } = this;
    const { tasks, directory: dir } = engine;
    const space = tasks.device[row];
    const offset = dir.block[movement.d * dir.spaces + space];
    const bytes = dir.bytes[movement.d];
    const announcement = movement.announcement as Announcement;
    if (announcement.bytes !== bytes) {
      const words = `rank ${announcement.from} sent ${announcement.bytes} bytes of a datum that has ${bytes} here`;
      engine.fail(row, new HeadraceError('ERR_GRAPH_MISMATCH', words, { rank: announcement.from }));
    } else if (announcement.payload === undefined) {
      const isOwner = this.data.owner[movement.d] === this.rank;
      this.device.fetches.fetch(announcement, movement.index, space, offset, isOwner);
    } else {
      engine.backend.hostView(offset, bytes).set(announcement.payload);
      this.arrived(movement, 'inline', bytes, NO_TIMES);
      engine.ended(row, Status.ok);
    }
  }

  /** The fetch of a receive is over. */
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
      this.arrived(movement, way, bytes, times);
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
    const datum = this.refusals.nameOf(movement.d);
    const error = outcome === NetOutcome.lost ? this.loss.error : undefined;
    engine.fail(row, error ?? transferError(outcome, datum, movement.origin));
  }

  /** The bytes are here: `received` of them count. */
  private arrived(
    movement: Movement,
    way: NetworkWay,
    received: number,
    times: NetworkTimes,
  ): void {
    this.traffic.countReceived(way, received);
    const { from, offer, bytes } = movement.announcement as Announcement;
    this.traffic.tell(movement, 'received', { peer: from, message: offer, way, bytes }, times);
  }

  /** The receive fails: readers on this rank find the datum poisoned. */
  failing(row: number, movement: Movement, error: HeadraceError): void {
    const { tasks, directory } = this.engine;
    const { d, era, origin, key, run, announcement } = movement;
    this.refusals.note(d, tasks.idOf(row), error);
    // Its version comes nevertheless, unless the other rank has said that it has none. A failed run ends its era.
    const isCommanded = !movement.onLane || isCommand(tasks.execution[row]);
    if (!isCommanded && announcement === undefined && run === INTERNAL_RUN)
      this.device.port.refuse(laneEra(era, origin), key);
    directory.setPoison(d, Poison.writerCancelled);
  }

  /** The receive is over or was dropped. */
  ended({ d, started, announcement, space, pull }: Movement): void {
    if (!started && announcement !== undefined) this.device.fetches.decline(announcement);
    if (space >= 0 && pull === undefined)
      this.credits.inFlight[space] -= roundedBytes(this.engine.directory.bytes[d]);
  }
}
