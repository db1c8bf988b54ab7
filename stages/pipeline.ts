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
  tasks.waiting[row] = 0;
  const stage = tasks.stage[row];
  if (stage === TaskStage.ready) tasks.since[row] = x.now;
  // On the fast path no stage waits up to exec, and no times are taken: a stage without a time of its own counts as passed
  // with the stage before it.
  if (stage !== TaskStage.exec && !(stage <= TaskStage.alloc && allResident(x, row))) {
    const outcome = prepare(x, row, stage);
    if (outcome !== Outcome.advance) return outcome;
  }
  tasks.stage[row] = TaskStage.exec;
  x.watcher?.entered(row, TaskStage.exec);
  const outcome = x.hasLanes && isMessage(x, row) ? execMessage(x, row) : exec(x, row);
  if (outcome === Outcome.issued) x.hooks.issued(row);
  return outcome;
}

/** Calls the stages before exec, from `stage` on. Returns the outcome of the last one. */
function prepare(x: StageContext, row: number, stage: number): number {
  const { tasks } = x;
  if (stage <= TaskStage.alloc) {
    const outcome = enter(x, row, TaskStage.alloc, alloc);
    if (outcome !== Outcome.advance) return outcome;
    tasks.since[row] = x.now;
    if (x.tracing) tasks.stamp(row, TaskTime.alloc, x.now);
  }
  if (stage <= TaskStage.stageIn) {
    const outcome = enter(x, row, TaskStage.stageIn, stageIn);
    if (outcome !== Outcome.advance) return outcome;
    if (x.tracing) tasks.stamp(row, TaskTime.stageIn, x.now);
  }
  const outcome = enter(x, row, TaskStage.commIn, commIn);
  if (outcome === Outcome.advance && x.tracing) tasks.stamp(row, TaskTime.commIn, x.now);
  return outcome;
}

function enter(
  x: StageContext,
  row: number,
  stage: number,
  call: (x: StageContext, row: number) => number,
): number {
  x.tasks.stage[row] = stage;
  x.watcher?.entered(row, stage);
  return call(x, row);
}
