// Sends and receives of small versions as commands of lanes: when they are given to a lane, and what their end means.
// small-messages.ts chooses the lanes; stages/exec-message.ts writes the commands.

import { Status } from '../../devices/backend.js';
import { HOST, NO_QUEUE } from '../../devices/handles.js';
import { messageNumber } from '../../devices/network/announcement.js';
import type { NetworkDevice } from '../../devices/network/device.js';
import type { Parcel } from '../../stages/parcel.js';
import { advance } from '../../stages/pipeline.js';
import { Execution, NetworkRole } from '../../stages/task-table.js';
import type { RankData } from './data.js';
import type { RankHost } from './host.js';
import type { RankLoss } from './loss.js';
import type { Movement, Movements } from './movements.js';
import type { Refusals } from './refusals.js';
import type { SmallMessages } from './small-messages.js';
import type { RankTraffic } from './traffic.js';

/** The parts that movements on lanes use. */
interface LaneParts {
  readonly engine: RankHost;
  readonly device: NetworkDevice;
  readonly movements: Movements;
  readonly data: Pick<RankData, 'closeSend'>;
  readonly small: SmallMessages;
  readonly refusals: Refusals;
  readonly traffic: RankTraffic;
  readonly loss: Pick<RankLoss, 'error'>;
}

export class LaneMovements {
  private readonly engine: RankHost;
  private readonly device: NetworkDevice;
  private readonly movements: Movements;
  private readonly data: Pick<RankData, 'closeSend'>;
  private readonly small: SmallMessages;
  private readonly refusals: Refusals;
  private readonly traffic: RankTraffic;
  private readonly loss: Pick<RankLoss, 'error'>;

  constructor(parts: LaneParts) {
    this.engine = parts.engine;
    this.device = parts.device;
    this.movements = parts.movements;
    this.data = parts.data;
    this.small = parts.small;
    this.refusals = parts.refusals;
    this.traffic = parts.traffic;
    this.loss = parts.loss;
  }

  /** A receive on a lane begins before its version comes; without a lane or room it waits. */
  receive(row: number, movement: Movement): void {
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

  markLanes(wakes: Uint8Array): void {
    this.small.markLanes(wakes);
  }

  /** Begins the receives whose turn has come; true when there were any. */
  commandHeld(): boolean {
    let row = this.small.next();
    if (row < 0) return false;
    const { tasks } = this.engine;
    for (; row >= 0; row = this.small.next()) this.receive(row, this.movements.ofTask(tasks, row));
    return true;
  }

  /** The way of the version in `row`, whose command is about to be written; undefined: its task has ended. */
  parcel(row: number): Parcel | undefined {
    const { engine } = this;
    const movement = this.movements.ofTask(engine.tasks, row);
    if (movement.parcel !== undefined) return movement.parcel;
    if (this.loss.error !== undefined) engine.fail(row, this.loss.error);
    else if (movement.announcement !== undefined)
      engine.fail(row, this.refusals.announced(movement));
    else if (movement.era !== this.movements.era) engine.ended(row, Status.cancelled);
    else {
      movement.started = true;
      this.data.closeSend(movement.d, movement.index);
      movement.startedAt = engine.x.tracing ? engine.backend.now() : 0;
      movement.parcel = this.small.parcelOf(movement);
    }
    return movement.parcel;
  }

  /** The command of the task in `row` is written. */
  commanded(row: number): void {
    const { tasks, directory } = this.engine;
    const { d, parcel } = this.movements.ofTask(tasks, row);
    this.device.port.commanded();
    if (parcel?.isSend === true)
      this.traffic.countSent((directory.bytes[d] * parcel.destinations.length) / 2);
  }

  /** The version of a commanded receive will not come: its run fails, and with it the command ends. */
  refused(movement: Movement): void {
    const { engine, refusals } = this;
    const error = refusals.announced(movement);
    refusals.note(movement.d, movement.task, error);
    const run = engine.runs[movement.run];
    if (run !== undefined) engine.failRun(run, error);
  }

  /** The send or receive of a small version is over, or was dropped. */
  ended(row: number, movement: Movement): void {
    const { tasks, backend, observer } = this.engine;
    const { d, role, origin, parcel, space } = movement;
    const isReceive = role === NetworkRole.receive;
    if (isReceive && space === HOST) this.small.giveBack(tasks.target[row], d);
    if (tasks.execution[row] !== Execution.command) return;
    const lane = tasks.queue[row];
    const seq = tasks.seq[row];
    if (parcel === undefined || backend.status(lane, seq) !== Status.ok) return;
    const bytes = this.engine.directory.bytes[d];
    const { traffic } = this;
    if (isReceive) traffic.countReceived('inline', bytes);
    if (observer === undefined) return;
    const times = { start: backend.startOf(lane, seq), end: backend.endOf(lane, seq) };
    if (isReceive) {
      const message = messageNumber(parcel.key);
      traffic.tell(movement, 'received', { peer: origin, message, way: 'inline', bytes }, times);
    } else
      for (let i = 0; i < parcel.destinations.length; i += 2) {
        const [peer, key] = parcel.destinations.slice(i, i + 2);
        const message = messageNumber(key);
        traffic.tell(movement, 'sent', { peer, message, way: 'inline', bytes }, times);
      }
  }
}
