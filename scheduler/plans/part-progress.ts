// How far a part of a play may come, and how far it has come.
import { type PlannedQueue, recordsIn } from './planned-program.js';

/** Limit for the records of a part, per queue. */
const PART_RECORDS = 2 ** 27;

/** Iterations by which no queue has more records than a part may have; 0 if a list is longer than that. */
export function mostIterations(lists: readonly PlannedQueue[]): number {
  return Math.floor(PART_RECORDS / Math.max(...lists.map(recordsIn)));
}

/** A part that is under way. */
interface PlayingPart {
  readonly lists: readonly PlannedQueue[];
  /** Its last record on each queue. */
  readonly last: ArrayLike<number>;
  /** Its iterations. */
  readonly times: number;
}

/** Iterations that have run on all queues, but not the last one: with that one the play may be over. */
export function iterationsOver({ lists, last, times }: PlayingPart, completed: Int32Array): number {
  const over = lists.map((list, i) => {
    const left = (last[i] - completed[list.queue]) | 0;
    return times - Math.ceil(left / recordsIn(list));
  });
  return Math.min(times - 1, ...over);
}
