// The causes that each task and transfer waited for, as nodes of one graph: the base of the critical path and of what-if.
// A node is a task row, or the number of tasks plus a transfer row. A cause is a node whose end (for a message: whose
// start) is before the node's start. Causes are recorded facts if there are any (dependencies, transfers made
// for the task, matched messages), else order in time (same lane, last writer, freed memory).
import { group, type Lists } from '../columns.js';
import { TaskTime, TransferReason } from '../format.js';
import { type Trace, tasksByLane, transfersByLane } from '../trace.js';
import type { Waits } from './waits.js';

/** The way in which a cause released its node. The order breaks ties: earlier ones explain more. */
export const causeKinds = [
  /** A predecessor ended. */
  'dependency',
  /** A transfer of the task's data arrived. */
  'transfer',
  /** The message left the other rank. */
  'message',
  /** The task that wrote the datum ended; the transfer could start. */
  'producer',
  /** An earlier copy brought the datum to the source of this one. */
  'copy',
  /** A spill freed memory. */
  'memory',
  /** A task on the device retired: the copies that it had pinned could be evicted. */
  'retirement',
  /** The lane was occupied. */
  'lane',
] as const;

/** Name of a kind of cause. */
export type CauseKind = (typeof causeKinds)[number];

const kindNumber = Object.fromEntries(causeKinds.map((kind, number) => [kind, number])) as {
  [kind in CauseKind]: number;
};

/** Receives a cause: its kind's number, its node, and the moment from which it no longer held the node back. */
export type CauseVisitor = (kind: number, node: number, moment: number) => void;

/** Finds the causes of nodes. Built once; O(tasks + transfers) plus sorting. */
export class Causes {
  readonly trace: Trace;
  readonly waits: Waits;
  /** Tasks, then transfers. */
  readonly count: number;
  /** Start and end of each node's own work. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly #before: Int32Array;
  readonly #writers: Lists;
  readonly #copies: Lists;
  readonly #spills: Lists;
  // Tasks of each memory space by the time they retired.
  readonly #retired: Lists;
  // Tasks of each memory space that waited for memory, by the time they got it.
  readonly #waited: Lists;

  constructor(trace: Trace, waits: Waits) {
    this.trace = trace;
    this.waits = waits;
    const { tasks, transfers } = trace;
    this.count = tasks.count + transfers.count;
    this.start = new Float64Array(this.count);
    this.end = new Float64Array(this.count);
    this.start.set(tasks.times[TaskTime.execStart]);
    this.start.set(transfers.start, tasks.count);
    this.end.set(tasks.times[TaskTime.execEnd]);
    this.end.set(transfers.end, tasks.count);
    this.#before = previousOnLane(trace, this.count);

    const writerDatum: number[] = [];
    const writerTask: number[] = [];
    const { start, items } = tasks.accesses;
    for (let row = 0; row < tasks.count; row++) {
      for (let a = start[row]; a < start[row + 1]; a++) {
        if ((tasks.accessModes[a] & 2) === 0) continue;
        writerDatum.push(items[a]);
        writerTask.push(row);
      }
    }
    this.#writers = this.#byEnd(group(trace.data.count, writerDatum, writerTask));
    const rows = Int32Array.from({ length: transfers.count }, (_, row) => tasks.count + row);
    this.#copies = this.#byEnd(group(trace.data.count, transfers.datum, rows));
    const spilledFrom = Int32Array.from({ length: transfers.count }, (_, row) =>
      transfers.reason[row] === TransferReason.spill && transfers.source[row] < trace.spaces.length
        ? transfers.source[row]
        : -1,
    );
    this.#spills = this.#byEnd(group(trace.spaces.length, spilledFrom, rows));
    this.#waited = waitedForMemory(trace);
    this.#retired = bySpace(trace, tasks.times[TaskTime.finalized], () => true);
  }

  /** True for nodes that are tasks. */
  isTask(node: number): boolean {
    return node < this.trace.tasks.count;
  }

  /** Transfer row of a node. */
  transferRow(node: number): number {
    return node - this.trace.tasks.count;
  }

  /** The row of the task that a node is or works for, or -1. A spill works for the task that got the memory. */
  taskOf(node: number): number {
    if (this.isTask(node)) return node;
    const { transfers } = this.trace;
    const row = this.transferRow(node);
    if (transfers.task[row] >= 0 || transfers.reason[row] !== TransferReason.spill) {
      return transfers.task[row];
    }
    return this.#demander(transfers.source[row], transfers.end[row]);
  }

