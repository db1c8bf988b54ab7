// Tasks that were held back, and are inserted after all, or never run.
import { HeadraceError } from '../../devices/errors.js';
import type { Column, DatumId, TaskHandle, TaskId } from '../../devices/handles.js';
import { Execution, TaskStage } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import { markElsewhere, markUnwritten } from '../failure/poison.js';
import type { Insertions } from '../plans/insertions.js';
import type { TaskClass } from '../program/task-class.js';
import { ANY_RANK, insertOnRanks } from '../ranks/insertion.js';
import type { Ranks } from '../ranks/ranks.js';
import type { Expectation } from './expectation.js';

/** Sees a task that is about to be inserted. */
export type NoteTask = (task: TaskInsertion, cls: TaskClass) => void;

/** The first `count` tasks of an expectation, as a run has inserted them. */
interface HeldTasks {
  readonly expectation: Expectation;
  readonly count: number;
  /** Number of the first one. */
  readonly base: TaskId;
  /** Value of the open parameter at a place of `Expectation.given`. */
  readonly valueAt: (place: number) => number;
  readonly note?: NoteTask | undefined;
}

type Record = { -readonly [K in keyof TaskInsertion]: TaskInsertion[K] };

function recordFor({ mostFlows, mostParams }: Insertions): Record {
  return {
    flows: new Int32Array(mostFlows) as Column<Int32Array, DatumId>,
    params: new Float64Array(mostParams),
  } as Record;
}

/**
 * Inserts the tasks, which get the numbers that their handles promise. If the run has failed, or fails meanwhile, they are dropped: what
 * is held back behind them has the numbers that follow.
 */
export function insertHeld(engine: Engine, run: RunState, held: HeldTasks): void {
  const { expectation, count, base, valueAt, note } = held;
  const { tasks } = engine;
  const { insertions, open, firstParam } = expectation;
  const record = recordFor(insertions);
  for (let n = 0; n < count; n++) {
    insertions.read(n, run, record);
    const { modes, paramNames } = record.cls;
    for (let i = 0; i < paramNames.length; i++)
      if (open[firstParam[n] + i] !== 0) record.params[i] = valueAt(firstParam[n] + i);
    record.after = insertions.after.get(n)?.map((b) => ((base + b) | 0) as TaskId);
    if (!tasks.hasRoom(modes.length, paramNames.length)) engine.reserveRow(record.cls);
    note?.(record, expectation.classes[n]);
    const hasFailed = run.error !== undefined;
    const id = engine.insert(record);
    if (id !== ((base + n) | 0))
      throw new Error('a task was inserted before those that were held back');
    if (hasFailed) dropIfUnissued(engine, run, id);
  }
}

/**
 * As `insertHeld`, on several ranks: the tasks of all ranks. Returns their handles. What comes after the failure of the run is not inserted.
 */
export function insertOnAll(
  engine: Engine,
  peers: Ranks,
  run: RunState,
  { expectation, count, valueAt }: Omit<HeldTasks, 'base' | 'note'>,
): TaskHandle[] {
  const { insertions, open, firstParam } = expectation;
  const record = recordFor(insertions);
  const handles: TaskHandle[] = [];
  try {
    for (let n = 0; n < count; n++) {
      if (run.error !== undefined) throw run.error;
      readHeld(n);
      handles.push(insertOnRanks(engine, peers, record, insertions.ranks.get(n) ?? ANY_RANK));
    }
  } catch (error) {
    if (!(error instanceof HeadraceError)) throw error;
    engine.failRun(run, error);
    for (let n = handles.length; n < count; n++) {
      readHeld(n);
      neverRuns(engine, peers, record, insertions.ranks.get(n));
    }
  }
  return handles;

  function readHeld(n: number): void {
    insertions.read(n, run, record);
    for (let i = 0; i < record.cls.paramNames.length; i++)
      if (open[firstParam[n] + i] !== 0) record.params[i] = valueAt(firstParam[n] + i);
    record.after = undefined;
  }
}

/** A task of any rank was held back and never runs. All ranks know who should have written its data, as if it were dropped. */
function neverRuns(
  { directory, tasks }: Engine,
  { plan, rank }: Ranks,
  { cls, flows }: TaskInsertion,
  named: number | undefined,
): void {
  const target = named ?? plan.rankOf(cls, flows);
  const last = ((tasks.next - 1) | 0) as TaskId;
  for (let i = 0; i < cls.modes.length; i++) {
    if (cls.modes[i] === AccessMode.read) continue;
    // What comes before it may be on another rank: then the copy here is older.
    const isHere = plan.data.have[flows[i]] === 1;
    plan.transfers.written(flows[i], target);
    if (target !== rank) continue;
    if (isHere) markUnwritten(directory, flows[i], last);
    else markElsewhere(directory, flows[i], last);
  }
}

/** As what the failure of a run does with the tasks that are there. */
function dropIfUnissued(engine: Engine, run: RunState, id: TaskId): void {
  const { tasks } = engine;
  const row = id & tasks.mask;
  const isLive = tasks.run[row] === run.slot && tasks.stage[row] < TaskStage.stageOut;
  if (isLive && tasks.execution[row] === Execution.none) engine.dropTask(row, run);
}

/** The tasks never run: what they should have written has no value. */
export function leaveUnwritten(
  engine: Engine,
  { expectation, count }: Pick<HeldTasks, 'expectation' | 'count'>,
): void {
  const { insertions } = expectation;
  const { directory, tasks } = engine;
  const last = ((tasks.next - 1) | 0) as TaskId;
  for (let n = 0; n < count; n++) {
    const { modes } = insertions.classOf(n);
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      const d = insertions.datum(n, i);
      directory.written[d] = 1;
      markUnwritten(directory, d, last);
    }
  }
}
