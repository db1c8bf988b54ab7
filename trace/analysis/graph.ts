// The executed graph, by the waits of tasks for tasks. Recorded dependencies, the release that was recorded with the task,
// and messages from a task of another rank (one edge per message). Rows are task rows.
import { group, type Lists } from '../columns.js';
import { TransferReason } from '../format.js';
import type { Trace } from '../trace.js';

/** Predecessors, successors, and an order in which predecessors come first. */
export interface TaskGraph {
  readonly predecessors: Lists;
  readonly successors: Lists;
  /** Task rows, predecessors first. Shorter than the number of tasks when the recorded graph has a cycle. */
  readonly order: Int32Array;
}

/** Builds the graph. O(tasks + edges). */
export function taskGraph(trace: Trace): TaskGraph {
  const { tasks } = trace;
  const predecessors = allPredecessors(trace);
  const edges = predecessors.items.length;
  const from = new Int32Array(edges);
  for (let row = 0; row < tasks.count; row++) {
    from.fill(row, predecessors.start[row], predecessors.start[row + 1]);
  }
  const successors = group(tasks.count, predecessors.items, from);
  return {
    predecessors,
    successors,
    order: topologicalOrder(tasks.count, predecessors, successors),
  };
}

function allPredecessors(trace: Trace): Lists {
  const { tasks, transfers } = trace;
  const recorded = tasks.predecessors;
  const extraTask: number[] = [];
  const extraPredecessor: number[] = [];
  for (let row = 0; row < tasks.count; row++) {
    const by = tasks.releasedBy[row];
    if (by < 0 || by === row) continue;
    let known = false;
    for (let i = recorded.start[row]; i < recorded.start[row + 1] && !known; i++) {
      known = recorded.items[i] === by;
    }
    if (known) continue;
    extraTask.push(row);
    extraPredecessor.push(by);
  }
  for (let row = 0; row < transfers.count; row++) {
    const partner = transfers.partner[row];
    if (partner < 0 || transfers.reason[row] === TransferReason.send) continue;
    if (transfers.task[row] < 0 || transfers.task[partner] < 0) continue;
    extraTask.push(transfers.task[row]);
    extraPredecessor.push(transfers.task[partner]);
  }
  if (extraTask.length === 0) return recorded;
  const count = recorded.items.length;
  const rows = new Int32Array(count + extraTask.length);
  const items = new Int32Array(count + extraTask.length);
  for (let row = 0; row < tasks.count; row++) {
    rows.fill(row, recorded.start[row], recorded.start[row + 1]);
  }
  items.set(recorded.items);
  rows.set(extraTask, count);
  items.set(extraPredecessor, count);
  return group(tasks.count, rows, items);
}

// Kahn's algorithm.
function topologicalOrder(count: number, predecessors: Lists, successors: Lists): Int32Array {
  const waiting = new Int32Array(count);
  const order = new Int32Array(count);
  let filled = 0;
  for (let row = 0; row < count; row++) {
    waiting[row] = predecessors.start[row + 1] - predecessors.start[row];
    if (waiting[row] === 0) order[filled++] = row;
  }
  for (let at = 0; at < filled; at++) {
    const row = order[at];
    for (let i = successors.start[row]; i < successors.start[row + 1]; i++) {
      const next = successors.items[i];
      if (--waiting[next] === 0) order[filled++] = next;
    }
  }
  return order.subarray(0, filled);
}
