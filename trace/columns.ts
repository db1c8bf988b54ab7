// Typed arrays that grow: how a trace of unknown length becomes columns without an object per row.

type Numbers = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;

/** A typed array with amortised `push`. */
export class Column<T extends Numbers> {
  #data: T;
  #length = 0;
  readonly #make: (length: number) => T;

  constructor(make: (length: number) => T, capacity = 1024) {
    this.#make = make;
    this.#data = make(capacity);
  }

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#data.length) this.#grow();
    this.#data[this.#length++] = value;
  }

  at(index: number): number {
    return this.#data[index];
  }

  /** The values so far, trimmed (a view when nearly full, else a copy, so that slack is not kept alive). */
  done(): T {
    const view = this.#data.subarray(0, this.#length) as T;
    return this.#length * 2 > this.#data.length ? view : (view.slice() as T);
  }

  #grow(): void {
    const larger = this.#make(this.#data.length * 2);
    larger.set(this.#data);
    this.#data = larger;
  }
}

export const f64 = (): Column<Float64Array> => new Column((n) => new Float64Array(n));
export const i32 = (): Column<Int32Array> => new Column((n) => new Int32Array(n));
export const u32 = (): Column<Uint32Array> => new Column((n) => new Uint32Array(n));
export const u16 = (): Column<Uint16Array> => new Column((n) => new Uint16Array(n));
export const u8 = (): Column<Uint8Array> => new Column((n) => new Uint8Array(n));

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

/** Finds the row of an id. Dense ids use an array, sparse ones a map. */
export class IdIndex {
  readonly #first: number;
  readonly #rows: Int32Array | undefined;
  readonly #map: Map<number, number> | undefined;

  constructor(ids: Uint32Array, from: number, to: number) {
    let first = Number.POSITIVE_INFINITY;
    let last = -1;
    for (let row = from; row < to; row++) {
      if (ids[row] < first) first = ids[row];
      if (ids[row] > last) last = ids[row];
    }
    this.#first = first;
    if (last < 0 || last - first < 4 * (to - from) + 65536) {
      this.#rows = new Int32Array(Math.max(0, last - first + 1)).fill(-1);
      for (let row = from; row < to; row++) this.#rows[ids[row] - first] = row;
    } else {
      this.#map = new Map();
      for (let row = from; row < to; row++) this.#map.set(ids[row], row);
    }
  }

  /** Row of an id, or -1. */
  row(id: number): number {
    if (this.#map) return this.#map.get(id) ?? -1;
    return this.#rows?.[id - this.#first] ?? -1;
  }
}
