// The shares of a rank in data: the indices of those that it owns, for the ranges of its tasks.
import type { Datum } from '../../scheduler/index.js';

/** A function from a rank to the positions of its data in a list. They are looked up once, when they are first needed. */
export function ownOf(data: readonly Datum[]): (rank: number) => readonly number[] {
  const known: Map<number, readonly number[]> = new Map();
  return (rank) => {
    const found = known.get(rank);
    if (found !== undefined) return found;
    const own = [...data.keys()].filter((at) => data[at].rank === rank);
    known.set(rank, own);
    return own;
  };
}
