// Inserting a task where there are several ranks: plan what has to move, then insert it if it is ours.
//
// All ranks insert the same tasks, with one exception: a body runs on one rank only, and what it inserts the others do
// not see. So it may insert what concerns its own rank alone, and that is checked.
import { HeadraceError } from '../devices/errors.js';
import { AccessMode, type TaskClassRow } from '../stages/task-table.js';
import type { Engine } from './engine.js';
import { handleElsewhere, rankOfHandle } from './rank-after.js';
import type { Ranks } from './ranks.js';
import type { RunState } from './run-state.js';

/** Returns the task's handle. `flows` and `params` are scratch memory of the caller; `rank` is -1 where any will do. */
export function insertOnRanks(
  engine: Engine,
  ranks: Ranks,
  cls: TaskClassRow,
  run: RunState,
  flows: Int32Array,
  params: Float64Array,
  priority: number,
  device: number,
  rank: number,
  handles: readonly number[] | undefined,
): number {
  const { plan } = ranks;
  const target = rank >= 0 ? rank : plan.rankOf(cls, flows);
  // Movements are tasks too: inserting them may run bodies, which may use the caller's scratch memory.
  const ownFlows = flows.slice(0, cls.modes.length);
  const ownParams = params.slice(0, cls.paramNames.length);
  let after = handles;
  if (engine.inBody || run.sealed) {
    checkAlone(engine, ranks, cls, ownFlows, target, after);
    plan.noteSize(cls, ownFlows);
    engine.reserveRow(cls);
    return engine.insert(cls, run, ownFlows, ownParams, priority, device, after);
  }
  if (after !== undefined && after.length > 0) {
    if (ranks.runs.isPruned(run)) checkPruned(cls, after, target, ranks.rank);
    else after = ranks.after.resolve(after, target, run, priority);
  }
  if (!plan.plan(cls, run, ownFlows, ownParams, priority, device, target)) {
    // A rank that has nothing to insert must still hear from the others.
    if (plan.skipsTurn()) engine.pump();
    return handleElsewhere(target);
  }
  engine.reserveRow(cls);
  // Planning its movements may have taken a pass of the engine, in which the run failed: what was live then is dropped,
  // and nobody would drop this one.
  if (run.error !== undefined) throw run.error;
  plan.writes(cls, ownFlows, target);
  const task = engine.insert(cls, run, ownFlows, ownParams, priority, device, after);
  plan.inserted(run, priority, task);
  return task;
}

/** In a pruned run the predecessor's rank may not see the follower, and would not signal. */
function checkPruned(
  cls: TaskClassRow,
  after: readonly number[],
  target: number,
  here: number,
): void {
  if (after.every((handle) => rankOfHandle(handle, here) === target)) return;
  throw new HeadraceError(
    'ERR_AFTER_ELSEWHERE',
    `a task of class '${cls.name}' is to follow a task of another rank without data in a pruned run`,
    {
      remedy:
        'let the first task write a small datum that the second one reads, or do not prune the run',
    },
  );
}

/** Throws unless no other rank has to know of the task. */
function checkAlone(
  engine: Engine,
  ranks: Ranks,
  cls: TaskClassRow,
  flows: Int32Array,
  target: number,
  after: readonly number[] | undefined,
): void {
  const refuse = (why: string): never => {
    throw new HeadraceError(
      'ERR_INSERT_ALONE',
      `rank ${ranks.rank} inserts a task of class '${cls.name}' of which the other ranks do not know, but ${why}`,
      {
        task: cls.name,
        rank: ranks.rank,
        remedy: 'insert it in the program function, on all ranks',
      },
    );
  };
  if (target !== ranks.rank) refuse(`it belongs to rank ${target}`);
  if (after?.some((handle) => rankOfHandle(handle, ranks.rank) !== ranks.rank) === true)
    refuse('it follows a task of another rank');
  const { data } = ranks.plan;
  for (let i = 0; i < flows.length; i++) {
    const d = flows[i];
    const datum = engine.directory.info[d]?.name ?? `#${d}`;
    if (data.producer[d] !== ranks.rank)
      refuse(`its datum '${datum}' is written by rank ${data.producer[d]}`);
    if (cls.modes[i] !== AccessMode.read && data.isSent(d))
      refuse(`it writes datum '${datum}', which other ranks read`);
  }
}
