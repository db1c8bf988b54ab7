// The order in which a program had its tasks executed: inserted tasks by their ids, which count insertions, and the tasks of
// a play after those that were inserted before it. Spawned tasks run before tasks that were inserted before them: the order of the
// tasks of such a rank is that of their starts, because tasks that conflict do not overlap.
import { TaskTime } from './format.js';
import type { InferredEdges } from './infer.js';
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

/** The columns of tasks that the order in time needs. */
interface TimedTasks {
  readonly rank: Uint16Array;
  readonly times: readonly Float64Array[];
}

/** The ranks of tasks that ended before one of their predecessors began: the predecessors of these are not those of program order. */
export function ranksOutOfOrder(
  { rank, times }: TimedTasks,
  { successor, predecessor }: InferredEdges,
): Set<number> {
  const starts = times[TaskTime.execStart];
  const ends = times[TaskTime.execEnd];
  const found = new Set<number>();
  for (let e = 0; e < successor.length; e++)
    if (ends[successor[e]] < starts[predecessor[e]]) found.add(rank[successor[e]]);
  return found;
}

/** The same rows, those of some ranks by their starts. A task that did not run stays behind the one before it. */
export function orderInTime(
  { rank, times }: TimedTasks,
  order: Int32Array,
  ranks: ReadonlySet<number>,
): Int32Array {
  const starts = times[TaskTime.execStart];
  const keys = new Map<number, number>();
  let last = Number.NEGATIVE_INFINITY;
  for (const row of order) {
    if (!ranks.has(rank[row])) continue;
    if (starts[row] >= 0) last = starts[row];
    keys.set(row, last);
  }
  const moved = [...keys.keys()].sort(
    (a, b) => rank[a] - rank[b] || (keys.get(a) as number) - (keys.get(b) as number),
  );
  const kept = order.filter((row) => !keys.has(row));
  const result = new Int32Array(order.length);
  result.set(kept);
  result.set(moved, kept.length);
  return result;
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
