// Lists of numbers per row in two flat arrays, and rows by id: the shapes that let a million tasks fit.
import { FIRST_PLAYED } from './format.js';

/** Lists of numbers, one per row: row r owns `items[start[r] .. start[r + 1])`. */
export interface Lists {
  readonly start: Int32Array;
  readonly items: Int32Array;
}

/**
 * Groups pairs (row, item) by row, keeping their order. Pairs whose row is negative are dropped.
 * @returns the lists, and for each item the index of its pair in the input
 */
export function group(
  rows: number,
  rowOf: ArrayLike<number>,
  itemOf: ArrayLike<number>,
): Lists & { readonly origin: Int32Array } {
  const n = rowOf.length;
  const start = new Int32Array(rows + 1);
  for (let i = 0; i < n; i++) if (rowOf[i] >= 0) start[rowOf[i] + 1]++;
  for (let r = 0; r < rows; r++) start[r + 1] += start[r];
  const items = new Int32Array(start[rows]);
  const origin = new Int32Array(start[rows]);
  const next = start.slice(0, rows);
  for (let i = 0; i < n; i++) {
    const row = rowOf[i];
    if (row < 0) continue;
    const at = next[row]++;
    items[at] = itemOf[i];
    origin[at] = i;
  }
  return { start, items, origin };
}

/** Finds the row of a task by its id. */
export class IdIndex {
  readonly #inserted: SeriesIndex;
  readonly #played: SeriesIndex;

  constructor(ids: Uint32Array, from: number, to: number) {
    this.#inserted = new SeriesIndex(ids, from, to, (id) => id < FIRST_PLAYED);
    this.#played = new SeriesIndex(ids, from, to, (id) => id >= FIRST_PLAYED);
  }

  /** Row of an id, or -1. */
  row(id: number): number {
    return (id < FIRST_PLAYED ? this.#inserted : this.#played).row(id);
  }
}

/** The ids that count from one number. Dense ids use an array, sparse ones a map. */
class SeriesIndex {
  readonly #first: number;
  readonly #rows: Int32Array | undefined;
  readonly #map: Map<number, number> | undefined;

  constructor(ids: Uint32Array, from: number, to: number, isIn: (id: number) => boolean) {
    let first = Number.POSITIVE_INFINITY;
    let last = -1;
    for (let row = from; row < to; row++) {
      if (!isIn(ids[row])) continue;
      if (ids[row] < first) first = ids[row];
      if (ids[row] > last) last = ids[row];
    }
    this.#first = first;
    if (last < 0 || last - first < 4 * (to - from) + 65536) {
      this.#rows = new Int32Array(last < 0 ? 0 : last - first + 1).fill(-1);
      for (let row = from; row < to; row++) if (isIn(ids[row])) this.#rows[ids[row] - first] = row;
    } else {
      this.#map = new Map();
      for (let row = from; row < to; row++) if (isIn(ids[row])) this.#map.set(ids[row], row);
    }
  }

  row(id: number): number {
    if (this.#map) return this.#map.get(id) ?? -1;
    return this.#rows?.[id - this.#first] ?? -1;
  }
}

/** Rows of ids that may name another object later: `row` answers for the latest `set`. */
export class ReusableIds {
  #dense: Int32Array = new Int32Array(1024).fill(-1);
  readonly #sparse: Map<number, number> = new Map();

  set(id: number, row: number): void {
    if (id >= MOST_DENSE) {
      this.#sparse.set(id, row);
      return;
    }
    if (id >= this.#dense.length) {
      const larger = new Int32Array(Math.max(id + 1, 2 * this.#dense.length)).fill(-1);
      larger.set(this.#dense);
      this.#dense = larger;
    }
    this.#dense[id] = row;
  }

  /** Row of an id, or -1. */
  row(id: number): number {
    if (id >= MOST_DENSE) return this.#sparse.get(id) ?? -1;
    return id < this.#dense.length ? this.#dense[id] : -1;
  }
}

const MOST_DENSE = 1 << 22;
