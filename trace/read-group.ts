// Decodes a record of many tasks: the visitor sees each as if it had a record of its own.
import { NONE, TaskGroup, TaskTime, UNIT } from './format.js';
import type { ListRecord, TaskRecord, TraceVisitor } from './records.js';

/** The reused records that a group fills: class, device, lane and flags of `task` are those of the group already. */
interface GroupRecords {
  readonly task: TaskRecord;
  readonly data: ListRecord;
  readonly parameters: ListRecord;
}

/** The number of tasks in the record at `at`; 0 when it contradicts the format. */
export function groupCount(view: DataView, at: number): number {
  const count = view.getUint8(at + 8);
  const end = TaskGroup.tasks + 4 * count * wordsPerTask(view, at);
  return end <= view.getUint8(at + 1) * UNIT ? count : 0;
}

function wordsPerTask(view: DataView, at: number): number {
  const layout = view.getUint8(at + 9);
  const released = layout & TaskGroup.released ? 1 : 0;
  return 3 + released + (view.getUint16(at + 10, true) >>> 12) + (layout & TaskGroup.parameters);
}

/** Calls the visitor for every task of the group at `at`; `inserted` is their time of insertion. */
export function readGroup(
  view: DataView,
  at: number,
  inserted: number,
  { task, data, parameters }: GroupRecords,
  visitor: TraceVisitor,
): void {
  const count = groupCount(view, at);
  const layout = view.getUint8(at + 9);
  const head = view.getUint16(at + 10, true);
  const words = wordsPerTask(view, at);
  const released = layout & TaskGroup.released ? 1 : 0;
  const ready = inserted + view.getUint32(at + 12, true);
  const issued = inserted + view.getUint32(at + 24, true);
  const finalized = inserted + view.getUint32(at + 28, true);
  const { times } = task;
  data.count = Math.min(head >>> 12, 6);
  data.modes = head & 0xfff;
  parameters.count = Math.min(layout & TaskGroup.parameters, 6);
  for (let i = 0; i < count; i++) {
    let p = at + TaskGroup.tasks + 4 * words * i;
    task.id = view.getUint32(p, true);
    task.releasedBy = released ? view.getUint32(p + 4, true) : NONE;
    p += 4 + 4 * released;
    const start = inserted + view.getUint32(p, true);
    times[TaskTime.inserted] = inserted;
    // The engine read its clock once for all tasks, perhaps after this one had begun.
    const readyHere = Math.min(ready, start);
    times[TaskTime.ready] = readyHere;
    times[TaskTime.alloc] = readyHere;
    times[TaskTime.stageIn] = readyHere;
    times[TaskTime.commIn] = readyHere;
    times[TaskTime.issued] = Math.min(issued, start);
    times[TaskTime.execStart] = start;
    times[TaskTime.execEnd] = inserted + view.getUint32(p + 4, true);
    times[TaskTime.stageOut] = finalized;
    times[TaskTime.finalized] = finalized;
    visitor.task?.(task);
    p = readList(view, p + 8, data, task.id);
    if (data.count > 0) visitor.accesses?.(data);
    readList(view, p, parameters, task.id);
    if (parameters.count > 0) visitor.parameters?.(parameters);
  }
}

/** Reads `list.count` words at `p`; returns where they end. */
function readList(view: DataView, p: number, list: ListRecord, task: number): number {
  list.task = task;
  // An Int32Array takes the bits of parameters as signed, a Uint32Array ids as unsigned.
  for (let i = 0; i < list.count; i++) list.values[i] = view.getInt32(p + 4 * i, true);
  return p + 4 * list.count;
}
