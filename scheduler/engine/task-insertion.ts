// The arguments of one insertion. Insertion is the hottest path of the engine: a caller keeps one record and fills it
// for each task. No callee keeps the record or its arrays beyond the call.
import type { Column, DatumId, SpaceId, TaskHandle, TaskId } from '../../devices/handles.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from './run-state.js';

export interface TaskInsertion {
  cls: TaskClassRow;
  run: RunState;
  /** Rows of the data, one per flow of the class; the array may be longer. */
  flows: Column<Int32Array, DatumId>;
  /** Values of the parameters of the class; the array may be longer. */
  params: Float64Array;
  /** Among ready tasks on the same device, larger priorities run first. */
  priority: number;
  /** The space of the device that runs the task, or ANY_DEVICE. */
  device: SpaceId;
  /** Handles of tasks that this task follows, besides the predecessors by data. */
  after: readonly TaskId[] | undefined;
  /** The task whose body spawns it (joins.ts). */
  parent?: TaskId | undefined;
}

/** An insertion by the program, before the tasks of other ranks among its predecessors are resolved to tasks here. */
export type ProgramInsertion = Omit<TaskInsertion, 'after'> & {
  after: readonly TaskHandle[] | undefined;
};
