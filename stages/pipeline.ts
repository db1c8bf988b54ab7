// Chains the stages up to exec. A row enters at its current stage and moves on until it is issued, waits, or fails.
// A wake-up enters again at the stage that waited. The engine calls stage-out and finalizes the task when it sees its end
// (scheduler/engine/retirement.ts).
import { NO_QUEUE } from '../devices/handles.js';
import { TaskTime } from '../trace/format.js';
import { alloc, allResident } from './alloc.js';
import { commIn } from './comm-in.js';
import type { StageContext } from './context.js';
import { exec } from './exec.js';
import { execMessage } from './exec-message.js';
import { Outcome } from './stage.js';
import { stageIn } from './stage-in.js';
import { TaskStage } from './task-table.js';

/** Whether the task is a send or a receive that has a lane. */
function isMessage({ tasks, classes }: StageContext, row: number): boolean {
  return classes[tasks.classOf[row]].network !== undefined && tasks.target[row] !== NO_QUEUE;
}

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
  // On the fast path no stage waits up to exec, and no times are taken: a stage without a time of its own counts as passed
  // with the stage before it.
  if (stage === TaskStage.alloc && allResident(x, row)) stage = TaskStage.exec;
  if (stage === TaskStage.alloc) {
    tasks.stage[row] = TaskStage.alloc;
    x.watcher?.entered(row, TaskStage.alloc);
    outcome = alloc(x, row);
    if (outcome !== Outcome.advance) return outcome;
    tasks.since[row] = x.now;
    if (x.tracing) tasks.stamp(row, TaskTime.alloc, x.now);
    stage = TaskStage.stageIn;
  }
  if (stage === TaskStage.stageIn) {
    tasks.stage[row] = TaskStage.stageIn;
    x.watcher?.entered(row, TaskStage.stageIn);
    outcome = stageIn(x, row);
    if (outcome !== Outcome.advance) return outcome;
    if (x.tracing) tasks.stamp(row, TaskTime.stageIn, x.now);
    stage = TaskStage.commIn;
  }
  if (stage === TaskStage.commIn) {
    tasks.stage[row] = TaskStage.commIn;
    x.watcher?.entered(row, TaskStage.commIn);
    outcome = commIn(x, row);
    if (outcome !== Outcome.advance) return outcome;
    if (x.tracing) tasks.stamp(row, TaskTime.commIn, x.now);
  }
  tasks.stage[row] = TaskStage.exec;
  x.watcher?.entered(row, TaskStage.exec);
  outcome = x.hasLanes && isMessage(x, row) ? execMessage(x, row) : exec(x, row);
  if (outcome === Outcome.issued) {
    x.hooks.issued(row);
  }
  return outcome;
}
