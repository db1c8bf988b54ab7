// Insertion of a task on several ranks: it plans the movements, then inserts the task if it belongs to this rank.
//
// All ranks insert the same tasks, with one exception: a body runs on one rank only, and the other ranks do not see its
// insertions. So a body may insert only tasks that concern its own rank, and this is checked.
//
// A task that a body spawns is a part of the body's task (scheduler/engine/joins.ts): the other ranks know the parent, which they
// have inserted, and see the family as its work. So a spawned task runs on the rank of its parent, counts for no comparison and
// moves nothing.
// Invariant: a family uses the data of its parent, which the movements of the parent bring and which no movement takes away before
// the whole family is over, because movements follow tasks, and a parent is over with its family; and data of this rank
// alone, which never move.

import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { Column, DatumId, TaskHandle, TaskId } from '../../devices/handles.js';
import { AccessMode, type TaskClassRow } from '../../stages/task-table.js';
import type { ProgramInsertion, TaskInsertion } from '../engine/task-insertion.js';
import type { RankRuns } from './agreement.js';
import { handleElsewhere, type RankAfter, rankOfHandle } from './cross-rank-order.js';
import { NO_GID } from './data.js';
import type { RankHost } from './host.js';
import type { RankPlan } from './plan.js';

/**
 * Copies of the callers' records. Movements are tasks, too: their insertion may run bodies, which may insert and so fill the
 * caller's record anew.
 */
export class InsertionCopies {
  private readonly free: TaskInsertion[] = [];

  /** A copy without predecessors. */
  take({ cls, run, flows, params, priority, device }: ProgramInsertion): TaskInsertion {
    const copy = this.free.pop() ?? {
      cls,
      run,
      flows: new Int32Array(flows.length) as Column<Int32Array, DatumId>,
      params: new Float64Array(params.length),
      priority,
      device,
      after: undefined,
    };
    copy.cls = cls;
    copy.run = run;
    copy.priority = priority;
    copy.device = device;
    copy.after = undefined;
    // An earlier task may have had fewer data.
    if (copy.flows.length < cls.modes.length)
      copy.flows = new Int32Array(cls.modes.length) as Column<Int32Array, DatumId>;
    if (copy.params.length < cls.paramNames.length)
      copy.params = new Float64Array(cls.paramNames.length);
    for (let i = 0; i < cls.modes.length; i++) copy.flows[i] = flows[i];
    for (let i = 0; i < cls.paramNames.length; i++) copy.params[i] = params[i];
    return copy;
  }

  giveBack(copy: TaskInsertion): void {
    this.free.push(copy);
  }
}

/** The parts of this rank that insertion uses. */
interface InsertingRank {
  readonly rank: number;
  readonly plan: RankPlan;
  readonly after: RankAfter;
  readonly runs: Pick<RankRuns, 'isPruned' | 'era'>;
  readonly copies: InsertionCopies;
}

/** No rank was chosen: a task runs where its data belong. */
export const ANY_RANK = -1;

/** Inserts the task on rank `rank`, or where its data belong if that is ANY_RANK. Returns the task's handle. */
export function insertOnRanks(
  engine: RankHost,
  ranks: InsertingRank,
  insertion: ProgramInsertion,
  rank: number,
): TaskHandle {
  const own = ranks.copies.take(insertion);
  try {
    return insertCopy(engine, ranks, own, insertion.after, rank);
  } finally {
    ranks.copies.giveBack(own);
  }
}

/** Inserts a copy of the caller's record; its predecessors are resolved here. */
function insertCopy(
  engine: RankHost,
  ranks: InsertingRank,
  own: TaskInsertion,
  after: readonly TaskHandle[] | undefined,
  rank: number,
): TaskHandle {
  const { plan } = ranks;
  const { cls, run, priority, flows } = own;
  const target = rank >= 0 ? rank : plan.rankOf(cls, flows);
  if (engine.inBody || run.sealed) {
    checkAlone(engine, ranks, cls, flows, target, after);
    plan.noteSize(cls, flows);
    // All of them are tasks of this rank.
    own.after = after as readonly TaskId[] | undefined;
    engine.reserveRow(cls);
    return engine.insert(own);
  }
  if (after !== undefined && after.length > 0) {
    if (ranks.runs.isPruned(run)) {
      checkPruned(cls, after, target, ranks.rank);
      // All of them are tasks of the same rank, so on this rank they have numbers here.
      if (target === ranks.rank && guards.prunedAfter) own.after = after as readonly TaskId[];
    } else own.after = ranks.after.resolve(after, target, run, priority);
  }
  try {
    return insertPlanned(engine, ranks, own, target);
  } finally {
    plan.insertionEnds();
  }
}

