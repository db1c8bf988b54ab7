// Movements that end early: their run failed here, a run failed elsewhere, or the era of a failed run is over.

import type { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { NetworkDevice } from '../../devices/network/device.js';
import { keysBefore, laneEra } from '../../devices/network/keys.js';
import { Execution, NetworkRole, TaskStage } from '../../stages/task-table.js';
import { INTERNAL_RUN, type RunState } from '../engine/run-state.js';
import type { RankRuns } from './agreement.js';
import type { RankHost } from './host.js';
import type { LaneMovements } from './lane-movements.js';
import type { Movements } from './movements.js';
import type { RankPlan } from './plan.js';
import type { RankPulls } from './pull-admission.js';
import type { Receives } from './receives.js';
import type { Refusals } from './refusals.js';

/** The parts that end movements or learn of their end. */
interface EndParts {
  readonly engine: RankHost;
  readonly device: NetworkDevice;
  readonly lanes: Pick<LaneMovements, 'endEra' | 'outlives'>;
  readonly movements: Movements;
  readonly plan: Pick<RankPlan, 'beginEra'>;
  readonly pulls: Pick<RankPulls, 'forget'>;
  readonly receives: Pick<Receives, 'refused' | 'takeUnsure' | 'mayGiveUp' | 'giveUp'>;
  readonly refusals: Refusals;
  readonly runs: Pick<RankRuns, 'failed' | 'failures' | 'eras'>;
}

export class EarlyEnds {
  private readonly engine: RankHost;
  private readonly device: NetworkDevice;
  private readonly lanes: EndParts['lanes'];
  private readonly movements: Movements;
  private readonly plan: Pick<RankPlan, 'beginEra'>;
  private readonly pulls: Pick<RankPulls, 'forget'>;
  private readonly receives: EndParts['receives'];
  private readonly refusals: Refusals;
  private readonly runs: Pick<RankRuns, 'failed' | 'failures' | 'eras'>;

  constructor(parts: EndParts) {
    this.engine = parts.engine;
    this.device = parts.device;
    this.lanes = parts.lanes;
    this.movements = parts.movements;
    this.plan = parts.plan;
    this.pulls = parts.pulls;
    this.receives = parts.receives;
    this.refusals = parts.refusals;
    this.runs = parts.runs;
  }

  /** A run failed on this rank: the other ranks get a message. */
  runFailed(run: RunState, error: HeadraceError): void {
    this.pulls.forget(run);
    this.runs.failed(run, error);
    for (const movement of [...this.movements.all()]) {
      // A rank may still read its copy. Later writers wait for the send, and the run does not.
      const { tasks } = this.engine;
      const row = movement.task & tasks.mask;
      const isOffered = tasks.execution[row] === Execution.movement;
      const isHeld =
        movement.role !== NetworkRole.receive && movement.parcel !== undefined && isOffered;
      // Not the send whose own failure fails the run: it is ending.
      const isLive = tasks.stage[row] === TaskStage.exec;
      if (movement.run !== run.slot || !isHeld || !isLive) continue;
      movement.run = INTERNAL_RUN;
      this.engine.outlives(row, run);
      this.lanes.outlives(row, movement);
    }
  }

  /**
   * A run has failed that began here. Until the next era no further receive is planned: versions for which there is none are
   * declined. Reads after the run end, because other ranks may reject them. Reads before it get their versions: the program of the
   * run may await them.
   */
  failLaterReads(): void {
    const { receives } = this;
    if (!this.runs.failures.isFailing) return;
    this.movements.forgetEarly();
    for (const movement of [...this.movements.all()]) {
      const error = receives.mayGiveUp(movement) ? this.refusals.ofRead(movement) : undefined;
      if (error !== undefined) receives.giveUp(movement, error);
    }
    this.declineLong();
  }

  /** Other ranks may wait for the room of what they have announced. No receive takes it but those of reads before the run. */
  private declineLong(): void {
    const { movements, device } = this;
    if (!guards.longDeclined) return;
    for (const { role, run, era, origin, key } of movements.all()) {
      const isWanted =
        role === NetworkRole.receive && run === INTERNAL_RUN && era === movements.era;
      if (isWanted && guards.readsWanted) device.port.want(laneEra(era, origin), key);
    }
    device.port.declineBefore(laneEra(movements.era + 1));
  }

  /**
   * A failed run is settled: every datum has its owner's value again. Data that the failed run should have written
   * elsewhere keep the owner's last version. Reads of the program may still be under way. Reads whose version has
   * not come end soon with the error of the failed run (`dropTorn`).
   */
  beginEra(era: number): void {
    const { movements, device } = this;
    movements.beginEra(era);
    this.receives.takeUnsure();
    this.plan.beginEra();
    device.port.beginEra(laneEra(era));
    device.beginEra(era);
    this.lanes.endEra();
  }

  /** Calls before `first` are torn (eras.ts): not all ranks take part in their transfers. */
  dropTorn(first: number): void {
    const { movements, device, receives } = this;
    const { era } = movements;
    for (const news of receives.takeUnsure()) receives.refused(news);
    movements.forgetEarly(first);
    device.port.refuseCalls(laneEra(era), laneEra(era + 1), keysBefore(first));
    for (const movement of [...movements.all()]) {
      if (receives.mayGiveUp(movement) && this.runs.eras.isTorn(movement.call))
        receives.giveUp(movement, this.refusals.leftBehind(movement));
    }
  }
}
