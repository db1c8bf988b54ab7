// A part of a trace: the time of its runs. The work of a program before its first run and after its last
// (reading results back, closing data) would otherwise be part of the makespan.

import type { Lists } from './columns.js';
import { EventKind, TaskTime } from './format.js';
import type { Trace } from './trace.js';

/** From the first begin to the last end of a run; undefined when the trace has no runs. */
export function runExtent(
  trace: Trace,
): { readonly from: number; readonly to: number } | undefined {
  const { events } = trace;
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  let open = 0;
  for (let row = 0; row < events.count; row++) {
    if (events.kind[row] === EventKind.runBegin) {
      from = Math.min(from, events.time[row]);
      open++;
    } else if (events.kind[row] === EventKind.runEnd) {
      to = Math.max(to, events.time[row]);
      open--;
    }
  }
  if (from === Number.POSITIVE_INFINITY) return undefined;
  // A run that did not end lasts to the end of the trace.
  return { from, to: open > 0 ? trace.end : Math.max(to, from) };
}

/**
 * The tasks and transfers that ran entirely within `[from, to]`, on the same axis; their other times are clamped to it.
 * Returns the trace itself when nothing lies outside.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one column of the trace after the other.
export function cropTrace(trace: Trace, from: number, to: number): Trace {
  const { tasks, transfers, counters, events, stolen } = trace;
  const starts = tasks.times[TaskTime.execStart];
  const ends = tasks.times[TaskTime.execEnd];
  const clamp = (time: number): number => Math.min(to, Math.max(from, time));
  const taskRows = rowsWhere(tasks.count, (row) => starts[row] >= from && ends[row] <= to);
  const transferRows = rowsWhere(
    transfers.count,
    (row) => transfers.start[row] >= from && transfers.end[row] <= to,
  );
  const whole = taskRows.length === tasks.count && transferRows.length === transfers.count;
  if (whole && from <= trace.start && to >= trace.end) return trace;
  const counterRows = rowsWhere(
    counters.count,
    (row) => counters.time[row] >= from && counters.time[row] <= to,
  );
  const eventRows = rowsWhere(
    events.count,
    (row) => events.time[row] >= from && events.time[row] <= to,
  );
  const stolenRows = rowsWhere(
    stolen.count,
    (row) => stolen.from[row] < to && stolen.to[row] > from,
  );
  const newTask = places(taskRows, tasks.count);
  const newTransfer = places(transferRows, transfers.count);
  const task = (row: number): number => (row < 0 ? -1 : newTask[row]);
  const identity = (item: number): number => item;
  const accesses = pickLists(tasks.accesses, taskRows, identity);
  return {
    ...trace,
    tasks: {
      count: taskRows.length,
      id: pick(tasks.id, taskRows),
      rank: pick(tasks.rank, taskRows),
      taskClass: pick(tasks.taskClass, taskRows),
      space: pick(tasks.space, taskRows),
      lane: pick(tasks.lane, taskRows),
      flags: pick(tasks.flags, taskRows),
      releasedBy: pick(tasks.releasedBy, taskRows).map(task),
      play: pick(tasks.play, taskRows),
      times: tasks.times.map((column) => pick(column, taskRows).map(clamp)),
      predecessors: pickLists(tasks.predecessors, taskRows, task),
      accesses,
      accessModes: Uint8Array.from(accesses.origin, (i) => tasks.accessModes[i]),
      parameters: pickLists(tasks.parameters, taskRows, identity, true),
    },
    transfers: {
      count: transferRows.length,
      rank: pick(transfers.rank, transferRows),
      kind: pick(transfers.kind, transferRows),
      reason: pick(transfers.reason, transferRows),
      lane: pick(transfers.lane, transferRows),
      source: pick(transfers.source, transferRows),
      destination: pick(transfers.destination, transferRows),
      task: pick(transfers.task, transferRows).map(task),
      datum: pick(transfers.datum, transferRows),
      version: pick(transfers.version, transferRows),
      peer: pick(transfers.peer, transferRows),
      message: pick(transfers.message, transferRows),
      bytes: pick(transfers.bytes, transferRows),
      issued: pick(transfers.issued, transferRows).map(clamp),
      start: pick(transfers.start, transferRows),
      end: pick(transfers.end, transferRows),
      partner: pick(transfers.partner, transferRows).map((row) =>
        row < 0 ? -1 : newTransfer[row],
      ),
    },
    counters: {
      count: counterRows.length,
      rank: pick(counters.rank, counterRows),
      kind: pick(counters.kind, counterRows),
      space: pick(counters.space, counterRows),
      time: pick(counters.time, counterRows),
      values: Float64Array.from(
        { length: 6 * counterRows.length },
        (_, i) => counters.values[6 * counterRows[Math.floor(i / 6)] + (i % 6)],
      ),
    },
    events: {
      count: eventRows.length,
      rank: pick(events.rank, eventRows),
      kind: pick(events.kind, eventRows),
      space: pick(events.space, eventRows),
      task: pick(events.task, eventRows).map(task),
      datum: pick(events.datum, eventRows),
      time: pick(events.time, eventRows),
      bytes: pick(events.bytes, eventRows),
      text: Array.from(eventRows, (row) => events.text[row]),
    },
    stolen: {
      count: stolenRows.length,
      rank: pick(stolen.rank, stolenRows),
      lane: pick(stolen.lane, stolenRows),
      from: pick(stolen.from, stolenRows).map(clamp),
      to: pick(stolen.to, stolenRows).map(clamp),
    },
    start: from,
    end: to,
  };
}

/** The trace while its runs were going on, or all of it when it has no runs. */
export function cropToRuns(trace: Trace): Trace {
  const extent = runExtent(trace);
  return extent ? cropTrace(trace, extent.from, extent.to) : trace;
}

function rowsWhere(count: number, wanted: (row: number) => boolean): Int32Array {
  const rows = new Int32Array(count);
  let n = 0;
  for (let row = 0; row < count; row++) if (wanted(row)) rows[n++] = row;
  return rows.slice(0, n);
}

function places(rows: Int32Array, count: number): Int32Array {
  const place = new Int32Array(count).fill(-1);
  for (let i = 0; i < rows.length; i++) place[rows[i]] = i;
  return place;
}

function pick<T extends Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array>(
  column: T,
  rows: Int32Array,
): T {
  const picked = new (column.constructor as new (length: number) => T)(rows.length);
  for (let i = 0; i < rows.length; i++) picked[i] = column[rows[i]];
  return picked;
}

// Items that map to a negative number are dropped, unless they are plain values.
function pickLists(
  lists: Lists,
  rows: Int32Array,
  map: (item: number) => number,
  values = false,
): Lists & { readonly origin: Int32Array } {
  const start = new Int32Array(rows.length + 1);
  const items: number[] = [];
  const origin: number[] = [];
  rows.forEach((row, i) => {
    for (let at = lists.start[row]; at < lists.start[row + 1]; at++) {
      const item = map(lists.items[at]);
      if (item < 0 && !values) continue;
      items.push(item);
      origin.push(at);
    }
    start[i + 1] = items.length;
  });
  return { start, items: Int32Array.from(items), origin: Int32Array.from(origin) };
}
