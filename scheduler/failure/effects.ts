// The effects of failures. A failed run drops its tasks that were not issued and lets issued tasks end. Results that
// were computed behind a failed transfer or task are marked, so that no task uses them as a value.
//
// Invariant: when a run is over, its tasks have given back all bytes and pins. Every datum without a usable value is
// poisoned, or will be before any task runs that is ordered after the failed or dropped writer (dropped-tasks.ts).

import { Status } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { DatumId, QueueId, TaskId } from '../../devices/handles.js';
import { Execution, isCommand, TaskStage } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import type { Dependencies } from '../engine/dependencies.js';
import type { DeviceChoice } from '../engine/device-choice.js';
import type { Dispatcher } from '../engine/dispatcher.js';
import type { Joins } from '../engine/joins.js';
import { INTERNAL_RUN, type RunState } from '../engine/run-state.js';
import type { Runs } from '../engine/runs.js';
import type { EngineState } from '../engine/state.js';
import type { DroppedTasks } from './dropped-tasks.js';
import { poisonOutputs } from './poison.js';

const NO_RUN = -1;

/** The parts in which a failure has effects. */
interface FailureParts {
  readonly dependencies: Pick<Dependencies, 'hasGroups'>;
  readonly deviceChoice: Pick<DeviceChoice, 'load'>;
  readonly dispatcher: Pick<Dispatcher, 'leaveLane'>;
  readonly dropped: Pick<DroppedTasks, 'drop'>;
  readonly runs: Pick<Runs, 'taskIsOver'>;
  /** The spawned tasks, which run before tasks that were inserted before them. */
  readonly joinsOf: () => Pick<Joins, 'hasSpawned' | 'lost'>;
}

export class FailureEffects {
  /** Issued tasks whose inputs, directly or not, come from a failed transfer: their results are garbage. */
  readonly tainted: Set<number> = new Set();
  private readonly state: EngineState;
  private readonly parts: FailureParts;

  constructor(state: EngineState, parts: FailureParts) {
    this.state = state;
    this.parts = parts;
  }

  /**
   * Of the failures seen in one pass, the first in program order counts. On a GPU, tasks behind a failed task may
   * have run on its incomplete output before its run was cancelled, and may have failed because of it.
   */
  taskFailed(run: RunState, row: number, error: HeadraceError): void {
    const { tasks, x } = this.state;
    const id = tasks.idOf(row);
    if (run.error === undefined) this.failRun(run, error);
    else if (run.failedAt === x.now && ((id - run.failedTask) | 0) < 0) run.error = error;
    else return;
    run.failedTask = id;
    run.failedAt = x.now;
  }

