// The division of a matrix that does not fit the memory of the GPUs.
import type { TiledMatrix } from '../scheduler/index.js';

/** Options of algorithms whose order of insertion depends on the memory of the GPUs. */
export interface MemoryOptions {
  /**
   * Full tiles that the memory of each GPU holds. Default: computed from the runtime's GPUs, and no limit without GPUs.
   * On several ranks the default is no limit, too: all ranks insert the same tasks in the same order, and a rank does not
   * know the memory of the others. Give the number there when the matrix does not fit; it must be the same on all ranks.
   */
  readonly tilesPerGpu?: number;
}

/** Their names. */
export const MEMORY_OPTIONS: readonly string[] = ['tilesPerGpu'];

/** Share of a GPU's memory for tiles that pass in or out, and their least number. */
const SHARE = 0.15;
const LEAST = 4;

/** Full tiles of a GPU's memory that may stay while others pass through. */
export function roomPerGpu(tilesPerGpu: number): number {
  return Math.min(tilesPerGpu - LEAST, tilesPerGpu * (1 - SHARE));
}

/** Rows and columns of the grid of all GPUs of all ranks over which the tiles are dealt. */
export function gpuGrid({ grid, rankGrid }: TiledMatrix): { rows: number; columns: number } {
  return { rows: grid.rows * rankGrid.rows, columns: grid.columns * rankGrid.columns };
}

/**
 * Panels of columns [first, end) of a lower triangle, each as wide as the memory of the GPUs allows: one if the matrix
 * fits. A panel stays in memory until it is final. So the columns left of it are read once per panel instead of the whole
 * trailing matrix once per column (left-looking: S. Toledo, "A survey of out-of-core algorithms in numerical linear
 * algebra", 1999).
 */
export function panelsOf(
  A: TiledMatrix,
  tilesPerGpu: number = A.tilesPerGpu,
): [first: number, end: number][] {
  const nt = A.tileRows;
  const { rows, columns } = gpuGrid(A);
  return divided(nt, columns, roomPerGpu(tilesPerGpu), (j) => Math.ceil((nt - j) / rows));
}

/**
 * Lines [first, end) of tiles of a full matrix, its columns or its rows, so many as the memory of the GPUs holds: all of them if
 * the matrix fits.
 */
export function linesOf(
  B: TiledMatrix,
  tilesPerGpu: number,
  along: 'columns' | 'rows',
): [first: number, end: number][] {
  const grid = gpuGrid(B);
  const room = roomPerGpu(tilesPerGpu);
  return along === 'columns'
    ? divided(B.tileColumns, grid.columns, room, () => Math.ceil(B.tileRows / grid.rows))
    : divided(B.tileRows, grid.rows, room, () => Math.ceil(B.tileColumns / grid.columns));
}

/** Lines [first, end), `step` at a time, as long as their tiles fit the room of each GPU. */
function divided(
  lines: number,
  step: number,
  room: number,
  tilesOf: (line: number) => number,
): [first: number, end: number][] {
  const panels: [number, number][] = [];
  for (let first = 0, end = 0; first < lines; first = end) {
    let tiles = 0;
    // Each GPU of a line of the grid takes one.
    do {
      tiles += tilesOf(end);
      end = Math.min(lines, end + step);
    } while (end < lines && tiles + tilesOf(end) <= room);
    panels.push([first, end]);
  }
  return panels;
}
