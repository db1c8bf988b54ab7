// Receives: the way of a version that comes to this rank. Its receive is a command of a lane (lane-movements.ts), most often
// long before the version comes. Pulled versions wait for their group (pull-admission.ts). The message layer tells when they have
// come, or the announcement of a long one in a job with GPUs that got no memory before (`came`), and their receives take memory and are
// commanded then.

import type { HeadraceError } from '../../devices/errors.js';
import { type DatumId, HOST, type SpaceId } from '../../devices/handles.js';
import { Poison } from '../../devices/memory/directory.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import type { NetworkDevice } from '../../devices/network/device.js';
import { laneEra, type NoVersion } from '../../devices/network/keys.js';
import type { AnnouncedPlace } from '../../devices/network/port.js';
import { grantReceive, type NetworkCredits } from '../../stages/comm-in.js';
import { isCommand } from '../../stages/task-table.js';
import { INTERNAL_RUN } from '../engine/run-state.js';
import type { RankRuns } from './agreement.js';
import type { RankHost } from './host.js';
import type { LaneMovements } from './lane-movements.js';
import type { Movement, Movements } from './movements.js';
import type { RankPulls } from './pull-admission.js';
import type { Refusals } from './refusals.js';

/** The parts that receives use. */
interface ReceiveParts {
  readonly engine: RankHost;
  readonly device: NetworkDevice;
  readonly movements: Movements;
  readonly credits: NetworkCredits;
  readonly pulls: Pick<RankPulls, 'ready'>;
  readonly lanes: Pick<
    LaneMovements,
    | 'receive'
    | 'receiveOnDevice'
    | 'receiveAnnounced'
    | 'isUnwanted'
    | 'awaitsNews'
    | 'expect'
    | 'came'
    | 'refused'
    | 'isWithdrawable'
    | 'withdraw'
  >;
  readonly runs: Pick<RankRuns, 'failures' | 'eras'>;
  readonly refusals: Refusals;
}

export class Receives {
  private readonly engine: RankHost;
  private readonly device: NetworkDevice;
  private readonly movements: Movements;
  private readonly credits: NetworkCredits;
  private readonly pulls: Pick<RankPulls, 'ready'>;
  private readonly lanes: ReceiveParts['lanes'];
  private readonly runs: Pick<RankRuns, 'failures' | 'eras'>;
  private readonly refusals: Refusals;
  /** News of the present era that belong to no call, until its first common call is known. */
  private readonly unsure: NoVersion[] = [];

  constructor(parts: ReceiveParts) {
    this.engine = parts.engine;
    this.device = parts.device;
    this.movements = parts.movements;
    this.credits = parts.credits;
    this.pulls = parts.pulls;
    this.lanes = parts.lanes;
    this.runs = parts.runs;
    this.refusals = parts.refusals;
  }

  /** No task before the receive uses its copy any more. */
  released(row: number, movement: Movement): void {
    if (movement.noVersion !== undefined) this.engine.fail(row, this.refusals.told(movement));
    else if (!this.lanes.awaitsNews(movement)) this.lanes.receive(row, movement);
    else if (!this.lanes.receiveOnDevice(row, movement)) {
      this.lanes.expect(movement);
      movement.waits = true;
      this.engine.x.waitForReceive(row);
    }
  }

  /** A version will not come: its receive may be waiting for it. */
  refused(news: NoVersion): void {
    const { runs, movements, engine } = this;
    if (runs.eras.isUnsure(news.call)) {
      this.unsure.push(news);
      return;
    }
    const isLate = runs.failures.isFailing && !movements.isExpected(news);
    if (isLate || runs.eras.isTorn(news.call)) return;
    const movement = movements.refused(news);
    if (movement === undefined) return;
    if (movement.waits) {
      movement.waits = false;
      engine.fail(movement.task & engine.tasks.mask, this.refusals.told(movement));
    } else if (movement.parcel !== undefined) this.lanes.refused(movement);
  }

  /** The version of a receive on a lane is here, or announced. */
  came(number: number, from: AnnouncedPlace): void {
    const movement = this.lanes.came(number, from);
    if (movement === undefined || !movement.waits) return;
    movement.waits = false;
    if (movement.pull !== undefined) this.pulls.ready(movement.pull);
    else this.begin(movement);
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

  /** Removes the news that could not be matched so far, and returns them. */
  takeUnsure(): NoVersion[] {
    return this.unsure.splice(0);
  }

  /** The receive takes memory. Its version is announced, and if it is pulled, its group is admitted. */
  begin(movement: Movement): void {
    // Another receive of its group may have failed the run.
    if (this.movements.at(movement.index) !== movement) return;
    const { x, directory, tasks } = this.engine;
    const row = movement.task & tasks.mask;
    if (this.lanes.isUnwanted(row, movement)) return;
    const isHere = this.isShort(movement.d);
    let space: SpaceId = HOST;
    // The reservation of their task covers pulled inputs: they wait for the device instead of going to another space.
    if (!isHere && movement.pull !== undefined) space = movement.wanted;
    else if (!isHere) space = grantReceive(x, this.credits, movement.d, movement.wanted);
    movement.space = space;
    if (movement.pull === undefined)
      this.credits.inFlight[space] += roundedBytes(directory.bytes[movement.d]);
    this.engine.moveTo(row, space);
    this.lanes.receiveAnnounced(row, movement);
  }

  /** The version is in its message. */
  private isShort(d: DatumId): boolean {
    return this.device.isInline(this.engine.directory.bytes[d]);
  }

  /** The receive fails: readers on this rank find the datum poisoned. */
  failing(row: number, movement: Movement, error: HeadraceError): void {
    const { tasks, directory } = this.engine;
    const { d, era, origin, key, run, noVersion } = movement;
    this.refusals.note(d, tasks.idOf(row), error);
    // Its version comes nevertheless, unless the other rank has said that it has none. A failed run ends its era.
    if (!isCommand(tasks.execution[row]) && noVersion === undefined && run === INTERNAL_RUN)
      this.device.port.refuse(laneEra(era, origin), key);
    directory.setPoison(d, Poison.writerCancelled);
  }
}