  /** First failure of a run: tasks that were not issued are dropped, issued tasks end, and then the run rejects. */
  failRun(run: RunState, error: HeadraceError): void {
    if (run.error !== undefined) return;
    const { state } = this;
    const { tasks, backend } = state;
    run.error = error;
    if (guards.cancelQueued) backend.setCancelled(run.slot, true);
    state.observer?.runFailed(run, error);
    state.remote?.runFailed(run, error);
    for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      const row = id & tasks.mask;
      const stage = tasks.stage[row];
      if (tasks.run[row] !== run.slot || stage === TaskStage.done || stage === TaskStage.free)
        continue;
      const how = tasks.execution[row];
      const canDrop = how === Execution.none || how === Execution.bodyQueued;
      if (!canDrop || stage >= TaskStage.stageOut) continue;
      if (guards.dropUnissued) this.dropTask(row, run);
    }
    // The tickets of dropped tasks pass to the next tasks.
    for (const space of state.spaces) space.wakeLine();
    state.wake();
  }

  /** A task of a failed run that was not issued is over. */
  dropTask(row: number, run: RunState): void {
    const { state, parts } = this;
    const { tasks } = state;
    const stage = tasks.stage[row];
    if (stage > TaskStage.alloc && guards.dropReleasesPins) state.releasePins(row);
    if (stage >= TaskStage.ready) parts.deviceChoice.load[tasks.device[row]]--;
    if (stage > TaskStage.ready || state.isMovement(row))
      parts.dispatcher.leaveLane(row, Status.cancelled);
    for (const space of state.spaces) space.endCompaction(tasks.idOf(row));
    this.tainted.delete(tasks.idOf(row));
    parts.joinsOf().lost(row);
    parts.dropped.drop(row);
    run.cancelledTasks++;
    state.progressed++;
    parts.runs.taskIsOver(run);
  }

  /** The transfer in row `t` ended. If it failed, every open run fails, because any run may depend on its data. */
  transferDone(t: number, queue: QueueId, seq: number, status: number): void {
    const { state } = this;
    const { transfers, directory, backend } = state;
    state.observer?.transferDone(t, queue, seq, status);
    if (status === Status.ok) return;
    const d = transfers.datum[t];
    this.taintReaders(d, transfers.version[t]);
    const datum = directory.info[d]?.name ?? `#${d}`;
    const error = new HeadraceError(
      status === Status.deviceLost ? 'ERR_DEVICE_LOST' : 'ERR_TRANSFER_FAILED',
      `copying datum '${datum}' from ${state.spaceName(transfers.source[t])} to ` +
        `${state.spaceName(transfers.destination[t])} failed: ${backend.lastError(queue) || `status ${status}`}`,
      { datum, stage: 'stage-in', device: state.spaceName(transfers.destination[t]) },
    );
    for (const run of state.runs) {
      if (run !== undefined && run.slot !== INTERNAL_RUN && !run.over) this.failRun(run, error);
    }
  }

  /**
   * Marks the issued tasks that read version `version` of datum `d`, whose copy did not arrive, and all tasks that
   * read their outputs.
   */
  private taintReaders(d: DatumId, version: number): void {
    if (!guards.poisonBehindTransfer) return;
    const { tasks, directory } = this.state;
    // The first task inserted after the one that wrote this version. Where spawned tasks have run between others, or tasks
    // commute, the numbers of the writers do not show it: then all tasks that read the datum count.
    const inOrder = !this.parts.joinsOf().hasSpawned && !this.parts.dependencies.hasGroups;
    let writers = (directory.version[d] - version) | 0;
    let from = tasks.next;
    while (from !== tasks.head) {
      const before = ((from - 1) | 0) as TaskId;
      if (this.writes(before & tasks.mask, d) && --writers < 0 && inOrder) break;
      from = before;
    }
    const bad = new Map([[d, NO_RUN]]);
    for (let id = from; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      if (tasks.execution[id & tasks.mask] !== Execution.none)
        this.taintIfBad(id & tasks.mask, bad);
    }
  }

  /**
   * Handles all failed and cancelled commands that are visible on a queue, before any of these tasks or of the later
   * tasks is retired. It poisons their outputs and marks the issued tasks that read these outputs, directly or not.
   * Marked tasks of the same run are cancelled with it; marked tasks of other runs have computed without a valid
   * input.
   */
  markFailed(): void {
    // Data on which a task that failed commutes with others: each of these may have come behind it.
    const shared = new Map<number, number>();
    while (!this.markInOrder(shared));
  }

  /** Looks at all tasks in program order; false when it has found another datum for `shared`, and must look again. */
  private markInOrder(shared: Map<number, number>): boolean {
    const { tasks, submission, backend, x } = this.state;
    const bad = new Map<number, number>();
    for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      const row = id & tasks.mask;
      const how = tasks.execution[row];
      if (how === Execution.none) continue;
      const queue = tasks.queue[row];
      const isSeen =
        isCommand(how) &&
        tasks.stage[row] === TaskStage.exec &&
        submission.happened(queue, tasks.seq[row]);
      const status = isSeen ? backend.status(queue, tasks.seq[row]) : Status.ok;
      if (status === Status.ok) {
        if (shared.size > 0) this.spoilShared(row, bad, shared);
        this.taintIfBad(row, bad);
      } else {
        poisonOutputs(x, row, status);
        this.setOutputs(row, bad, tasks.run[row]);
      }
      if (bad.size > 0 && this.sharesBad(row, bad, shared)) return false;
    }
    return true;
  }

  /** The data of `shared` on which the task in `row` commutes are bad. */
  private spoilShared(row: number, bad: Map<number, number>, shared: Map<number, number>): void {
    for (const d of this.commutingData(row)) {
      const run = shared.get(d);
      if (run !== undefined) bad.set(d, run);
    }
  }

  /** Adds the bad data on which the task in `row` commutes to `shared`; true if there is a new one. */
  private sharesBad(row: number, bad: Map<number, number>, shared: Map<number, number>): boolean {
    if (!this.parts.dependencies.hasGroups || !guards.commuteFailures) return false;
    let found = false;
    for (const d of this.commutingData(row)) {
      const run = bad.get(d);
      if (run === undefined || shared.has(d)) continue;
      shared.set(d, run);
      found = true;
    }
    return found;
  }

  private commutingData(row: number): DatumId[] {
    const { tasks, x } = this.state;
    const { commutes } = x.classes[tasks.classOf[row]];
    const data: DatumId[] = [];
    for (let i = 0; i < (commutes?.length ?? 0); i++)
      if (commutes?.[i] === 1) data.push(tasks.flowDatum[tasks.flowStart[row] + i]);
    return data;
  }

  /**
   * Marks the issued task in `row` if it reads data of `bad`, and adds its outputs to `bad`. If it reads none, its
   * outputs are good again. `bad` maps data to the run whose failure spoiled them, which cancels its own tasks, or to
   * NO_RUN.
   */
  private taintIfBad(row: number, bad: Map<number, number>): void {
    if (bad.size === 0) return;
    const { tasks, x } = this.state;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    let isBad = false;
    let cause = tasks.run[row];
    for (let i = 0; i < modes.length; i++) {
      const run = modes[i] === AccessMode.write ? undefined : bad.get(tasks.flowDatum[first + i]);
      if (run === undefined) continue;
      isBad = true;
      if (run !== cause) cause = NO_RUN;
    }
    this.setOutputs(row, bad, isBad ? cause : undefined);
    if (!isBad || cause !== NO_RUN || tasks.stage[row] >= TaskStage.finalize) return;
    this.tainted.add(tasks.idOf(row));
    // Its run will fail with its end. No lane may send its results before that.
    if (tasks.run[row] !== INTERNAL_RUN) this.state.backend.setCancelled(tasks.run[row], true);
    // Tasks that are inserted before the end of this task is seen get the failure at once.
    poisonOutputs(x, row, Status.driver);
  }

  /** The outputs of the task in `row` are bad because of `run`, or (undefined) good. */
  private setOutputs(row: number, bad: Map<number, number>, run: number | undefined): void {
    const { tasks, x } = this.state;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      if (run === undefined) bad.delete(tasks.flowDatum[first + i]);
      else bad.set(tasks.flowDatum[first + i], run);
    }
  }

  /** Whether the task of a row was issued and writes datum `d`. */
  private writes(row: number, d: DatumId): boolean {
    const { tasks, x } = this.state;
    if (tasks.execution[row] === Execution.none) return false;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] !== AccessMode.read && tasks.flowDatum[first + i] === d) return true;
    }
    return false;
  }
}