/** Plans the movements of a task of rank `target`, and inserts it if that is this rank. */
function insertPlanned(
  engine: RankHost,
  { plan, runs }: InsertingRank,
  own: TaskInsertion,
  target: number,
): TaskHandle {
  const { cls, run, priority, flows } = own;
  const { era } = runs;
  const isHere = plan.plan(own, target);
  if (isHere) engine.reserveRow(cls);
  // Planning its movements may have taken a pass of the engine, in which the run failed. That failure dropped only the
  // tasks that were live then, so this task must not be inserted.
  if (isHere && run.error !== undefined) throw run.error;
  // The task belongs to a call that began in the era before. In the new one no other rank counts what it writes.
  if (runs.era !== era) return handleElsewhere(target);
  plan.writes(cls, flows, target);
  if (!isHere) {
    // A rank that has nothing to insert must still receive the messages of the others.
    if (plan.skipsTurn()) engine.pump();
    return handleElsewhere(target);
  }
  const task = engine.insert(own);
  plan.inserted(run, priority, task);
  return task;
}

/**
 * The body of a task of this rank is about to spawn a task. `rank`: where the caller wants it, or -1.
 * @throws HeadraceError `ERR_INSERT_ALONE`
 */
export function checkSpawned(
  engine: RankHost,
  { rank: here, plan }: Pick<InsertingRank, 'rank' | 'plan'>,
  insertion: ProgramInsertion,
  rank: number,
): void {
  const { cls, flows, after } = insertion;
  const parent = insertion.parent as TaskId;
  const refuse = (why: string, remedy: string, datum?: string): never => {
    const name = engine.x.describe(parent & engine.tasks.mask);
    throw new HeadraceError(
      'ERR_INSERT_ALONE',
      `a task of class '${cls.name}' that the body of task ${name} spawns on rank ${here} ${why}`,
      { task: name, rank: here, remedy, ...(datum === undefined ? {} : { datum }) },
    );
  };
  if (rank >= 0 && rank !== here)
    refuse(`asks for rank ${rank}`, 'leave `rank` out: it runs on the rank of its parent');
  if (after?.some((handle) => rankOfHandle(handle, here) !== here) === true)
    refuse(
      'follows a task of another rank',
      'name tasks in `after` that the same body has spawned',
    );
  for (let i = 0; i < cls.modes.length; i++) {
    const d = flows[i];
    if (plan.data.gid[d] === NO_GID || engine.joins.uses(parent, d)) continue;
    const datum = engine.directory.info[d]?.name ?? `#${d}`;
    refuse(
      `uses datum '${datum}', which is neither among the data of its parent nor of this rank alone`,
      `give datum '${datum}' to the parent as well`,
      datum,
    );
  }
  plan.noteSize(cls, flows);
}

/** In a pruned run the predecessor's rank may not see the follower; then it would not signal. */
function checkPruned(
  cls: TaskClassRow,
  after: readonly TaskHandle[],
  target: number,
  here: number,
): void {
  if (after.every((handle) => rankOfHandle(handle, here) === target)) return;
  throw new HeadraceError(
    'ERR_AFTER_ELSEWHERE',
    `a task of class '${cls.name}' follows a task of another rank without data, in a pruned run`,
    {
      remedy:
        'let the first task write a small datum that the second one reads, or do not prune the run',
    },
  );
}

/** Throws if another rank has to know of the task. */
function checkAlone(
  engine: RankHost,
  ranks: InsertingRank,
  cls: TaskClassRow,
  flows: Column<Int32Array, DatumId>,
  target: number,
  after: readonly TaskHandle[] | undefined,
): void {
  const refuse = (why: string): never => {
    throw new HeadraceError(
      'ERR_INSERT_ALONE',
      `rank ${ranks.rank} alone inserts a task of class '${cls.name}', but ${why}`,
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
  for (let i = 0; i < cls.modes.length; i++) {
    const d = flows[i];
    const datum = engine.directory.info[d]?.name ?? `#${d}`;
    if (data.producer[d] !== ranks.rank)
      refuse(`its datum '${datum}' is written by rank ${data.producer[d]}`);
    if (cls.modes[i] !== AccessMode.read && data.isSent(d))
      refuse(`it writes datum '${datum}', which other ranks read`);
  }
}
