// After a rank was lost, or after the ranks made different calls, no communication is possible. Everything on this rank
// that waits for other ranks ends with one error.

import { HeadraceError } from '../../devices/errors.js';
import type { NetworkDevice } from '../../devices/network/device.js';
import { INTERNAL_RUN } from '../engine/run-state.js';
import type { RankRuns } from './agreement.js';
import type { RankHost } from './host.js';
import type { Movement, Movements } from './movements.js';

/** The receives, as loss ends them (receives.ts). */
interface WaitingReceives {
  mayGiveUp(movement: Movement): boolean;
  giveUp(movement: Movement, error: HeadraceError): void;
}

/** The sends, as loss ends them (lane-movements.ts). */
interface UncommandedSends {
  failSends(error: HeadraceError): void;
}

/** The parts that end. */
interface LossParts {
  readonly engine: RankHost;
  readonly movements: Movements;
  readonly device: NetworkDevice;
  readonly runs: Pick<RankRuns, 'lost'>;
  readonly receives: () => WaitingReceives;
  readonly lanes: () => UncommandedSends;
}

export class RankLoss {
  /** Set once a rank was lost or made different calls. */
  error: HeadraceError | undefined;
  /** A rank's process has ended. */
  isLost = false;
  private readonly engine: RankHost;
  private readonly movements: Movements;
  private readonly device: NetworkDevice;
  private readonly runs: Pick<RankRuns, 'lost'>;
  private readonly receives: LossParts['receives'];
  private readonly lanes: LossParts['lanes'];

  constructor({ engine, movements, device, runs, receives, lanes }: LossParts) {
    this.engine = engine;
    this.movements = movements;
    this.device = device;
    this.runs = runs;
    this.receives = receives;
    this.lanes = lanes;
  }

  /** The process of a rank has ended. */
  lost(rank: number): void {
    this.isLost = true;
    this.error = new HeadraceError(
      'ERR_PEER_LOST',
      `rank ${rank} is gone: its process ended without closing`,
      {
        rank,
        remedy: 'look at the output of that rank',
      },
    );
    // Without the lost rank, no two other ranks can agree on the closed handles of each other's memory.
    this.engine.backend.keepShared();
    this.runs.lost(this.error);
    this.failReads(this.error);
  }

  /**
   * The ranks are out of step: this rank will get nothing for which it waits. Requests of other ranks are refused, so
   * that requests under way end. True if a promise of the program rejects because of it.
   */
  breaksOff(error: HeadraceError): boolean {
    if (this.error !== undefined) return true;
    this.error = error;
    const rejected = this.runs.lost(error) + this.failReads(error);
    this.device.port.abandon();
    return rejected > 0;
  }

  /** Rejects all reads of the program that wait for other ranks; returns their number. */
  private failReads(error: HeadraceError): number {
    const receives = this.receives();
    let failed = 0;
    for (const movement of [...this.movements.all()]) {
      if (movement.run !== INTERNAL_RUN || !receives.mayGiveUp(movement)) continue;
      receives.giveUp(movement, error);
      failed++;
    }
    this.lanes().failSends(error);
    return failed;
  }
}