  // The task that got memory of a space first after `time` and was waiting for it then, or -1.
  #demander(space: number, time: number): number {
    if (space >= this.trace.spaces.length) return -1;
    const { start, items } = this.#waited;
    const { times } = this.trace.tasks;
    let low = start[space];
    let high = start[space + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (times[TaskTime.alloc][items[middle]] >= time) high = middle;
      else low = middle + 1;
    }
    if (low === start[space + 1]) return -1;
    return times[TaskTime.ready][items[low]] < time ? items[low] : -1;
  }

  /** The sending side of a receive node, or -1. */
  senderOf(node: number): number {
    if (this.isTask(node)) return -1;
    const { transfers } = this.trace;
    const row = this.transferRow(node);
    const partner = transfers.partner[row];
    if (partner < 0 || transfers.reason[row] === TransferReason.send) return -1;
    return this.trace.tasks.count + partner;
  }

  /** Visits all causes of a node whose moment is not after `limit` (by default the node's start). */
  forEach(node: number, visit: CauseVisitor, limit: number = this.start[node]): void {
    const check: CauseVisitor = (kind, cause, moment) => {
      if (moment <= limit && cause !== node) visit(kind, cause, moment);
    };
    if (this.isTask(node)) {
      this.#taskCauses(node, check);
      for (const row of this.waits.transfersBefore(node)) {
        const transfer = this.trace.tasks.count + row;
        check(kindNumber.transfer, transfer, this.end[transfer]);
      }
    } else {
      this.#transferCauses(node, limit, check);
    }
    const before = this.#before[node];
    if (before >= 0) check(kindNumber.lane, before, this.end[before]);
  }

  #taskCauses(task: number, visit: CauseVisitor): void {
    const { start, items } = this.waits.graph.predecessors;
    for (let i = start[task]; i < start[task + 1]; i++) {
      visit(kindNumber.dependency, items[i], this.end[items[i]]);
    }
    const { times, space } = this.trace.tasks;
    const ready = times[TaskTime.ready][task];
    const alloc = times[TaskTime.alloc][task];
    if (alloc <= ready || space[task] >= this.trace.spaces.length) return;
    const spill = this.#latest(this.#spills, space[task], alloc);
    if (spill >= 0 && this.end[spill] > ready) visit(kindNumber.memory, spill, this.end[spill]);
    this.#retirement(space[task], ready, alloc, visit);
  }

  // The last task of a space that retired in (after, until].
  #retirement(space: number, after: number, until: number, visit: CauseVisitor): void {
    if (space >= this.trace.spaces.length) return;
    const finalized = this.trace.tasks.times[TaskTime.finalized];
    const retired = latest(this.#retired, space, until, finalized);
    if (retired >= 0 && finalized[retired] > after) {
      visit(kindNumber.retirement, retired, finalized[retired]);
    }
  }

  #transferCauses(node: number, limit: number, visit: CauseVisitor): void {
    const { transfers } = this.trace;
    const row = this.transferRow(node);
    const sender = this.senderOf(node);
    if (sender >= 0) visit(kindNumber.message, sender, this.start[sender]);
    const task = this.taskOf(node);
    // A send is for the task that produced the datum, every other transfer for the task that needs it.
    if (task >= 0 && transfers.reason[row] === TransferReason.send) {
      visit(kindNumber.producer, task, this.end[task]);
    } else if (task >= 0) {
      this.#taskCauses(task, visit);
    }
    if (transfers.reason[row] === TransferReason.spill) {
      const issued = transfers.issued[row];
      this.#retirement(transfers.source[row], Number.NEGATIVE_INFINITY, issued, visit);
    }
    const datum = transfers.datum[row];
    if (datum < 0) return;
    const writer = this.#latest(this.#writers, datum, limit);
    if (writer >= 0) visit(kindNumber.producer, writer, this.end[writer]);
    const { start, items } = this.#copies;
    for (let i = this.#upTo(this.#copies, datum, limit) - 1; i >= start[datum]; i--) {
      if (transfers.destination[this.transferRow(items[i])] !== transfers.source[row]) continue;
      visit(kindNumber.copy, items[i], this.end[items[i]]);
      break;
    }
  }

  #byEnd(lists: Lists): Lists {
    const { end } = this;
    for (let row = 0; row + 1 < lists.start.length; row++) {
      const part = lists.items.subarray(lists.start[row], lists.start[row + 1]);
      if (part.length > 1) part.sort((a, b) => end[a] - end[b] || a - b);
    }
    return lists;
  }

  // The node of a list with the latest end not after `time`, or -1.
  #latest(lists: Lists, row: number, time: number): number {
    return latest(lists, row, time, this.end);
  }

  #upTo(lists: Lists, row: number, time: number): number {
    return upTo(lists, row, time, this.end);
  }
}

// The item with the latest time not after `time` in a list sorted by time, or -1.
function latest(lists: Lists, row: number, time: number, timeOf: Float64Array): number {
  const at = upTo(lists, row, time, timeOf) - 1;
  return at >= lists.start[row] ? lists.items[at] : -1;
}

// First position in a list sorted by time that is later than `time`.
function upTo(lists: Lists, row: number, time: number, timeOf: Float64Array): number {
  let low = lists.start[row];
  let high = lists.start[row + 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (timeOf[lists.items[middle]] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

function waitedForMemory(trace: Trace): Lists {
  const alloc = trace.tasks.times[TaskTime.alloc];
  const ready = trace.tasks.times[TaskTime.ready];
  return bySpace(trace, alloc, (row) => alloc[row] > ready[row]);
}

// The tasks of each memory space that `wanted` picks, sorted by a time.
function bySpace(trace: Trace, time: Float64Array, wanted: (row: number) => boolean): Lists {
  const { tasks } = trace;
  const space = Int32Array.from({ length: tasks.count }, (_, row) =>
    tasks.space[row] < trace.spaces.length && wanted(row) ? tasks.space[row] : -1,
  );
  const rows = Int32Array.from({ length: tasks.count }, (_, row) => row);
  const lists = group(trace.spaces.length, space, rows);
  for (let index = 0; index < trace.spaces.length; index++) {
    lists.items
      .subarray(lists.start[index], lists.start[index + 1])
      .sort((a, b) => time[a] - time[b] || a - b);
  }
  return lists;
}

function previousOnLane(trace: Trace, count: number): Int32Array {
  const before = new Int32Array(count).fill(-1);
  const fill = (lists: Lists, base: number): void => {
    for (let lane = 0; lane + 1 < lists.start.length; lane++) {
      for (let i = lists.start[lane] + 1; i < lists.start[lane + 1]; i++) {
        before[base + lists.items[i]] = base + lists.items[i - 1];
      }
    }
  };
  fill(tasksByLane(trace), 0);
  fill(transfersByLane(trace), trace.tasks.count);
  return before;
}
