// A part of a program in which a rank inserts its own tasks only, and says for each version that goes to another rank, or comes from
// one, that it does (scheduler/parameterised/local-walk.ts). All ranks begin and end the part at the same place of the program.
//
// Sends and receives match as everywhere, by their number among those of a datum between two ranks (planned-transfers.ts). So a rank
// plans its sends of a datum in the order of the versions, and its receives too, one for each rank and version.
//
// A rank does not see who overwrites what it has a copy of. So only owners write, and when the part is over, no rank has a copy, or
// remembers that it sent one.
// Invariant: outside of the part every rank knows the writer of the latest version of every datum.

import { guards } from '../../devices/guards.js';
import { type DatumId, HOST } from '../../devices/handles.js';
import type { RunState } from '../engine/run-state.js';
import type { RankPlan } from './plan.js';

/** A datum as far as its row. */
interface Row {
  readonly row: DatumId;
}

/** Of the rows of the window, movements that were planned early hold one in so many at most. */
const EARLY_SHARE = 8;

/** The ranks, as far as the part needs them. */
interface LocalRanks {
  readonly rank: number;
  readonly size: number;
  readonly plan: Pick<RankPlan, 'data' | 'transfers'>;
}

export class LocalRank {
  readonly rank: number;
  readonly size: number;
  private readonly run: RunState;
  private readonly plan: LocalRanks['plan'];
  private readonly movements: { readonly live: number };
  private readonly mostEarly: number;

  /** `rows`: of the window. */
  constructor({ rank, size, plan }: LocalRanks, run: RunState, rows: number) {
    this.rank = rank;
    this.size = size;
    this.plan = plan;
    this.run = run;
    this.movements = plan.transfers.live;
    this.mostEarly = rows / EARLY_SHARE;
  }

  /** Whether a send may be planned long before its reader is inserted. */
  get mayPlanEarly(): boolean {
    return this.movements.live < this.mostEarly;
  }

  /** Whether the rank owns the datum and wrote its latest version. */
  holds({ row }: Row): boolean {
    const { owner, producer } = this.plan.data;
    return owner[row] === this.rank && producer[row] === this.rank;
  }

  /** Whether the rank owns the datum and has its latest version, or gets it. */
  has({ row }: Row): boolean {
    const { owner, have } = this.plan.data;
    return owner[row] === this.rank && have[row] === 1;
  }

  /** The number of ranks from which on a version goes along a tree; Infinity if there are not so many. */
  get treeFrom(): number {
    const { hasTrees, treeFrom } = this.plan.transfers;
    return hasTrees ? treeFrom : Number.POSITIVE_INFINITY;
  }

  /**
   * The next task here that reads the datum takes a version that rank `from` has written, and that is not here. `isStraight`: its sends
   * say so, too.
   */
  comesFrom({ row }: Row, from: number, isStraight: boolean): void {
    this.plan.transfers.written(row, from);
    if (isStraight) this.plan.data.straight[row] = 1;
  }

  /**
   * A task of rank `to` takes the version that is the latest one of the tasks inserted here. `isStraight`: not along a tree.
   * @throws HeadraceError the error of the run
   */
  goesTo({ row }: Row, to: number, priority: number, isStraight: boolean): void {
    const { run } = this;
    if (run.error !== undefined) throw run.error;
    this.plan.transfers.sendTo(row, to, run, priority, isStraight);
  }

  /** Every rank gets the latest version of the datum; all ranks must say so, for all data in the same order. */
  toAll(datum: Row): void {
    const { rank, size, run } = this;
    const { data, transfers } = this.plan;
    const { row } = datum;
    if (data.producer[row] === rank)
      for (let n = 1; n < size; n++) this.goesTo(datum, (rank + n) % size, 0, false);
    else if (data.have[row] === 0) transfers.receive(row, run, 0, HOST, undefined);
  }

  /** The part is over. */
  ended(): void {
    if (guards.localCopies) this.plan.data.forgetCopies();
  }
}
