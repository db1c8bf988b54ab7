// What failures do: a run that fails drops what was not issued and lets end what is under way; what was computed behind
// a failed transfer or task is marked, so that nobody takes it for a value.
//
// Invariant: when a run is over, every byte and pin that its tasks held has been given back, and every datum without a usable
// value is poisoned, or will be before anyone who is ordered after the failed or dropped writer (dropped-tasks.ts).
import { Status } from '../devices/backend.js';
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import { NO_TASK } from '../devices/memory-space.js';
import { releasePins } from '../stages/finalize.js';
import { poisonOutputs } from '../stages/poison.js';
import { TaskStage } from '../stages/task-table.js';
import { AccessMode } from '../trace/format.js';
import { type Engine, INTERNAL_RUN, NOT_ISSUED } from './engine.js';
import type { RunState } from './run-state.js';
import { BODY_QUEUED } from './script-bodies.js';

const NO_RUN = -1;

export class FailureEffects {
  /** Issued tasks whose inputs, directly or not, come from a failed transfer: their results are garbage. */
  readonly tainted: Set<number> = new Set();
  private readonly engine: Engine;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /**
   * Of the failures seen in one pass the first in program order counts: on a GPU, tasks behind a failed one may have run on
   * what it left before its run was cancelled, and failed of it.
   */
  taskFailed(run: RunState, row: number, error: HeadraceError): void {
    const { tasks, x } = this.engine;
    const id = tasks.idOf(row);
    if (run.error === undefined) this.failRun(run, error);
    else if (run.failedAt === x.now && ((id - run.failedTask) | 0) < 0) run.error = error;
    else return;
    run.failedTask = id;
    run.failedAt = x.now;
  }

  /** First failure of a run: what was not issued is dropped, what is under way ends, then the run rejects. */
  failRun(run: RunState, error: HeadraceError): void {
    if (run.error !== undefined) return;
    const { engine } = this;
    const { tasks, backend } = engine;
    run.error = error;
    if (guards.cancelQueued) backend.setCancelled(run.slot, true);
    engine.ranks?.runFailed(run, error);
    engine.tracer?.runFailed(error, backend.now());
    for (let id = tasks.head; id !== tasks.next; id = (id + 1) | 0) {
      const row = id & tasks.mask;
      const stage = tasks.stage[row];
      if (tasks.run[row] !== run.slot || stage === TaskStage.done || stage === TaskStage.free)
        continue;
      const canDrop = tasks.queue[row] === NOT_ISSUED || tasks.queue[row] === BODY_QUEUED;
      if (!canDrop || stage >= TaskStage.stageOut) continue;
      if (guards.dropUnissued) this.dropTask(row, run);
    }
    // Tickets of dropped tasks pass on.
    for (const space of engine.spaces) space.freed = true;
    engine.wake();
  }

  /** A task of a failed run that was not issued is over. */
  dropTask(row: number, run: RunState): void {
    const { engine } = this;
    const { tasks, x } = engine;
    const stage = tasks.stage[row];
    if (stage > TaskStage.alloc && guards.dropReleasesPins) releasePins(x, row);
    if (stage >= TaskStage.ready) engine.placement.load[tasks.device[row]]--;
    if (stage > TaskStage.ready || engine.isMovement(row)) engine.starter.leaveLane(row);
    for (const space of engine.spaces) {
      if (space.compactingFor === tasks.idOf(row)) space.compactingFor = NO_TASK;
    }
    this.tainted.delete(tasks.idOf(row));
    engine.dropped.drop(row);
    run.retired++;
    run.cancelledTasks++;
    engine.progressed++;
    if (run.sealed && run.live === 0) engine.runIsOver(run);
  }

