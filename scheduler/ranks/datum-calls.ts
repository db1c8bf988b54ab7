// The program's calls on data of several ranks: it creates them, and all ranks read or restore their latest versions.

import type { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, type TaskId } from '../../devices/handles.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import type { NetworkDevice } from '../../devices/network/device.js';
import type { NetworkCredits } from '../../stages/comm-in.js';
import { INTERNAL_RUN, type RunState } from '../engine/run-state.js';
import type { RankRuns } from './agreement.js';
import type { SharedObject } from './call-log.js';
import type { RankCalls } from './calls.js';
import { NO_GID } from './data.js';
import type { Doubt } from './eras.js';
import type { RankHost } from './host.js';
import type { RankLoss } from './loss.js';
import type { Movements } from './movements.js';
import type { RankPlan } from './plan.js';
import { NO_CALL } from './planned-transfers.js';
import type { Refusals } from './refusals.js';

/** The parts that the calls use. */
interface DatumParts {
  readonly engine: RankHost;
  readonly rank: number;
  readonly device: Pick<NetworkDevice, 'refuse'>;
  readonly credits: NetworkCredits;
  readonly movements: Movements;
  readonly plan: RankPlan;
  readonly runs: RankRuns;
  readonly calls: RankCalls;
  readonly refusals: Refusals;
  readonly loss: Pick<RankLoss, 'error'>;
}

export class DatumCalls {
  private readonly engine: RankHost;
  private readonly rank: number;
  private readonly device: DatumParts['device'];
  private readonly credits: NetworkCredits;
  private readonly movements: Movements;
  private readonly plan: RankPlan;
  private readonly runs: RankRuns;
  private readonly calls: RankCalls;
  private readonly refusals: Refusals;
  private readonly loss: Pick<RankLoss, 'error'>;

  constructor(parts: DatumParts) {
    this.engine = parts.engine;
    this.rank = parts.rank;
    this.device = parts.device;
    this.credits = parts.credits;
    this.movements = parts.movements;
    this.plan = parts.plan;
    this.runs = parts.runs;
    this.calls = parts.calls;
    this.refusals = parts.refusals;
    this.loss = parts.loss;
  }

  /** A datum was created on all ranks; a body creates it on this one only. */
  add(d: DatumId, owner: number): void {
    this.addShared(d, owner, this.engine.inBody ? NO_GID : this.plan.data.reserve(1));
    this.calls.created(d, owner);
  }

  /** Names for `count` data that every rank may make later (`addShared`); returns the first. */
  share(count: number, of: SharedObject): number {
    this.calls.shared(count, of);
    return this.plan.data.reserve(count);
  }

  /** This rank makes a datum with a name from `share`. */
  addShared(d: DatumId, owner: number, gid: number): void {
    this.refusals.forget(d);
    const { floor } = this.credits;
    floor[HOST] = Math.max(floor[HOST], roundedBytes(this.engine.directory.bytes[d]));
    this.plan.data.add(d, owner, gid);
  }

  /** Row `d` is the part of a datum with that place in it. */
  addPart(d: DatumId, whole: DatumId, place: readonly number[]): void {
    const { data } = this.plan;
    this.addShared(d, data.owner[whole], data.partName(whole, place));
  }

  /** Inserts tasks of a run, or those that belong to the program's last call. */
  within(run: RunState, insert: () => void): void {
    const { calls, movements, plan } = this;
    if (run.slot !== INTERNAL_RUN) {
      insert();
      return;
    }
    movements.program = calls.program;
    plan.call = { position: this.position, isApart: false };
    try {
      insert();
    } finally {
      movements.program = 0;
      plan.call = NO_CALL;
    }
  }

  /**
   * The program reads or restores a datum, in the program function of a run or outside of one. Undefined: every rank makes
   * the call in the same era (eras.ts).
   * @throws HeadraceError the failure of a run that is not settled; `ERR_PEER_FAILED`; `ERR_PEER_LOST`
   */
  uses(d: DatumId): Doubt | undefined {
    if (this.plan.data.gid[d] === NO_GID) return undefined;
    // The loss failed the open runs, and their settlement never comes: the plans differ for ever (eras.ts).
    if (this.loss.error !== undefined && guards.readsAfterLoss) throw this.loss.error;
    const { program } = this.calls;
    const name = this.refusals.nameOf(d);
    // Ranks leave the program of a failed run at different points, so their plans are not equal.
    const failure =
      program === 0
        ? this.runs.failures.failing(name, this.position)
        : this.runs.failureIn(program);
    if (failure !== undefined) throw failure;
    return this.runs.eras.doubt(this.position, name);
  }

  /**
   * Inserts what comes before the task of a read. The era may change in it. Then the call is torn: this rank has counted it before
   * the new era, and the record of the parts has ended with the old one (on-ranks.ts).
   * @throws HeadraceError `ERR_PEER_FAILED`
   */
  beforeRead(d: DatumId, insert: () => void): void {
    const { runs, refusals } = this;
    const { era } = runs;
    insert();
    if (runs.era !== era) throw runs.failures.torn(refusals.nameOf(d));
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
      this.plan.reads.read(d, engine.runs[INTERNAL_RUN] as RunState, this.position);
    } finally {
      movements.program = 0;
    }
  }

  /** The owner of a datum takes the latest version as its value again. */
  restore(d: DatumId): void {
    this.plan.reads.restore(d, this.engine.runs[INTERNAL_RUN] as RunState, this.position);
  }

  /** The program gives a datum a value on its owner. */
  set(d: DatumId): void {
    this.plan.transfers.written(d, this.plan.data.owner[d]);
  }

  /** Whether this rank must have seen every writer of a datum. */
  mustKnow(d: DatumId): boolean {
    return !this.runs.missesWrites || this.plan.data.owner[d] === this.rank;
  }

  /** A datum of this rank has no value to read. Ranks that did not see this get a message. */
  refuseRead(d: DatumId): void {
    if (!this.runs.missesWrites) return;
    this.plan.reads.refuse(d, this.position, (gid, to) =>
      this.device.refuse({ gid, origin: this.rank, era: this.movements.era }, to),
    );
    this.engine.wake();
  }

  /** The reason why task `reader` finds a datum that should have come from another rank without a value. */
  failureOf(d: DatumId, reader: TaskId): HeadraceError | undefined {
    return this.loss.error ?? this.refusals.ofDatum(d, reader);
  }
}
