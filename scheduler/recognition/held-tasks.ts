// Tasks that were held back, and are inserted after all, or never run.
import type { Column, DatumId, TaskId } from '../../devices/handles.js';
import { Execution, TaskStage } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import { markUnwritten } from '../failure/poison.js';
import type { Expectation } from './expectation.js';

/** The first `count` tasks of an expectation, as a run has inserted them. */
interface HeldTasks {
  readonly expectation: Expectation;
  readonly count: number;
  /** Number of the first one. */
  readonly base: TaskId;
  /** Value of the open parameter at a place of `Expectation.given`. */
  readonly valueAt: (place: number) => number;
}

/**
 * Inserts the tasks, which get the numbers that their handles promise. If the run has failed, or fails meanwhile, they are dropped: what
 * is held back behind them has the numbers that follow.
 */
export function insertHeld(engine: Engine, run: RunState, held: HeldTasks): void {
  const { expectation, count, base, valueAt } = held;
  const { tasks } = engine;
  const { insertions, open, firstParam } = expectation;
  const record = {
    flows: new Int32Array(tasks.maxArguments) as Column<Int32Array, DatumId>,
    params: new Float64Array(tasks.maxArguments),
  } as { -readonly [K in keyof TaskInsertion]: TaskInsertion[K] };
  for (let n = 0; n < count; n++) {
    insertions.read(n, run, record);
    const { modes, paramNames } = record.cls;
    for (let i = 0; i < paramNames.length; i++)
      if (open[firstParam[n] + i] !== 0) record.params[i] = valueAt(firstParam[n] + i);
    record.after = insertions.after.get(n)?.map((b) => ((base + b) | 0) as TaskId);
    if (!tasks.hasRoom(modes.length, paramNames.length)) engine.reserveRow(record.cls);
    const hasFailed = run.error !== undefined;
    const id = engine.insert(record);
    if (id !== ((base + n) | 0))
      throw new Error('a task was inserted before those that were held back');
    if (hasFailed) dropIfUnissued(engine, run, id);
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
