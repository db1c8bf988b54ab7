// The interface of the ranks' parts to the engine of their process. They share only its state with it.

import type { HeadraceError } from '../../devices/errors.js';
import type { DatumId, TaskId } from '../../devices/handles.js';
import type { DatumInfo } from '../../devices/memory/directory.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { Arrivals } from '../engine/arrivals.js';
import type { Dependencies } from '../engine/dependencies.js';
import type { Joins } from '../engine/joins.js';
import type { RunState } from '../engine/run-state.js';
import type { EngineState } from '../engine/state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';
import type { WindowRoom } from '../engine/window.js';

interface HostCalls {
  readonly dependencies: Pick<Dependencies, 'users' | 'writers'>;
  readonly arrivals: Pick<Arrivals, 'isReached' | 'isBehindBody'>;
  readonly joins: Pick<Joins, 'uses'>;
  readonly room: Pick<WindowRoom, 'groupBegins' | 'groupEnds'>;
  /** Whether the caller is a JavaScript body. */
  readonly inBody: boolean;
  pump(): boolean;
  /** @throws HeadraceError `ERR_WINDOW_FULL` */
  reserveRow(cls: TaskClassRow): void;
  insert(insertion: TaskInsertion): TaskId;
  addDatum(bytes: number, info: DatumInfo): DatumId;
  forgetDatum(d: number): void;
  removeDatum(d: number): void;
  /** The movement in `row` holds no resources yet. It uses space `s`, has no work to do, fails, or is dropped. */
  moveTo(row: number, s: number): void;
  skip(row: number): void;
  fail(row: number, error: HeadraceError): void;
  dropTask(row: number, run: RunState): void;
  /** The task in `row` of a failed run goes on; the run does not wait for it. */
  outlives(row: number, run: RunState): void;
  /** The movement in `row` has ended with `status`. */
  ended(row: number, status: number): void;
  failRun(run: RunState, error: HeadraceError): void;
  /** All ranks agree that a run is over. */
  runIsSettled(run: RunState): void;
}

export type RankHost = EngineState & HostCalls;
