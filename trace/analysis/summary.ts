// The summary of a trace: the first questions of a person, answered as plain data. `summary-text.ts` prints it.
import { TaskFlag } from '../format.js';
import type { Trace } from '../trace.js';
import { type Advice, advise, type RankThreads, rankThreads } from './advice.js';
import { type Bounds, bounds } from './bounds.js';
import {
  type ClassUse,
  classUse,
  type Distribution,
  slowestTasks,
  startLatency,
  type TaskUse,
} from './classes.js';
import { type LaneUse, laneUse, type TransferLaneUse, transferLaneUse } from './lanes.js';
import { type MemoryUse, memoryUse } from './memory.js';
import { type Overlap, overlaps } from './overlap.js';
import { type PlanUse, planUse } from './plans.js';
import { type Traffic, traffic } from './traffic.js';
import { type IdleReason, idleReasons, Waits } from './waits.js';

/** Stable keys; more may be added. Times in nanoseconds, sizes in bytes. */
export interface TraceSummary {
  readonly program: string;
  readonly ranks: number;
  readonly options: Readonly<Record<string, unknown>>;
  readonly simulated: boolean;
  /** From the first insertion to the last end in the trace. */
  readonly makespan: number;
  readonly tasks: number;
  readonly failed: number;
  readonly cancelled: number;
  /** What was played of each plan. */
  readonly plans: readonly PlanUse[];
  readonly bounds: Bounds;
  /** Execution lanes: busy + idle of all reasons = makespan for each. */
  readonly lanes: readonly LaneUse[];
  /** Sums over the execution lanes in use (`LaneUse.used`). */
  readonly busy: number;
  /** Part of `busy` in which the lane's thread had no core. */
  readonly stretched: number;
  readonly idle: { readonly [reason in IdleReason]: number };
  /** The remedy for the idle time of each reason. */
  readonly advice: readonly Advice[];
  readonly threads: readonly RankThreads[];
  readonly transferLanes: readonly TransferLaneUse[];
  readonly traffic: Traffic;
  readonly classes: readonly ClassUse[];
  readonly slowest: readonly TaskUse[];
  /** From ready to running. */
  readonly latency: Distribution;
  readonly memory: readonly MemoryUse[];
  readonly overlap: readonly Overlap[];
  /** The missing parts of the trace, in words. */
  readonly problems: readonly string[];
}

/** Summarises a trace. `waits` may be passed if the caller needs it elsewhere too. */
export function summarize(trace: Trace, waits: Waits = new Waits(trace)): TraceSummary {
  const lanes = laneUse(trace, waits);
  const inUse = lanes.filter((lane) => lane.used);
  const { tasks } = trace;
  let failed = 0;
  let cancelled = 0;
  for (let row = 0; row < tasks.count; row++) {
    if (tasks.flags[row] & TaskFlag.failed) failed++;
    if (tasks.flags[row] & TaskFlag.cancelled) cancelled++;
  }
  const makespan = trace.end - trace.start;
  const transferLanes = transferLaneUse(trace);
  const threads = rankThreads(trace);
  const classes = classUse(trace);
  const stretched = inUse.reduce((sum, lane) => sum + lane.stretched, 0);
  const kernels = classes.reduce((sum, use) => sum + use.total, 0);
  const kernel = Math.max(0, kernels - stretched) / Math.max(1, tasks.count);
  const first = trace.ranks[0].header;
  const problems = [...trace.problems];
  const unordered = tasks.count - waits.graph.order.length;
  if (unordered > 0) {
    problems.push(
      `${unordered} tasks are part of a cycle of recorded dependencies; chains leave them out`,
    );
  }
  return {
    program: first.program,
    ranks: first.ranks,
    options: first.options,
    simulated: first.simulated,
    makespan,
    tasks: tasks.count,
    failed,
    cancelled,
    plans: planUse(trace),
    bounds: bounds(trace, waits.graph, lanes),
    lanes,
    busy: inUse.reduce((sum, lane) => sum + lane.busy, 0),
    stretched,
    idle: Object.fromEntries(
      idleReasons.map((reason) => [
        reason,
        inUse.reduce((sum, lane) => sum + lane.idle[reason], 0),
      ]),
    ) as TraceSummary['idle'],
    advice: advise({ makespan, lanes, transferLanes, threads, kernel }),
    threads,
    transferLanes,
    traffic: traffic(trace),
    classes,
    slowest: slowestTasks(trace),
    latency: startLatency(trace),
    memory: memoryUse(trace),
    overlap: overlaps(trace),
    problems,
  };
}
