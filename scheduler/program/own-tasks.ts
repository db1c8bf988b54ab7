// The runtime's own tasks: they read, set, restore and close data in program order, like tasks of the program.
// Each carries the key of a job, which is a function that its body calls, and of another for its failure.

import type { HeadraceError } from '../../devices/errors.js';
import { type Column, type DatumId, HOST, type TaskId } from '../../devices/handles.js';
import { Poison } from '../../devices/memory/directory.js';
import { ANY_DEVICE, type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import type { Engine } from '../engine/engine.js';
import { INTERNAL_RUN, type RunState } from '../engine/run-state.js';
import type { Datum } from './datum.js';

/** One step of the runtime's own tasks. */
export interface Job {
  readonly run: () => void;
  readonly fail: (error: HeadraceError, task: TaskId) => void;
}

export class OwnTasks {
  readonly read: TaskClassRow;
  readonly set: TaskClassRow;
  readonly restore: TaskClassRow;
  readonly close: TaskClassRow;
  /** Leaves a datum without a value: its job throws. */
  readonly spoil: TaskClassRow;
  /** The elements that a datum has are good again, after it did not take over others. */
  readonly mend: TaskClassRow;
  private readonly engine: Engine;
  private readonly jobs: Map<number, Job> = new Map();
  private nextJob = 1;
  private readonly classes: Set<number> = new Set();
  /** The closes that are not over. */
  private readonly closes: Set<TaskId> = new Set();
  private readonly flows: Column<Int32Array, DatumId> = new Int32Array(1) as Column<
    Int32Array,
    DatumId
  >;
  private readonly params: Float64Array = new Float64Array(1);

  constructor(engine: Engine) {
    this.engine = engine;
    this.read = this.ownClass('read', [AccessMode.read]);
    this.set = this.ownClass('set', [AccessMode.write]);
    this.restore = this.ownClass('restore', [AccessMode.readWrite], Poison.outdated);
    this.close = this.ownClass('close', []);
    this.spoil = this.ownClass('end of a reduction', [AccessMode.write]);
    this.mend = this.ownClass('mend', [AccessMode.readWrite], Poison.notTaken);
    this.mend.takesOver = true;
    engine.retirement.onInternalFailure = (row, error) => this.failed(row, error);
    engine.closes = {
      isAny: () => this.closes.size > 0,
      isReleased: () => this.isCloseReleased(),
    };
  }

  /**
   * Inserts a task of one of the classes above; false: its datum was closed while it waited for room. `call`: the call that needs it, for the
   * message of a full window.
   */
  insert(
    cls: TaskClassRow,
    datum: Datum | undefined,
    after: readonly TaskId[] | undefined,
    job: Job,
    call?: string,
  ): boolean {
    const { engine, flows, params } = this;
    engine.reserveRow(cls, call);
    // Its row may be that of another datum by now.
    if (datum?.closed === true) return false;
    const key = this.nextJob++;
    this.jobs.set(key, job);
    if (datum !== undefined) flows[0] = datum.row;
    params[0] = key;
    const run = engine.runs[INTERNAL_RUN] as RunState;
    const id = engine.insert({ cls, run, flows, params, priority: 0, device: ANY_DEVICE, after });
    if (cls === this.close) this.closes.add(id);
    engine.wake();
    return true;
  }

  /** Whether a close waits for no task. */
  private isCloseReleased(): boolean {
    const { tasks } = this.engine;
    for (const id of this.closes)
      if (tasks.stage[id & tasks.mask] !== TaskStage.pending) return true;
    return false;
  }

  private ownClass(name: string, modes: readonly number[], restores?: number): TaskClassRow {
    const { engine } = this;
    const row: TaskClassRow = {
      id: engine.x.classes.length,
      name,
      flowNames: modes.map(() => 'datum'),
      paramNames: ['job'],
      modes: [...modes],
      kernels: new Int32Array(engine.backend.spaces.length).fill(-1),
      body: (id, at) => {
        const key = this.keyOf(at);
        // If a job throws, its task fails, and `failed` reads the error.
        this.jobs.get(key)?.run();
        this.jobs.delete(key);
        // Tasks that wait for host memory have waited for it, also if the datum had none.
        if (this.closes.delete(id)) engine.spaces[HOST].wakeLine();
      },
      explain: undefined,
      failureCode: undefined,
      restores,
    };
    engine.x.classes.push(row);
    this.classes.add(row.id);
    return row;
  }

  private failed(row: number, error: HeadraceError): void {
    // The others are copies of parts: what they should have written has no value now.
    if (!this.classes.has(this.engine.tasks.classOf[row])) return;
    if (this.closes.delete(this.engine.tasks.idOf(row))) this.engine.spaces[HOST].wakeLine();
    const key = this.keyOf(row);
    const job = this.jobs.get(key);
    this.jobs.delete(key);
    job?.fail(error, this.engine.tasks.idOf(row));
  }

  private keyOf(row: number): number {
    const { tasks } = this.engine;
    return tasks.params[tasks.paramStart[row]];
  }
}
