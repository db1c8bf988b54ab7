// Geometry of a square matrix cut into square tiles; the last row and column of tiles may be smaller.
// Tiles are stored column by column, their leading dimension is their number of rows.

/** A tile's numbers, column by column. */
export type TileValues = Float64Array | Float32Array;

/** Element types of the commands. */
export type Dtype = 'f64' | 'f32';

/** Bytes of one element. */
export function bytesOf(dtype: Dtype): number {
  return dtype === 'f64' ? 8 : 4;
}

/** Unit roundoff times two: the distance from 1 to the next larger number. */
export function epsilonOf(dtype: Dtype): number {
  return dtype === 'f64' ? 2 ** -52 : 2 ** -23;
}

/** An order n cut into pieces of `tile`. */
export interface TileGrid {
  readonly n: number;
  readonly tile: number;
  /** Tiles per row and column. */
  readonly count: number;
}

export function tileGrid(n: number, tile: number): TileGrid {
  return { n, tile, count: Math.ceil(n / tile) };
}

/** First row (or column) of tile row (or column) i. */
export function firstOf(grid: TileGrid, i: number): number {
  return i * grid.tile;
}

/** Rows (or columns) of tile row (or column) i. */
export function extentOf(grid: TileGrid, i: number): number {
  return Math.min(grid.tile, grid.n - i * grid.tile);
}

/** Bytes of the tiles on and below the diagonal. */
export function lowerBytes(grid: TileGrid, dtype: Dtype): number {
  let elements = 0;
  for (let j = 0; j < grid.count; j++) {
    elements += (grid.n - firstOf(grid, j)) * extentOf(grid, j);
  }
  return elements * bytesOf(dtype);
}
