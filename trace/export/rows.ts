// Distributes intervals that overlap over as few rows as needed: most viewers cannot show partial overlap in one.

import { TaskTime } from '../format.js';
import type { Trace } from '../trace.js';
import { tasksByLane, transfersByLane } from '../trace.js';

/**
 * For intervals sorted by start: the row each one goes to, so that no two of a row overlap. Greedy by first free
 * row, which uses as few rows as the largest number of intervals that overlap at one moment.
 */
export function assignRows(
  order: ArrayLike<number>,
  start: Float64Array,
  end: Float64Array,
): { row: Uint16Array; rows: number } {
  const row = new Uint16Array(order.length);
  const free: number[] = [];
  for (let i = 0; i < order.length; i++) {
    const item = order[i];
    let chosen = free.findIndex((until) => until <= start[item]);
    if (chosen < 0) {
      chosen = free.length;
      free.push(0);
    }
    free[chosen] = end[item];
    row[i] = chosen;
  }
  return { row, rows: free.length };
}

/** One slice of a lane. */
interface LaneSlice {
  /** Task or transfer row. */
  readonly item: number;
  readonly isTask: boolean;
  /** Sub-row of the lane, from 0. */
  readonly row: number;
}

/** Visits a lane's tasks and transfers in time order with their sub-rows; returns the number of sub-rows. */
type LaneWalk = (lane: number, visit: (slice: LaneSlice) => void) => number;

/** Prepares walking over lanes; sorting is done once. */
export function laneWalk(trace: Trace): LaneWalk {
  const tasks = tasksByLane(trace);
  const transfers = transfersByLane(trace);
  const slice = { item: 0, isTask: true, row: 0 };
  const walk = (
    lists: { start: Int32Array; items: Int32Array },
    lane: number,
    start: Float64Array,
    end: Float64Array,
    isTask: boolean,
    visit: (slice: LaneSlice) => void,
  ): number => {
    const order = lists.items.subarray(lists.start[lane], lists.start[lane + 1]);
    const { row, rows } = assignRows(order, start, end);
    slice.isTask = isTask;
    for (let i = 0; i < order.length; i++) {
      slice.item = order[i];
      slice.row = row[i];
      visit(slice);
    }
    return rows;
  };
  return (lane, visit) => {
    const { times } = trace.tasks;
    const ofTasks = walk(
      tasks,
      lane,
      times[TaskTime.execStart],
      times[TaskTime.execEnd],
      true,
      visit,
    );
    const { start, end } = trace.transfers;
    const ofTransfers = walk(transfers, lane, start, end, false, visit);
    return Math.max(1, ofTasks, ofTransfers);
  };
}