  /** The transfer in row `t` ended; if it failed, every open run fails: any may have data behind it. */
  transferDone(t: number, queue: number, seq: number, status: number): void {
    const { engine } = this;
    const { transfers, directory, backend } = engine;
    engine.tracer?.transferDone(t, queue, seq);
    if (status === Status.ok) return;
    const d = transfers.datum[t];
    this.taintReaders(d, transfers.version[t]);
    const datum = directory.info[d]?.name ?? `#${d}`;
    const error = new HeadraceError(
      status === Status.deviceLost ? 'ERR_DEVICE_LOST' : 'ERR_TRANSFER_FAILED',
      `copying datum '${datum}' from ${engine.spaceName(transfers.source[t])} to ` +
        `${engine.spaceName(transfers.destination[t])} failed: ${backend.lastError(queue) || `status ${status}`}`,
      { datum, stage: 'stage-in', device: engine.spaceName(transfers.destination[t]) },
    );
    for (const run of engine.runs) {
      if (run !== undefined && run.slot !== INTERNAL_RUN && !run.over) this.failRun(run, error);
    }
  }

  /**
   * Marks the issued tasks that read version `version` of datum `d`, whose copy did not arrive, and all that read
   * what those write.
   */
  private taintReaders(d: number, version: number): void {
    if (!guards.poisonBehindTransfer) return;
    const { tasks, directory } = this.engine;
    // The first task inserted after the one that wrote this version.
    let writers = (directory.version[d] - version) | 0;
    let from = tasks.next;
    while (from !== tasks.head) {
      const before = (from - 1) | 0;
      if (this.writes(before & tasks.mask, d) && --writers < 0) break;
      from = before;
    }
    const bad = new Map([[d, NO_RUN]]);
    for (let id = from; id !== tasks.next; id = (id + 1) | 0) {
      if (tasks.queue[id & tasks.mask] !== NOT_ISSUED) this.taintIfBad(id & tasks.mask, bad);
    }
  }

  /**
   * Looks at all that is seen to have failed or to have been cancelled on a queue, before any of it and of what ran
   * behind it is retired: what it should have written is poisoned, and the issued tasks that read that, directly or
   * not, are marked. Those of its own run are cancelled with it; those of other runs have computed from nothing.
   */
  markFailed(): void {
    const { tasks, submission, backend, x } = this.engine;
    const bad = new Map<number, number>();
    for (let id = tasks.head; id !== tasks.next; id = (id + 1) | 0) {
      const row = id & tasks.mask;
      const queue = tasks.queue[row];
      if (queue === NOT_ISSUED) continue;
      const isSeen =
        queue >= 0 &&
        tasks.stage[row] === TaskStage.exec &&
        submission.happened(queue, tasks.seq[row]);
      const status = isSeen ? backend.status(queue, tasks.seq[row]) : Status.ok;
      if (status === Status.ok) {
        this.taintIfBad(row, bad);
        continue;
      }
      poisonOutputs(x, row, status);
      this.setOutputs(row, bad, tasks.run[row]);
    }
  }

  /**
   * Marks the issued task in `row` if it reads data of `bad`, and adds what it writes; what it writes without that is
   * good again. `bad` has the run by whose failure its data are bad, which cancels its own tasks, or NO_RUN.
   */
  private taintIfBad(row: number, bad: Map<number, number>): void {
    if (bad.size === 0) return;
    const { tasks, x } = this.engine;
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
    // Tasks that are inserted before it is seen to end find out at once.
    poisonOutputs(x, row, Status.driver);
  }

  /** What the task in `row` writes is bad because of `run`, or (undefined) good. */
  private setOutputs(row: number, bad: Map<number, number>, run: number | undefined): void {
    const { tasks, x } = this.engine;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      if (run === undefined) bad.delete(tasks.flowDatum[first + i]);
      else bad.set(tasks.flowDatum[first + i], run);
    }
  }

  /** Whether the task of a row was issued and writes datum `d`. */
  private writes(row: number, d: number): boolean {
    const { tasks, x } = this.engine;
    if (tasks.queue[row] === NOT_ISSUED) return false;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] !== AccessMode.read && tasks.flowDatum[first + i] === d) return true;
    }
    return false;
  }
}
