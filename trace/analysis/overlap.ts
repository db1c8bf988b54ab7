// The share of the communication that was hidden behind execution: per device and for each rank as a whole.
import { TaskTime } from '../format.js';
import { isExecutionLane, spaceName, type Trace } from '../trace.js';
import { coverage, type Intervals } from './intervals.js';

/** Nanoseconds with a transfer under way, with a kernel running, and with both. */
export interface Overlap {
  readonly where: string;
  readonly communication: number;
  readonly execution: number;
  readonly both: number;
  /** `both / communication`, 1 when there was no communication. */
  readonly hidden: number;
}

/** One entry per device with transfers, then one per rank. */
export function overlaps(trace: Trace): Overlap[] {
  const list: Overlap[] = [];
  trace.spaces.forEach((space, index) => {
    if (space.index === 0) return;
    const transfers = pickTransfers(
      trace,
      (row) => trace.transfers.destination[row] === index || trace.transfers.source[row] === index,
    );
    if (transfers.start.length === 0) return;
    const tasks = pickTasks(trace, (row) => trace.tasks.space[row] === index);
    list.push(describe(spaceName(trace, index), transfers, tasks));
  });
  for (const { rank } of trace.ranks) {
    const transfers = pickTransfers(trace, (row) => trace.transfers.rank[row] === rank);
    const tasks = pickTasks(trace, (row) => trace.tasks.rank[row] === rank);
    list.push(describe(trace.ranks.length > 1 ? `rank ${rank}` : 'all', transfers, tasks));
  }
  return list;
}

function describe(where: string, transfers: Intervals, tasks: Intervals): Overlap {
  const { a, b, both } = coverage(transfers, tasks);
  return { where, communication: a, execution: b, both, hidden: a > 0 ? both / a : 1 };
}

function pickTransfers(trace: Trace, wanted: (row: number) => boolean): Intervals {
  const { start, end, count } = trace.transfers;
  return pick(count, start, end, wanted);
}

function pickTasks(trace: Trace, wanted: (row: number) => boolean): Intervals {
  const { tasks } = trace;
  return pick(
    tasks.count,
    tasks.times[TaskTime.execStart],
    tasks.times[TaskTime.execEnd],
    (row) => {
      const lane = trace.lanes[tasks.lane[row]];
      return lane !== undefined && isExecutionLane(lane) && wanted(row);
    },
  );
}

function pick(
  count: number,
  start: Float64Array,
  end: Float64Array,
  wanted: (row: number) => boolean,
): Intervals {
  const starts = new Float64Array(count);
  const ends = new Float64Array(count);
  let n = 0;
  for (let row = 0; row < count; row++) {
    if (!wanted(row)) continue;
    starts[n] = start[row];
    ends[n++] = end[row];
  }
  return { start: starts.subarray(0, n), end: ends.subarray(0, n) };
}
