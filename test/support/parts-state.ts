// An engine's state over the backend that tests drive by hand, and tasks in it, for tests of single parts of the engine.
// It decides nothing: tests set the stage of a task, and play the parts that are not under test.

import type { HeadraceError } from '../../devices/errors.js';
import type { DatumId } from '../../devices/handles.js';
import { CopyEvent } from '../../devices/memory/coherency.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import type { Retirement } from '../../scheduler/engine/retirement.js';
import { RunState } from '../../scheduler/engine/run-state.js';
import { EngineState } from '../../scheduler/engine/state.js';
import { Outcome } from '../../stages/stage.js';
import { AccessMode, Execution, type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import { datumId, queueId, spaceId } from './handles.js';
import { ManualBackend } from './manual-backend.js';

/** Bytes of a unit of memory. */
export const UNIT: number = ALIGNMENT;

/** The parts of a machine. */
interface PartsMachine {
  readonly workers?: number;
  readonly gpus?: number;
  /** Compute queues per GPU. */
  readonly streams?: number;
  /** Lanes to other ranks. */
  readonly lanes?: number;
  /** Units of memory per GPU. */
  readonly units?: number;
  readonly window?: number;
}

/** A task to be put into the table. */
interface PartsTask {
  /** Data that it changes, and data that it only reads. */
  readonly writes?: readonly number[];
  readonly reads?: readonly number[];
  readonly run?: RunState;
  readonly stage?: number;
  readonly device?: number;
  readonly priority?: number;
  /** Predecessors that have not released it. */
  readonly pending?: number;
  /** It has a JavaScript body and no kernel. */
  readonly hasBody?: boolean;
  /** A NetworkRole. */
  readonly network?: number;
  readonly params?: readonly number[];
}

export class PartsState extends EngineState {
  readonly manual: ManualBackend;
  /** Calls of the stages, in order: 'issued 3' for row 3, and so on. */
  readonly told: string[] = [];
  readonly errors: HeadraceError[] = [];
  private readonly classes: Map<string, TaskClassRow> = new Map();

  constructor(machine: PartsMachine = {}) {
    const { workers = 1, gpus = 0, streams = 1, lanes = 0, units = 1000, window = 128 } = machine;
    const manual = new ManualBackend(workers, gpus, {
      streams,
      lanes,
      bytes: units * UNIT,
    });
    super(manual.port, window);
    this.manual = manual;
    this.x.hooks = {
      startBody: (row) => {
        this.tasks.execution[row] = Execution.bodyQueued;
        this.told.push(`body ${row}`);
        return Outcome.running;
      },
      receivesBehind: () => 0,
      closesAreReleased: () => false,
      issued: (row) => void this.told.push(`issued ${row}`),
      fail: (row, error) => {
        this.told.push(`fail ${row}`);
        this.errors.push(error);
      },
      memoryText: () => '',
    };
  }

  /** The engine's retirement, for parts that report the end of a task to it. */
  readonly retirement: Pick<Retirement, 'retired'> = {
    retired: (row, status) => {
      this.releasePins(row);
      this.tasks.stage[row] = TaskStage.done;
      this.told.push(`retired ${row}${status === 0 ? '' : ` ${status}`}`);
    },
  };

  /** Opens a run in a slot of its own. */
  run(slot = 1): RunState {
    const run = new RunState(slot);
    this.runs[slot] = run;
    return run;
  }

  /** A datum with values in the given spaces; the first of them keeps it. */
  datum(units = 1, ...spaces: readonly number[]): DatumId {
    const d = this.directory.add(units * UNIT, { name: `datum of ${units}` });
    spaces.forEach((s, i) => {
      const c = d * this.spaces.length + s;
      this.directory.block[c] = this.spaces[s].zone.allocate(units * UNIT);
      this.directory.apply(d, spaceId(s), i === 0 ? CopyEvent.write : CopyEvent.fetch);
      if (i > 0) this.directory.apply(d, spaceId(s), CopyEvent.arrived);
      this.spaces[s].settle(d);
    });
    return d;
  }

  /** Puts a task into the table; returns its row. */
  task(task: PartsTask = {}): number {
    const { writes = [], reads = [], stage = TaskStage.pending, device = 0 } = task;
    const { priority = 0, pending = 0, run, params = [] } = task;
    const { tasks } = this;
    const row = tasks.take(writes.length + reads.length, params.length) & tasks.mask;
    params.forEach((value, i) => {
      tasks.params[tasks.paramStart[row] + i] = value;
    });
    tasks.stage[row] = stage;
    tasks.classOf[row] = this.classOf(task).id;
    tasks.run[row] = run?.slot ?? 0;
    const owner = run ?? (this.runs[0] as RunState);
    owner.inserted++;
    tasks.priority[row] = priority;
    tasks.device[row] = spaceId(device);
    tasks.hinted[row] = 1;
    tasks.execution[row] = Execution.none;
    tasks.waiting[row] = 0;
    tasks.releasedBy[row] = -1;
    tasks.pending[row] = pending;
    [...writes, ...reads].forEach((d, i) => {
      tasks.flowDatum[tasks.flowStart[row] + i] = datumId(d);
    });
    return row;
  }

  /** `n` commands without data on queue `q`, of tasks of their own; returns the rows. */
  commands(q: number, n = 1, task: PartsTask = {}): number[] {
    return Array.from({ length: n }, () => {
      const row = this.task({ ...task, stage: TaskStage.exec });
      this.issue(row, q);
      return row;
    });
  }

  /** The command of the task in `row` goes to queue `q`. It is told of nothing. */
  issue(row: number, q: number): void {
    const { tasks, submission, x } = this;
    submission.begin(queueId(q));
    tasks.stage[row] = TaskStage.exec;
    tasks.execution[row] = Execution.command;
    tasks.queue[row] = queueId(q);
    tasks.seq[row] = submission.exec({
      ...x.launch,
      row,
      task: tasks.idOf(row),
      run: tasks.run[row],
    });
  }

  private classOf({ writes = [], reads = [], hasBody = false, network }: PartsTask): TaskClassRow {
    const key = `${writes.length} ${reads.length} ${hasBody} ${network}`;
    let cls = this.classes.get(key);
    if (cls !== undefined) return cls;
    const modes = [...writes.map(() => AccessMode.readWrite), ...reads.map(() => AccessMode.read)];
    const hasKernel = !hasBody && network === undefined;
    cls = {
      id: this.x.classes.length,
      name: 'task',
      flowNames: modes.map((_, i) => `f${i}`),
      modes,
      paramNames: [],
      kernels: new Int32Array(this.spaces.length).fill(hasKernel ? 0 : -1),
      body: hasKernel ? undefined : () => undefined,
      explain: undefined,
      failureCode: undefined,
      ...(network === undefined ? {} : { network }),
    };
    this.x.classes.push(cls);
    this.classes.set(key, cls);
    return cls;
  }
}
