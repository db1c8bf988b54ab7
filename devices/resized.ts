// Columns that grow and shrink: typed arrays of another length with the same values.

type Resizable = Uint8Array | Int16Array | Int32Array | Float64Array;

/** A copy of `column` with `length` elements, which may be fewer; those beyond the old ones have the value `fill`. */
export function resized<T extends Resizable>(column: T, length: number, fill = 0): T {
  const next = new (column.constructor as new (n: number) => T)(length);
  if (fill !== 0) next.fill(fill, column.length);
  next.set((length < column.length ? column.subarray(0, length) : column) as never);
  return next;
}
