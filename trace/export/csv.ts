// One table of the trace as CSV (RFC 4180: comma, quotes doubled; lines end in LF, because no reader needs CRLF).
import {
  eventKindNames,
  taskTimeNames,
  transferKindNames,
  transferReasonNames,
} from '../format.js';
import {
  accessModeName,
  datumName,
  laneName,
  NO_ROW,
  playedAs,
  spaceName,
  type Trace,
  taskName,
} from '../trace.js';
import type { Output } from './output.js';

/** The tables. */
export const csvTables = [
  'tasks',
  'transfers',
  'dependencies',
  'accesses',
  'counters',
  'events',
  'stolen',
] as const;

/** Name of a table. */
export type CsvTable = (typeof csvTables)[number];

/** Writes one table; times are nanoseconds from the start of the trace. */
export function exportCsv(trace: Trace, output: Output, table: CsvTable = 'tasks'): void {
  const line = (...cells: (string | number)[]): void => {
    output.text(`${cells.map(cell).join(',')}\n`);
  };
  writers[table](trace, line);
}

function cell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

type Line = (...cells: (string | number)[]) => void;

const writers: { readonly [table in CsvTable]: (trace: Trace, line: Line) => void } = {
  tasks(trace, line) {
    const { tasks } = trace;
    line(
      'rank',
      'task',
      'class',
      'name',
      'space',
      'lane',
      'flags',
      'released_by',
      ...taskTimeNames,
      'plan',
      'iteration',
    );
    for (let row = 0; row < tasks.count; row++) {
      const by = tasks.releasedBy[row];
      const played = playedAs(trace, row);
      line(
        tasks.rank[row],
        tasks.id[row],
        trace.classes[tasks.taskClass[row]]?.name ?? '',
        taskName(trace, row),
        spaceName(trace, tasks.space[row]),
        laneName(trace, tasks.lane[row]),
        tasks.flags[row],
        by < 0 ? '' : tasks.id[by],
        ...tasks.times.map((column) => column[row] - trace.start),
        played?.plan ?? '',
        played?.iteration ?? '',
      );
    }
  },
  transfers(trace, line) {
    const { transfers } = trace;
    line(
      'rank',
      'kind',
      'reason',
      'lane',
      'source',
      'destination',
      'task',
      'datum',
      'version',
      'peer',
      'message',
      'bytes',
      'issued',
      'start',
      'end',
    );
    for (let row = 0; row < transfers.count; row++) {
      const task = transfers.task[row];
      line(
        transfers.rank[row],
        transferKindNames[transfers.kind[row]] ?? transfers.kind[row],
        transferReasonNames[transfers.reason[row]] ?? transfers.reason[row],
        laneName(trace, transfers.lane[row]),
        spaceName(trace, transfers.source[row]),
        spaceName(trace, transfers.destination[row]),
        task < 0 ? '' : trace.tasks.id[task],
        transfers.datum[row] < 0 ? '' : datumName(trace, transfers.datum[row]),
        transfers.version[row],
        transfers.peer[row] < 0 ? '' : transfers.peer[row],
        transfers.message[row] === 0xffffffff ? '' : transfers.message[row],
        transfers.bytes[row],
        transfers.issued[row] - trace.start,
        transfers.start[row] - trace.start,
        transfers.end[row] - trace.start,
      );
    }
  },
  dependencies(trace, line) {
    const { tasks } = trace;
    const { start, items } = tasks.predecessors;
    line('rank', 'successor', 'predecessor');
    for (let row = 0; row < tasks.count; row++) {
      for (let i = start[row]; i < start[row + 1]; i++) {
        line(tasks.rank[row], tasks.id[row], tasks.id[items[i]]);
      }
    }
  },
  accesses(trace, line) {
    const { tasks, data } = trace;
    const { start, items } = tasks.accesses;
    line('rank', 'task', 'datum', 'mode', 'bytes');
    for (let row = 0; row < tasks.count; row++) {
      for (let a = start[row]; a < start[row + 1]; a++) {
        line(
          tasks.rank[row],
          tasks.id[row],
          datumName(trace, items[a]),
          accessModeName(tasks.accessModes[a]),
          data.bytes[items[a]],
        );
      }
    }
  },
  counters(trace, line) {
    const { counters } = trace;
    line('rank', 'counter', 'space', 'time', 'v0', 'v1', 'v2', 'v3', 'v4', 'v5');
    for (let row = 0; row < counters.count; row++) {
      const isMemory = counters.kind[row] === 0;
      line(
        counters.rank[row],
        isMemory ? 'memory' : 'progress',
        isMemory ? spaceName(trace, counters.space[row]) : '',
        counters.time[row] - trace.start,
        ...counters.values.subarray(6 * row, 6 * row + 6),
      );
    }
  },
  events(trace, line) {
    const { events } = trace;
    line('rank', 'event', 'time', 'space', 'task', 'datum', 'bytes', 'text');
    for (let row = 0; row < events.count; row++) {
      const task = events.task[row];
      line(
        events.rank[row],
        eventKindNames[events.kind[row]] ?? events.kind[row],
        events.time[row] - trace.start,
        events.space[row] === 0xffff ? '' : spaceName(trace, events.space[row]),
        task < 0 ? '' : trace.tasks.id[task],
        events.datum[row] < 0 ? '' : datumName(trace, events.datum[row]),
        events.bytes[row],
        events.text[row],
      );
    }
  },
  stolen(trace, line) {
    const { stolen } = trace;
    line('rank', 'lane', 'from', 'to');
    for (let row = 0; row < stolen.count; row++) {
      const lane = stolen.lane[row];
      line(
        stolen.rank[row],
        lane === NO_ROW ? 'engine' : laneName(trace, lane),
        stolen.from[row] - trace.start,
        stolen.to[row] - trace.start,
      );
    }
  },
};
