// The end of a task, with stage 6, finalize: its bad outputs are marked, the task is counted, its pins return, its
// successors are released and its row is given back.
//
// Invariant: a task ends exactly once: retired, skipped, failed or dropped. A task that held pins returns them once.
import { Status } from '../../devices/backend.js';
import type { HeadraceError } from '../../devices/errors.js';
import { WaitReason } from '../../stages/stage.js';
import { stageOut } from '../../stages/stage-out.js';
import { Execution, TaskStage } from '../../stages/task-table.js';
import { computedFromFailure, describeFailure } from '../failure/describe.js';
import type { DroppedTasks } from '../failure/dropped-tasks.js';
import type { FailureEffects } from '../failure/effects.js';
import { poisonFamily, poisonOutputs } from '../failure/poison.js';
import type { Dependencies } from './dependencies.js';
import type { DeviceChoice } from './device-choice.js';
import type { Dispatcher } from './dispatcher.js';
import type { Joins } from './joins.js';
import { INTERNAL_RUN } from './run-state.js';
import type { Runs } from './runs.js';
import type { EngineState } from './state.js';

/** The parts that the end of a task concerns. */
interface RetirementParts {
  readonly dependencies: Pick<Dependencies, 'edges'>;
  readonly dispatcher: Pick<Dispatcher, 'releaseOne' | 'leaveLane'>;
  readonly deviceChoice: Pick<DeviceChoice, 'load'>;
  readonly dropped: Pick<DroppedTasks, 'drop'>;
  readonly failures: Pick<FailureEffects, 'tainted' | 'failRun' | 'taskFailed'>;
  readonly joins: Pick<Joins, 'isWaiting' | 'bodyEnded' | 'failed' | 'lost'>;
  readonly runs: Pick<Runs, 'taskIsOver'>;
}

export class Retirement {
  /** Called when one of the runtime's own tasks failed. */
  onInternalFailure: ((row: number, error: HeadraceError) => void) | undefined;
  /** Called when one of the runtime's own tasks has not written its outputs, for whatever reason. */
  onInternalLoss: ((row: number, error?: HeadraceError) => void) | undefined;
  private readonly state: EngineState;
  private readonly parts: RetirementParts;

  constructor(state: EngineState, parts: RetirementParts) {
    this.state = state;
    this.parts = parts;
  }

  /** The command, the body or the movement of the task in `row` has ended with `status`. */
  retired(row: number, status: number): void {
    const { tasks, x } = this.state;
    // Its end has come before any task could wait for it.
    if (x.hasLanes && tasks.execution[row] === Execution.arrival)
      tasks.execution[row] = Execution.command;
    tasks.stage[row] = TaskStage.stageOut;
    if (this.parts.failures.tainted.size > 0) this.rejectTainted(row);
    if (status !== Status.ok) this.failed(row, status);
    this.count(row, status);
    x.watcher?.entered(row, TaskStage.stageOut);
    if (status === Status.ok) stageOut(x, row);
    tasks.stage[row] = TaskStage.finalize;
    x.watcher?.entered(row, TaskStage.finalize);
    this.state.releasePins(row);
    if (!this.parts.joins.isWaiting || !this.parts.joins.bodyEnded(row)) this.joined(row);
  }

  /** The task in `row` has ended, and so have the tasks that it has spawned. `isLost`: one of these has not done its part. */
  joined(row: number, isLost = false): void {
    if (isLost) poisonFamily(this.state.x, row);
    this.parts.runs.taskIsOver(this.state.runOf(row));
    this.forget(row);
  }

  /** The task in `row` has not written its outputs, or not all of them. */
  private failed(row: number, status: number): void {
    const { failures, joins } = this.parts;
    const run = this.state.runOf(row);
    poisonOutputs(this.state.x, row, status);
    joins.lost(row);
    if (status === Status.cancelled) run.cancelledTasks++;
    else if (run.slot === INTERNAL_RUN) {
      const error = describeFailure(this.state, row, status);
      this.onInternalLoss?.(row, error);
      this.state.remote?.tasks.failing(row, error);
    } else failures.taskFailed(run, row, describeFailure(this.state, row, status));
  }

  /** If the task in `row` has computed its outputs from those of a failed task, they have no value. */
  private rejectTainted(row: number): void {
    const { tasks, x } = this.state;
    const { failures, joins } = this.parts;
    if (!failures.tainted.delete(tasks.idOf(row))) return;
    poisonOutputs(x, row, Status.driver);
    joins.lost(row);
    const run = this.state.runOf(row);
    if (run.slot === INTERNAL_RUN) this.onInternalLoss?.(row);
    else failures.failRun(run, computedFromFailure(x.describe(row)));
  }

  /** The task in `row` fails before its command or instead of it. It releases all that it holds. */
  fail(row: number, error: HeadraceError): void {
    const { state } = this;
    const { tasks, x, remote } = state;
    const ran = tasks.execution[row] >= Execution.body;
    if (tasks.stage[row] > TaskStage.alloc && tasks.stage[row] < TaskStage.stageOut) {
      state.releasePins(row);
    }
    if (tasks.waiting[row] === WaitReason.memory) this.leaveMemoryLine(row);
    if (ran) poisonOutputs(x, row, Status.badArguments);
    const run = state.runOf(row);
    if (remote !== undefined && state.isMovement(row)) remote.tasks.failing(row, error);
    else if (run.slot === INTERNAL_RUN) {
      this.onInternalLoss?.(row, error);
      this.onInternalFailure?.(row, error);
    }
    // The failure is recorded before the end: the last task of a run ends the run, and it must not count as
    // successful. A task that is done is not dropped.
    tasks.stage[row] = TaskStage.done;
    if (run.slot !== INTERNAL_RUN) this.parts.failures.failRun(run, error);
    this.count(row, ran ? Status.badArguments : Status.cancelled);
    this.parts.runs.taskIsOver(run);
    this.parts.joins.lost(row);
    this.parts.joins.failed(row);
    if (ran) this.forget(row);
    else this.parts.dropped.drop(row);
  }

  /** The task in `row`, which waits for memory, fails: its ticket passes to the next task. */
  private leaveMemoryLine(row: number): void {
    const { spaces, tasks } = this.state;
    for (const space of spaces) {
      space.endCompaction(tasks.idOf(row));
      space.wakeLine();
    }
  }

  /** The task in `row` holds no resources yet and has no work to do. */
  skip(row: number): void {
    this.count(row, Status.ok);
    this.joined(row);
  }

  /** Counts the task's end; the caller handles its run, its row and its successors. */
  private count(row: number, status: number): void {
    const { state, parts } = this;
    if (state.observer !== undefined) state.observer.retired(row, status);
    parts.deviceChoice.load[state.tasks.device[row]]--;
    parts.dispatcher.leaveLane(row, status);
    state.progressed++;
  }

  /** The last step of a row: it releases the successors that were not released at issue. */
  private forget(row: number): void {
    const { tasks, x } = this.state;
    const { edges } = this.parts.dependencies;
    tasks.stage[row] = TaskStage.done;
    tasks.waiting[row] = 0;
    for (let n = tasks.successors[row]; n >= 0; ) {
      this.parts.dispatcher.releaseOne(edges.value[n] >> 1, row);
      n = edges.free(n);
    }
    tasks.successors[row] = -1;
    if (tasks.controlEvents[row] >= 0) {
      tasks.controlEvents[row] = x.eventNodes.freeList(tasks.controlEvents[row]);
    }
  }
}
