// Control dependencies across ranks (`after`): a task of one rank follows tasks of another without data of its own.
//
// The predecessors' rank signals with a token, a datum of eight bytes that is written when they are over and travels
// like any other; the follower waits for its arrival. Every rank makes the token, so that data keep their names.
// Invariant: a token is forgotten when its last user is over, also when the run failed.
import { guards } from '../devices/guards.js';
import { AccessMode, ANY_DEVICE, type TaskClassRow } from '../stages/task-table.js';
import { type Engine, INTERNAL_RUN } from './engine.js';
import type { RankPlan } from './rank-plan.js';
import type { RunState } from './run-state.js';

/** Handles of tasks of other ranks: this plus the rank. Ids of this rank's tasks are int32. */
const ELSEWHERE = 2 ** 40;
const TOKEN_BYTES = 8;

/** Handle of a task of another rank. */
export function handleElsewhere(rank: number): number {
  return ELSEWHERE + rank;
}

/** Whether a number is the handle of a task of another rank, of `ranks` in all. */
export function isElsewhere(handle: number, ranks: number): boolean {
  const rank = handle - ELSEWHERE;
  return ranks > 1 && Number.isInteger(rank) && rank >= 0 && rank < ranks;
}

/** The rank of a task, by its handle. */
export function rankOfHandle(handle: number, here: number): number {
  return handle >= ELSEWHERE ? handle - ELSEWHERE : here;
}

export class RankAfter {
  private readonly engine: Engine;
  private readonly plan: RankPlan;
  private readonly rank: number;
  private readonly signalClass: TaskClassRow;
  private readonly forgetClass: TaskClassRow;
  private readonly oneFlow: Int32Array = new Int32Array(1);
  private readonly oneParam: Float64Array = new Float64Array(1);

  constructor(engine: Engine, plan: RankPlan, rank: number) {
    this.engine = engine;
    this.plan = plan;
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

  /** What a task of rank `target` has to follow on that rank. Called on all ranks with the same program's handles. */
  resolve(after: readonly number[], target: number, run: RunState, priority: number): number[] {
    const mine = after.filter((handle) => rankOfHandle(handle, this.rank) === this.rank);
    const follow = target === this.rank ? mine : [];
    const others = new Set(after.map((handle) => rankOfHandle(handle, this.rank)));
    others.delete(target);
    // In the order of their numbers: handles differ between ranks, ranks do not.
    for (const from of [...others].sort((a, b) => a - b)) {
      const token = this.engine.addDatum(TOKEN_BYTES, { name: `token of rank ${from}` });
      this.plan.data.add(token, from);
      if (from === this.rank) {
        this.signal(token, mine, run, priority);
        this.plan.sendTo(token, target, run, priority, false);
      } else if (target === this.rank) {
        const arrival = this.plan.receive(token, run, priority, 0, undefined);
        if (guards.afterTokens) follow.push(arrival);
      } else {
        this.engine.directory.remove(token);
        continue;
      }
      this.forget(token);
    }
    return follow;
  }

  private signal(token: number, after: readonly number[], run: RunState, priority: number): void {
    const { engine, oneFlow, oneParam } = this;
    engine.reserveRow(this.signalClass);
    oneFlow[0] = token;
    run.movements++;
    engine.insert(this.signalClass, run, oneFlow, oneParam, priority, ANY_DEVICE, after);
    this.plan.written(token, this.rank);
  }

  private forget(token: number): void {
    const { engine, oneFlow, oneParam } = this;
    engine.reserveRow(this.forgetClass);
    oneParam[0] = token;
    const run = engine.runs[INTERNAL_RUN] as RunState;
    const users = engine.dependencies.users(token);
    engine.insert(this.forgetClass, run, oneFlow, oneParam, 0, ANY_DEVICE, users);
  }
}
