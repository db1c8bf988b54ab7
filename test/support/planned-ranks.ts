// The plans of several ranks side by side, without engines: each rank plans the same program, and its insertions are
// recorded.

import { keyOf, MAX_RANKS } from '../../devices/network/keys.js';
import { RunState } from '../../scheduler/engine/run-state.js';
import type { RankHost } from '../../scheduler/ranks/host.js';
import { Movements } from '../../scheduler/ranks/movements.js';
import { RankPlan } from '../../scheduler/ranks/plan.js';
import type { PullGroup, RankPulls } from '../../scheduler/ranks/pull-admission.js';
import { ANY_DEVICE, NetworkRole, type TaskClassRow } from '../../stages/task-table.js';
import { dataColumn, datumId, taskId } from './handles.js';
import { PartsState } from './parts-state.js';

/** One version of a datum that goes from rank to rank: the `sequence`-th of that datum between these two. */
export interface Passage {
  readonly datum: number;
  readonly from: number;
  readonly to: number;
  readonly sequence: number;
}

/** One use of a datum by a task. */
export interface PlannedFlow {
  readonly datum: number;
  /** An AccessMode. */
  readonly mode: number;
  readonly isPulled?: boolean;
}

export class PlannedRank {
  readonly rank: number;
  readonly plan: RankPlan;
  readonly movements: Movements = new Movements();
  /** Roles of the movements that were inserted, in order. */
  readonly inserted: number[] = [];
  /** Groups of pulled inputs that were opened, and how many of them were closed. */
  readonly groups: PullGroup[] = [];
  closed = 0;
  /** Receives are over when their insertion returns, as in a pass of the engine that finds their versions. */
  endsReceives = false;
  /** A new era begins in the pass of the next insertion. */
  nextEra: number | undefined;
  readonly sentTo: Int32Array;
  readonly expectedFrom: Int32Array;
  private readonly run: RunState = new RunState(1);
  private readonly seen: Set<string> = new Set();

  constructor(rank: number, size: number, owners: readonly number[], treeFrom: number) {
    this.rank = rank;
    this.sentTo = new Int32Array(size);
    this.expectedFrom = new Int32Array(size);
    const state = new PartsState();
    const calls: Partial<RankHost> = {
      dependencies: { users: () => [], writers: () => [] },
      reserveRow: () => {},
      insert: ({ cls, params }) => {
        const movement = this.movements.at(params[0]);
        if (this.endsReceives && movement?.role === NetworkRole.receive)
          this.movements.remove(movement);
        const era = this.nextEra;
        this.nextEra = undefined;
        if (era !== undefined) this.beginEra(era);
        return taskId(this.inserted.push(cls.network ?? NetworkRole.none));
      },
    };
    const pulls: Pick<RankPulls, 'open' | 'close' | 'inserted'> = {
      open: (run, space, bytes) => {
        const index = this.groups.length;
        const group: PullGroup = {
          ...{ index, run: run.slot, space, bytes },
          ...{ members: [], missing: 0, state: 'waiting' },
        };
        this.groups.push(group);
        return { group, gate: taskId(1) };
      },
      close: () => void this.closed++,
      inserted: () => {},
    };
    const graphs = {
      count: () => {},
      sent: (_run: RunState, to: number) => void this.sentTo[to]++,
      expected: (_run: RunState, from: number) => void this.expectedFrom[from]++,
    };
    this.plan = new RankPlan(
      {
        engine: Object.assign(state, calls) as RankHost,
        movements: this.movements,
        pulls: pulls as RankPulls,
        runs: { graphs, isUnderWay: true },
      },
      {
        rank,
        size,
        treeFrom,
        isInline: () => false,
        largest: new Float64Array(1),
      },
    );
    owners.forEach((owner) => {
      this.plan.data.add(state.datum(), owner);
    });
  }

  /** The program inserts a task; returns the rank that runs it. */
  task(uses: readonly PlannedFlow[]): number {
    const flows = dataColumn(uses.map(({ datum }) => datum));
    const cls: TaskClassRow = {
      id: 0,
      name: 'task',
      flowNames: uses.map((_, i) => `f${i}`),
      modes: uses.map(({ mode }) => mode),
      paramNames: [],
      kernels: Int32Array.of(0),
      body: undefined,
      explain: undefined,
      failureCode: undefined,
      pulls: Uint8Array.from(uses, ({ isPulled }) => (isPulled === true ? 1 : 0)),
    };
    const { plan, run } = this;
    const target = plan.rankOf(cls, flows);
    const params = new Float64Array(0);
    const wish = { priority: 0, device: ANY_DEVICE, after: undefined };
    const isHere = plan.plan({ cls, run, flows, params, ...wish }, target);
    plan.writes(cls, flows, target);
    if (isHere) plan.inserted(run, 0, taskId(1));
    return target;
  }

  read(d: number): void {
    this.plan.reads.read(datumId(d), this.run, 0);
  }

  restore(d: number): void {
    this.plan.reads.restore(datumId(d), this.run, 0);
  }

  beginEra(era: number): void {
    this.movements.beginEra(era);
    this.plan.beginEra();
    this.seen.clear();
  }

  /** The sends and receives that were planned since the last look. */
  passages(): { sends: Passage[]; receives: Passage[] } {
    const sends: Passage[] = [];
    const receives: Passage[] = [];
    for (const { role, d, gid, origin, key, destinations, apart, era } of this.movements.all()) {
      if (era !== this.movements.era) continue;
      if (role === NetworkRole.receive) {
        const sequence = key - keyOf(gid, 0);
        receives.push({ datum: d, from: origin, to: this.rank, sequence });
      } else if (role === NetworkRole.send) {
        for (const list of [destinations, apart]) {
          for (let i = 0; i < list.length; i += 2)
            sends.push({ datum: d, from: this.rank, to: list[i], sequence: list[i + 1] });
        }
      }
    }
    return { sends: this.fresh('send', sends), receives: this.fresh('receive', receives) };
  }

  private fresh(role: string, passages: readonly Passage[]): Passage[] {
    return passages.filter(({ datum, from, to, sequence }) => {
      const name = `${role} ${(datum * MAX_RANKS + from) * MAX_RANKS + to} ${sequence}`;
      if (this.seen.has(name)) return false;
      this.seen.add(name);
      return true;
    });
  }
}
