// The order in which a program had its tasks executed: inserted tasks by their ids, which count insertions, and the tasks of
// a play after those that were inserted before it.
import type { PlayColumns } from './trace.js';

/** The columns of tasks that the order needs. */
interface OrderedTasks {
  readonly count: number;
  readonly id: Uint32Array;
  readonly rank: Uint16Array;
  /** Row in the plays, or -1 for a task that was inserted. */
  readonly play: Int32Array;
}

/** Rows of tasks in program order, rank by rank. */
export function programOrder(tasks: OrderedTasks, plays: Pick<PlayColumns, 'before'>): Int32Array {
  const { count, id, rank, play } = tasks;
  const ranks = new Set(rank);
  const order = new Int32Array(count);
  let at = 0;
  for (const each of ranks) {
    const inserted = rowsById(tasks, (row) => rank[row] === each && play[row] < 0);
    const played = rowsById(tasks, (row) => rank[row] === each && play[row] >= 0);
    let next = 0;
    for (const row of played) {
      const before = plays.before[play[row]];
      while (next < inserted.length && id[inserted[next]] <= before) order[at++] = inserted[next++];
      order[at++] = row;
    }
    order.set(inserted.subarray(next), at);
    at += inserted.length - next;
  }
  return order;
}

function rowsById({ count, id }: OrderedTasks, isWanted: (row: number) => boolean): Int32Array {
  let least = Number.POSITIVE_INFINITY;
  let wanted = 0;
  for (let row = 0; row < count; row++) {
    if (!isWanted(row)) continue;
    wanted++;
    if (id[row] < least) least = id[row];
  }
  const keys = new Float64Array(wanted);
  let n = 0;
  for (let row = 0; row < count; row++)
    if (isWanted(row)) keys[n++] = (id[row] - least) * count + row;
  keys.sort();
  return Int32Array.from(keys, (key) => key % count);
}
