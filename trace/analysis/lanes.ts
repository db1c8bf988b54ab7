// Busy and idle time of every lane. For execution lanes each idle nanosecond has one reason, so that
// busy + the sum over reasons = the makespan, exactly.
import { TaskTime } from '../format.js';
import {
  isExecutionLane,
  laneName,
  spaceName,
  type Trace,
  tasksByLane,
  transfersByLane,
} from '../trace.js';
import { covered } from './stolen.js';
import { type IdleReason, IdleReasonNumber, idleReasons, type Waits } from './waits.js';

/** An execution lane. Times in nanoseconds. */
export interface LaneUse {
  readonly lane: string;
  readonly rank: number;
  readonly kind: string;
  readonly space: string;
  readonly tasks: number;
  /**
   * Some lane of its kind ran a task; idle lanes of other kinds tell nothing about the run. The JavaScript lane
   * counts only if no other lane ran a task: it shares its thread with the engine.
   */
  readonly used: boolean;
  readonly busy: number;
  /** Part of `busy` in which the lane's thread had no core: kernels took that much longer. */
  readonly stretched: number;
  readonly idle: { readonly [reason in IdleReason]: number };
}

/** A transfer lane. */
export interface TransferLaneUse {
  readonly lane: string;
  readonly rank: number;
  readonly kind: string;
  readonly transfers: number;
  readonly bytes: number;
  readonly busy: number;
  readonly idle: number;
  /** Bytes per second while busy; 0 without transfers. */
  readonly bandwidth: number;
}

/** Receives an idle span of an execution lane; `task` is the row of the task it waited for, or -1 after the last. */
export type IdleVisitor = (
  lane: number,
  from: number,
  to: number,
  reason: number,
  task: number,
) => void;

/** Visits every idle span of every execution lane between the trace's start and end, lane by lane, in time order. */
export function forEachIdle(trace: Trace, waits: Waits, visit: IdleVisitor): void {
  const byLane = tasksByLane(trace);
  const starts = trace.tasks.times[TaskTime.execStart];
  const ends = trace.tasks.times[TaskTime.execEnd];
  trace.lanes.forEach((lane, index) => {
    if (!isExecutionLane(lane)) return;
    let at = trace.start;
    for (let i = byLane.start[index]; i < byLane.start[index + 1]; i++) {
      const task = byLane.items[i];
      if (starts[task] > at) {
        waits.split(task, at, starts[task], (from, to, reason) => {
          visit(index, from, to, reason, task);
        });
      }
      if (ends[task] > at) at = ends[task];
    }
    if (trace.end > at) visit(index, at, trace.end, IdleReasonNumber.noTask, -1);
  });
}

/** Busy and idle time of the execution lanes. Those of JavaScript without tasks are left out. */
export function laneUse(trace: Trace, waits: Waits): LaneUse[] {
  const idle = trace.lanes.map(() => new Float64Array(idleReasons.length));
  forEachIdle(trace, waits, (lane, from, to, reason) => {
    idle[lane][reason] += to - from;
  });
  const stretched = stretchedTime(trace, waits);
  const counts = new Int32Array(trace.lanes.length);
  for (let row = 0; row < trace.tasks.count; row++) {
    if (trace.tasks.lane[row] < counts.length) counts[trace.tasks.lane[row]]++;
  }
  const makespan = trace.end - trace.start;
  const usedKinds = new Set(trace.lanes.filter((_, i) => counts[i] > 0).map((lane) => lane.kind));
  if (usedKinds.size > 1) usedKinds.delete('script');
  const uses: LaneUse[] = [];
  trace.lanes.forEach((lane, index) => {
    if (!isExecutionLane(lane)) return;
    const mayBeUnused = lane.kind === 'script' || lane.kind === 'script-worker';
    if (mayBeUnused && counts[index] === 0) return;
    const total = idle[index].reduce((sum, part) => sum + part, 0);
    uses.push({
      lane: laneName(trace, index),
      rank: lane.rank,
      kind: lane.kind,
      space: spaceName(trace, lane.space),
      tasks: counts[index],
      used: usedKinds.has(lane.kind),
      busy: makespan - total,
      stretched: stretched[index],
      idle: Object.fromEntries(
        idleReasons.map((reason, number) => [reason, idle[index][number]]),
      ) as { [reason in IdleReason]: number },
    });
  });
  return uses;
}

/** Per lane, the time in which tasks were running there but its thread had no core. */
function stretchedTime(trace: Trace, waits: Waits): Float64Array {
  const byLane = tasksByLane(trace);
  const starts = trace.tasks.times[TaskTime.execStart];
  const ends = trace.tasks.times[TaskTime.execEnd];
  const stretched = new Float64Array(trace.lanes.length);
  trace.lanes.forEach((lane, index) => {
    if (!isExecutionLane(lane)) return;
    const still = waits.stolen.standstill(index);
    if (still.from.length === 0) return;
    let at = trace.start;
    for (let i = byLane.start[index]; i < byLane.start[index + 1]; i++) {
      const task = byLane.items[i];
      stretched[index] += covered(still, Math.max(at, starts[task]), ends[task]);
      if (ends[task] > at) at = ends[task];
    }
  });
  return stretched;
}

/** Busy time (the union of its transfers) and bytes of the transfer lanes. */
export function transferLaneUse(trace: Trace): TransferLaneUse[] {
  const byLane = transfersByLane(trace);
  const { start, end, bytes } = trace.transfers;
  const makespan = trace.end - trace.start;
  const uses: TransferLaneUse[] = [];
  trace.lanes.forEach((lane, index) => {
    if (isExecutionLane(lane)) return;
    let at = trace.start;
    let busy = 0;
    let moved = 0;
    for (let i = byLane.start[index]; i < byLane.start[index + 1]; i++) {
      const row = byLane.items[i];
      moved += bytes[row];
      const from = Math.max(at, start[row]);
      if (end[row] > from) {
        busy += end[row] - from;
        at = end[row];
      }
    }
    uses.push({
      lane: laneName(trace, index),
      rank: lane.rank,
      kind: lane.kind,
      transfers: byLane.start[index + 1] - byLane.start[index],
      bytes: moved,
      busy,
      idle: makespan - busy,
      bandwidth: busy > 0 ? (moved / busy) * 1e9 : 0,
    });
  });
  return uses;
}
