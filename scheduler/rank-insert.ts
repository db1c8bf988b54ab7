// Inserting a task where there are several ranks: plan what has to move, then insert it if it is ours.
import { HeadraceError } from '../devices/errors.js';
import type { TaskClassRow } from '../stages/task-table.js';
import type { Engine } from './engine.js';
import type { Ranks } from './ranks.js';
import type { RunState } from './run-state.js';

/** Handle of a task of another rank. No task of this one has it: ids are int32. */
const ELSEWHERE = 2 ** 40;

interface Wishes {
  readonly rank?: number;
  readonly after?: readonly number[];
}

/** Returns the task's handle. `flows` and `params` are scratch memory of the caller. */
export function insertOnRanks(
  engine: Engine,
  ranks: Ranks,
  cls: TaskClassRow,
  run: RunState,
  flows: Int32Array,
  params: Float64Array,
  priority: number,
  device: number,
  wishes: Wishes | undefined,
): number {
  const rank = wishes?.rank ?? -1;
  if (wishes?.rank !== undefined && (!Number.isInteger(rank) || rank < 0 || rank >= ranks.size)) {
    throw new HeadraceError('ERR_NO_RANK', `there is no rank ${rank}: there are ${ranks.size}`, {
      limit: ranks.size,
    });
  }
  // Movements are tasks too: inserting them may run bodies, which may use the caller's scratch memory.
  const ownFlows = flows.slice(0, cls.modes.length);
  const ownParams = params.slice(0, cls.paramNames.length);
  if (!ranks.plan.plan(cls, run, ownFlows, ownParams, priority, device, rank)) {
    // A rank that has nothing to insert must still hear from the others.
    if (ranks.plan.skipsTurn()) engine.pump();
    return ELSEWHERE;
  }
  const after = wishes?.after;
  if (after?.includes(ELSEWHERE) === true) {
    throw new HeadraceError(
      'ERR_AFTER_ELSEWHERE',
      `a task of class '${cls.name}' is to follow a task of another rank without data`,
      {
        remedy: 'let the first task write a small datum that the second one reads',
      },
    );
  }
  engine.reserveRow(cls.modes.length, cls.paramNames.length);
  const task = engine.insert(cls, run, ownFlows, ownParams, priority, device, after);
  ranks.plan.inserted(run, priority, task);
  return task;
}
