// Lower bounds of the makespan, in the sense of Graham's list-scheduling bounds: no schedule on these lanes is
// shorter than the longest chain of dependent kernels, nor than the work divided by the lanes that can do it.
import { TaskTime } from '../format.js';
import type { Trace } from '../trace.js';
import type { TaskGraph } from './graph.js';
import type { LaneUse } from './lanes.js';

/** Bounds in nanoseconds, ratios between 0 and 1. */
export interface Bounds {
  /** Kernel time of the longest chain of dependent tasks: with endless lanes and no transfers. */
  readonly criticalPath: number;
  /** Kernel time divided by the lanes, for the busiest kind of lane: with no dependencies and no transfers. */
  readonly area: number;
  /** Kernel time over lanes x makespan, for the lanes in use (see `LaneUse.used`). */
  readonly efficiency: number;
  /** The larger bound over the makespan: 1 means that no schedule could be faster. */
  readonly ofBound: number;
}

/** Kernel time of the longest chain of dependent tasks. */
export function longestChain(trace: Trace, graph: TaskGraph): number {
  const starts = trace.tasks.times[TaskTime.execStart];
  const ends = trace.tasks.times[TaskTime.execEnd];
  const chain = new Float64Array(trace.tasks.count);
  let longest = 0;
  for (const row of graph.order) {
    let before = 0;
    for (let i = graph.predecessors.start[row]; i < graph.predecessors.start[row + 1]; i++) {
      before = Math.max(before, chain[graph.predecessors.items[i]]);
    }
    chain[row] = before + ends[row] - starts[row];
    longest = Math.max(longest, chain[row]);
  }
  return longest;
}

/** All bounds of a trace. */
export function bounds(trace: Trace, graph: TaskGraph, lanes: readonly LaneUse[]): Bounds {
  const makespan = trace.end - trace.start;
  const used = lanes.filter((lane) => lane.used);
  const byKind = new Map<string, { busy: number; lanes: number }>();
  for (const lane of used) {
    const kind = byKind.get(lane.kind) ?? { busy: 0, lanes: 0 };
    byKind.set(lane.kind, kind);
    kind.busy += lane.busy;
    kind.lanes++;
  }
  const area = Math.max(0, ...[...byKind.values()].map((kind) => kind.busy / kind.lanes));
  const busy = used.reduce((sum, lane) => sum + lane.busy, 0);
  const criticalPath = longestChain(trace, graph);
  return {
    criticalPath,
    area,
    efficiency: makespan > 0 && used.length > 0 ? busy / (used.length * makespan) : 0,
    ofBound: makespan > 0 ? Math.max(criticalPath, area) / makespan : 0,
  };
}
