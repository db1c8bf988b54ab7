// Control dependencies across ranks (`after`): a task follows a task of another rank without common data.
//
// The predecessors' rank signals with a token, a datum of eight bytes. The token is written when the predecessors are
// over, and it travels like any other datum; the follower waits for its arrival.
// Invariants: a token is released when its last user is over, also when the run failed; its name follows from its run alone,
// because ranks leave the program of a failed run at different points and may have made different numbers of tokens. The tokens
// of a run share the name: from one rank to another they travel in program order.

import { guards } from '../../devices/guards.js';
import {
  type Column,
  type DatumId,
  HOST,
  type TaskElsewhere,
  type TaskHandle,
  type TaskId,
} from '../../devices/handles.js';
import { AccessMode, ANY_DEVICE, type TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import { INTERNAL_RUN } from '../engine/run-state.js';
import type { RankRuns } from './agreement.js';
import type { RankData } from './data.js';
import type { RankHost } from './host.js';
import type { RankPlan } from './plan.js';
import type { PlannedTransfers } from './planned-transfers.js';

/** First handle of tasks of other ranks; the rank is added to it. Ids of this rank's tasks are int32. */
const ELSEWHERE = 2 ** 40;
const TOKEN_BYTES = 8;
/** Names of tokens, apart from those of all other data; the number of the run is added, modulo the second. */
const FIRST_TOKEN = 2 ** 29;
const TOKEN_NAMES = 2 ** 28;

/** Handle of a task of another rank. */
export function handleElsewhere(rank: number): TaskElsewhere {
  return (ELSEWHERE + rank) as TaskElsewhere;
}

/** Whether a number is the handle of a task of another rank, of `ranks` in all. */
export function isElsewhere(handle: number, ranks: number): handle is TaskElsewhere {
  const rank = handle - ELSEWHERE;
  return ranks > 1 && Number.isInteger(rank) && rank >= 0 && rank < ranks;
}

/** The rank of a task, by its handle. */
export function rankOfHandle(handle: number, here: number): number {
  return handle >= ELSEWHERE ? handle - ELSEWHERE : here;
}

export class RankAfter {
  private readonly engine: RankHost;
  private readonly transfers: PlannedTransfers;
  private readonly data: RankData;
  private readonly runs: Pick<RankRuns, 'numberOf'>;
  private readonly rank: number;
  private readonly signalClass: TaskClassRow;
  private readonly forgetClass: TaskClassRow;
  private readonly oneFlow: Column<Int32Array, DatumId> = new Int32Array(1) as Column<
    Int32Array,
    DatumId
  >;
  private readonly oneParam: Float64Array = new Float64Array(1);

  constructor(
    engine: RankHost,
    plan: Pick<RankPlan, 'transfers' | 'data'>,
    runs: Pick<RankRuns, 'numberOf'>,
    rank: number,
  ) {
    this.engine = engine;
    this.runs = runs;
    this.transfers = plan.transfers;
    this.data = plan.data;
    this.rank = rank;
    this.signalClass = this.controlClass('signal', [AccessMode.write], [], () => {});
    this.forgetClass = this.controlClass('forget', [], ['datum'], (row) => {
      const { tasks } = engine;
      engine.forgetDatum(tasks.params[tasks.paramStart[row]]);
    });
  }

  private controlClass(
    name: string,
    modes: readonly number[],
    paramNames: readonly string[],
    run: (row: number) => void,
  ): TaskClassRow {
    const { engine } = this;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name,
      flowNames: modes.map(() => 'token'),
      paramNames,
      modes: [...modes],
      kernels: new Int32Array(engine.backend.spaces.length).fill(-1),
      body: (_id, at) => run(at),
      explain: undefined,
      failureCode: undefined,
    };
    engine.x.classes.push(row);
    return row;
  }

  /** The predecessors of a task on its rank `target`. All ranks call this with the handles of the same program. */
  resolve(after: readonly TaskHandle[], target: number, run: RunState, priority: number): TaskId[] {
    const isMine = (handle: TaskHandle): handle is TaskId =>
      rankOfHandle(handle, this.rank) === this.rank;
    const mine = after.filter(isMine);
    const follow = target === this.rank ? mine : [];
    const others = new Set(after.map((handle) => rankOfHandle(handle, this.rank)));
    others.delete(target);
    // In the order of rank numbers, because handles differ between ranks.
    for (const from of [...others].sort((a, b) => a - b)) {
      if (from !== this.rank && target !== this.rank) continue;
      const token = this.engine.addDatum(TOKEN_BYTES, { name: `token of rank ${from}` });
      this.data.add(token, from, FIRST_TOKEN + (this.runs.numberOf(run) % TOKEN_NAMES));
      if (from === this.rank) {
        this.signal(token, mine, run, priority);
        this.transfers.sendTo(token, target, run, priority, false);
      } else {
        const arrival = this.transfers.receive(token, run, priority, HOST, undefined);
        if (guards.afterTokens) follow.push(arrival);
      }
      this.forget(token);
    }
    return follow;
  }

  private signal(token: DatumId, after: readonly TaskId[], run: RunState, priority: number): void {
    const { engine, oneFlow, oneParam } = this;
    engine.reserveRow(this.signalClass);
    oneFlow[0] = token;
    run.movements++;
    engine.insert({
      cls: this.signalClass,
      run,
      flows: oneFlow,
      params: oneParam,
      priority,
      device: ANY_DEVICE,
      after,
    });
    this.transfers.written(token, this.rank);
  }

  private forget(token: DatumId): void {
    const { engine, oneFlow, oneParam } = this;
    engine.reserveRow(this.forgetClass);
    oneParam[0] = token;
    const run = engine.runs[INTERNAL_RUN] as RunState;
    const users = engine.dependencies.users(token);
    engine.insert({
      cls: this.forgetClass,
      run,
      flows: oneFlow,
      params: oneParam,
      priority: 0,
      device: ANY_DEVICE,
      after: users,
    });
  }
}
