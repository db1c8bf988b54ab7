// Sends: the way of a version that leaves this rank. When the version's writer is over in the graph's order, the send
// takes the credit for its copy (`begin`). When the copy is there, the device offers it to the other ranks (`start`).
// When no rank needs the bytes any more, the send is over (`offerDone`).
//
// On lanes versions leave as commands (lane-movements.ts).

import { Status } from '../../devices/backend.js';
import type { HeadraceError } from '../../devices/errors.js';
import { HOST, type QueueId } from '../../devices/handles.js';
import type { NetworkTimes, NetworkWay } from '../../devices/network/context.js';
import { type NetworkDevice, transferError } from '../../devices/network/device.js';
import { NetOutcome } from '../../devices/network/port.js';
import { grantOffer, type NetworkCredits, returnOffer } from '../../stages/comm-in.js';
import { execMessage } from '../../stages/exec-message.js';
import { advance } from '../../stages/pipeline.js';
import { INTERNAL_RUN } from '../engine/run-state.js';
import type { RankData } from './data.js';
import type { RankHost } from './host.js';
import type { RankLoss } from './loss.js';
import type { Movement, Movements } from './movements.js';
import type { Refusals } from './refusals.js';
import type { SmallMessages } from './small-messages.js';
import type { RankTraffic } from './traffic.js';

/** The parts that sends use. */
interface SendParts {
  readonly engine: RankHost;
  readonly device: NetworkDevice;
  readonly movements: Movements;
  readonly data: Pick<RankData, 'closeSend'>;
  readonly credits: NetworkCredits;
  readonly small: Pick<SmallMessages, 'sendLane'>;
  readonly refusals: Refusals;
  readonly traffic: RankTraffic;
  readonly loss: Pick<RankLoss, 'error'>;
}

export class Sends {
  private readonly engine: RankHost;
  private readonly device: NetworkDevice;
  private readonly movements: Movements;
  private readonly data: Pick<RankData, 'closeSend'>;
  private readonly credits: NetworkCredits;
  private readonly small: Pick<SmallMessages, 'sendLane'>;
  private readonly refusals: Refusals;
  private readonly traffic: RankTraffic;
  private readonly loss: Pick<RankLoss, 'error'>;

  constructor(parts: SendParts) {
    this.engine = parts.engine;
    this.device = parts.device;
    this.movements = parts.movements;
    this.data = parts.data;
    this.credits = parts.credits;
    this.small = parts.small;
    this.refusals = parts.refusals;
    this.traffic = parts.traffic;
    this.loss = parts.loss;
  }

  /** Sends start from the space of the datum; small ones from the host, because their bytes go into the message. */
  begin(row: number, movement: Movement): void {
    const { directory, x, tasks } = this.engine;
    const { d } = movement;
    if (movement.onLane && movement.run !== INTERNAL_RUN) tasks.target[row] = this.laneOf(movement);
    movement.space = this.device.isInline(directory.bytes[d])
      ? HOST
      : grantOffer(x, this.credits, d);
    this.engine.moveTo(row, movement.space);
    advance(x, row);
  }

  /**
   * The command of a version for a `read`, whose writer is over. It is not written earlier: no run is cancelled with the
   * writer's failure that would keep a lane from sending what the writer has left.
   */
  command(row: number, movement: Movement): number {
    const { x, tasks } = this.engine;
    tasks.target[row] = this.laneOf(movement);
    return execMessage(x, row);
  }

  /** What passes a version on goes behind the receive, so that no other send waits for the arrival. */
  private laneOf({ receive }: Movement): QueueId {
    const { tasks } = this.engine;
    if (receive === undefined || this.movements.at(receive.index) !== receive)
      return this.small.sendLane();
    return tasks.target[receive.task & tasks.mask];
  }

  /** Passes a received version on, if its announcement asks for it. On lanes the message layer knows whether it does. */
  forward(row: number, movement: Movement): void {
    if (movement.onLane) {
      // An announcement that the engine knows says whether there are ranks to which the version goes on.
      if (movement.receive?.from?.forwards === false) this.engine.skip(row);
      else this.begin(row, movement);
      return;
    }
    const announcement = movement.receive?.announcement;
    if (announcement === undefined || announcement.children.length === 0) this.engine.skip(row);
    else {
      movement.destinations.push(...announcement.children);
      this.begin(row, movement);
    }
  }

  /** The copy of a send is there and pinned: it counts as offered from now on, or on a device since it was granted. */
  holds(row: number, { d }: Movement): void {
    const { spaces, tasks } = this.engine;
    if (tasks.device[row] !== HOST) return;
    spaces[HOST].offered.add(d);
    // A task that waits for room here may have nothing else to wait for now.
    spaces[HOST].wakeLine();
  }

  /** Offers the copy to the ranks that need it. */
  start(row: number, movement: Movement): void {
    const { engine } = this;
    const { tasks, directory: dir } = engine;
    this.data.closeSend(movement.d, movement.index);
    if (movement.era !== this.movements.era) {
      // Its era is over: every rank would decline.
      engine.ended(row, Status.cancelled);
      return;
    }
    const space = tasks.device[row];
    const offset = dir.block[movement.d * dir.spaces + space];
    const bytes = dir.bytes[movement.d];
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
    this.traffic.countSent(served * bytes);
    if (payload !== undefined) engine.ended(row, Status.ok);
  }

  /** Destination `to` has the bytes. */
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
    this.traffic.tell(movement, 'sent', { peer: to, message, way, bytes }, times);
  }

  /** No destination needs the bytes any more. */
  offerDone(cookie: number, outcome: number): void {
    const movement = this.movements.at(cookie);
    if (movement === undefined) return;
    const { engine } = this;
    const row = movement.task & engine.tasks.mask;
    if (outcome === NetOutcome.ok) engine.ended(row, Status.ok);
    else if (outcome === NetOutcome.cancelled) engine.ended(row, Status.cancelled);
    else {
      const datum = this.refusals.nameOf(movement.d);
      const peer = movement.destinations[0] ?? movement.apart[0];
      engine.fail(row, this.loss.error ?? transferError(outcome, datum, peer));
    }
  }

  /** The send fails: ranks that wait for its datum get a message. */
  failing(movement: Movement, error: HeadraceError): void {
    if (movement.started) return;
    // If the run failed, the other ranks learn of this failure, not that the datum has no value.
    if (movement.run !== INTERNAL_RUN && error.code !== 'ERR_DATUM_POISONED') return;
    // A datum that is here, or was on its way here, may have a value nevertheless.
    const cause = error.code === 'ERR_DATUM_POISONED' ? this.refusals.ofDatum(movement.d) : error;
    const reason = cause?.code === 'ERR_DATUM_POISONED' ? '' : (cause?.message ?? '');
    for (const list of [movement.destinations, movement.apart])
      this.device.offers.poison(movement.gid, movement.origin, movement.era, list, reason);
  }

  /** The send is over or was dropped. */
  ended({ space, started, d }: Movement): void {
    if (space > 0 || started) returnOffer(this.engine.x, space, d);
  }
}
