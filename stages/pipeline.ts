// Chains the six stages. A row enters at its current stage and is moved on until it is issued, waits, or fails;
// a wake-up enters again at the stage that waited. Completion enters at stage-out.
import { TaskTime } from '../trace/format.js';
import { alloc, allResident } from './alloc.js';
import { commIn } from './comm-in.js';
import type { StageContext } from './context.js';
import { exec } from './exec.js';
import { finalize } from './finalize.js';
import { Outcome } from './stage.js';
import { stageIn } from './stage-in.js';
import { stageOut } from './stage-out.js';
import { TaskStage } from './task-table.js';

/** Moves a task on from alloc, stage-in, comm-in or exec. Returns the last outcome. */
export function advance(x: StageContext, row: number): number {
  const { tasks } = x;
  let outcome: number = Outcome.advance;
  tasks.waiting[row] = 0;
  let stage = tasks.stage[row];
  if (stage === TaskStage.ready) {
    stage = TaskStage.alloc;
    tasks.since[row] = x.now;
  }
  // On the fast path there is nothing to wait for up to exec, and no times are taken: a stage without a time of its own
  // counts as passed with the one before it.
  if (stage === TaskStage.alloc && allResident(x, row)) stage = TaskStage.exec;
  if (stage === TaskStage.alloc) {
    tasks.stage[row] = TaskStage.alloc;
    outcome = alloc(x, row);
    if (outcome !== Outcome.advance) return outcome;
    tasks.since[row] = x.now;
    if (x.tracing) tasks.stamp(row, TaskTime.alloc, x.now);
    stage = TaskStage.stageIn;
  }
  if (stage === TaskStage.stageIn) {
    tasks.stage[row] = TaskStage.stageIn;
    outcome = stageIn(x, row);
    if (outcome !== Outcome.advance) return outcome;
    if (x.tracing) tasks.stamp(row, TaskTime.stageIn, x.now);
    stage = TaskStage.commIn;
  }
  if (stage === TaskStage.commIn) {
    tasks.stage[row] = TaskStage.commIn;
    outcome = commIn(x, row);
    if (outcome !== Outcome.advance) return outcome;
    if (x.tracing) tasks.stamp(row, TaskTime.commIn, x.now);
  }
  tasks.stage[row] = TaskStage.exec;
  outcome = exec(x, row);
  if (outcome === Outcome.issued) {
    x.hooks.issued(row);
  }
  return outcome;
}

/** Takes a task whose execution ended through stage-out and finalize. */
export function complete(x: StageContext, row: number, status: number): void {
  const { tasks } = x;
  tasks.stage[row] = TaskStage.stageOut;
  if (status === 0) stageOut(x, row);
  tasks.stage[row] = TaskStage.finalize;
  finalize(x, row);
  x.hooks.retired(row, status);
}
