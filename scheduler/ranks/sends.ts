// Sends: the way of a version that leaves this rank. When the version's writer is over in the graph's order, the send takes the
// credit for its copy and a lane (`begin`). It is a command of that lane (lane-movements.ts).

import type { HeadraceError } from '../../devices/errors.js';
import { HOST, type QueueId } from '../../devices/handles.js';
import type { NetworkDevice } from '../../devices/network/device.js';
import { grantOffer, type NetworkCredits } from '../../stages/comm-in.js';
import { execMessage } from '../../stages/exec-message.js';
import { advance } from '../../stages/pipeline.js';
import { Outcome } from '../../stages/stage.js';
import { INTERNAL_RUN } from '../engine/run-state.js';
import type { RankHost } from './host.js';
import type { LaneMovements } from './lane-movements.js';
import type { Movement, Movements } from './movements.js';
import type { RankLanes } from './rank-lanes.js';
import type { Refusals } from './refusals.js';

/** The parts that sends use. */
interface SendParts {
  readonly engine: RankHost;
  readonly device: NetworkDevice;
  readonly movements: Movements;
  readonly credits: NetworkCredits;
  readonly lanes: Pick<LaneMovements, 'isUnwanted' | 'handOver'>;
  readonly rankLanes: Pick<RankLanes, 'sendLane'>;
  readonly refusals: Refusals;
}

export class Sends {
  private readonly engine: RankHost;
  private readonly device: NetworkDevice;
  private readonly movements: Movements;
  private readonly credits: NetworkCredits;
  private readonly lanes: SendParts['lanes'];
  private readonly rankLanes: Pick<RankLanes, 'sendLane'>;
  private readonly refusals: Refusals;

  constructor(parts: SendParts) {
    this.engine = parts.engine;
    this.device = parts.device;
    this.movements = parts.movements;
    this.credits = parts.credits;
    this.lanes = parts.lanes;
    this.rankLanes = parts.rankLanes;
    this.refusals = parts.refusals;
  }

  /** Sends start from the space of the datum; small ones from the host, because their bytes go into the message. */
  begin(row: number, movement: Movement): void {
    const { directory, x, tasks } = this.engine;
    const { d } = movement;
    movement.space = this.device.isInline(directory.bytes[d])
      ? HOST
      : grantOffer(x, this.credits, d);
    this.engine.moveTo(row, movement.space);
    if (movement.run !== INTERNAL_RUN) {
      tasks.target[row] = this.laneOf(movement);
      this.lanes.handOver(row, movement);
    }
    advance(x, row);
  }

  /**
   * The command of a version for a `read`, whose writer is over. It is not written earlier: no run is cancelled with the
   * writer's failure that would keep a lane from sending what the writer has left.
   */
  command(row: number, movement: Movement): number {
    const { x, tasks } = this.engine;
    if (this.lanes.isUnwanted(row, movement)) return Outcome.running;
    tasks.target[row] = this.laneOf(movement);
    this.lanes.handOver(row, movement);
    return execMessage(x, row);
  }

  /** What passes a version on goes behind the receive, so that no other send waits for the arrival. */
  private laneOf({ receive }: Movement): QueueId {
    const { tasks } = this.engine;
    if (receive === undefined || this.movements.at(receive.index) !== receive)
      return this.rankLanes.sendLane();
    return tasks.target[receive.task & tasks.mask];
  }

  /** Passes a received version on, if there are ranks that need it. The message layer knows that for short ones. */
  forward(row: number, movement: Movement): void {
    if (movement.receive?.from?.forwards === false) this.engine.skip(row);
    else this.begin(row, movement);
  }

  /** The send fails: ranks that wait for its datum get a message. */
  failing(movement: Movement, error: HeadraceError): void {
    if (movement.parcel !== undefined && movement.parcel.next > 0) return;
    // If the run failed, the other ranks learn of this failure, not that the datum has no value.
    if (movement.run !== INTERNAL_RUN && error.code !== 'ERR_DATUM_POISONED') return;
    // A datum that is here, or was on its way here, may have a value nevertheless.
    const cause =
      error.code === 'ERR_DATUM_POISONED'
        ? this.refusals.ofDatum(movement.d, movement.task)
        : error;
    const reason = cause?.code === 'ERR_DATUM_POISONED' ? '' : (cause?.message ?? '');
    for (const list of [movement.destinations, movement.apart])
      this.device.refuse(movement, list, reason);
  }
}
