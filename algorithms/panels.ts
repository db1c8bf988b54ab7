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

/** Rows of a panel, [first, end). They are updated, factored and given up before the next ones. */
type Band = readonly [first: number, end: number];

/** Columns [first, end) of a lower triangle, which become final before the columns behind them are looked at. */
interface Panel {
  readonly first: number;
  readonly end: number;
  readonly bands: readonly Band[];
}

/** Rows of tiles that have room at once while rows pass by: one is computed, the next one comes in, and the last one leaves. */
const PASSING = 3;
/** Bands of a block of one tile would bring in each row for a single product with each of its tiles. */
const NARROW = 1;

/**
 * Panels of a lower triangle, each as wide as the memory of the GPUs allows: one if the matrix fits. So the columns left of a
 * panel are read once per panel instead of the whole trailing matrix once per column (left-looking: S. Toledo, "A survey of
 * out-of-core algorithms in numerical linear algebra", 1999). What stays in memory is one of two things:
 * - the panel: a single band of all its rows, each GPU with its own. It is little at the end of the matrix, where columns are short;
 * - the rows of the block on the diagonal, with all columns left of them, on every GPU. The rows below pass by in bands of one
 *   row for each row of the grid. It is little at the begin of the matrix, and copies spread over the kernels, where those of a
 *   whole panel come before its first ones.
 */
export function panelsOf(A: TiledMatrix, tilesPerGpu: number = A.tilesPerGpu): readonly Panel[] {
  const nt = A.tileRows;
  const grid = gpuGrid(A);
  const room = roomPerGpu(tilesPerGpu);
  const tilesOf = (j: number): number => Math.ceil((nt - j) / grid.rows);
  const panels: Panel[] = [];
  for (let first = 0; first < nt; ) {
    const whole = endOf(first, nt, grid.columns, room, tilesOf);
    const passing = endWithBands(first, nt, room);
    const inBands = whole < nt && passing >= whole && passing - first > NARROW;
    const end = inBands ? passing : whole;
    panels.push({
      first,
      end,
      bands: inBands ? bandsOf(first, end, nt, grid.rows) : [[first, nt]],
    });
    first = end;
  }
  return panels;
}

/** End of the widest panel whose block on the diagonal has room with the columns left of it and the rows that pass by. */
function endWithBands(first: number, nt: number, room: number): number {
  const tiles = (width: number): number => width * (first + (width + 1) / 2 + PASSING);
  let width = 0;
  while (first + width < nt && tiles(width + 1) <= room) width++;
  return first + width;
}

function bandsOf(first: number, end: number, nt: number, step: number): Band[] {
  const bands: Band[] = [[first, end]];
  for (let i = end; i < nt; i += step) bands.push([i, Math.min(nt, i + step)]);
  return bands;
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
    end = endOf(first, lines, step, room, tilesOf);
    panels.push([first, end]);
  }
  return panels;
}

/** End of the lines from `first` on whose tiles fit the room of each GPU: one line of the grid at least. */
function endOf(
  first: number,
  lines: number,
  step: number,
  room: number,
  tilesOf: (line: number) => number,
): number {
  let tiles = 0;
  let end = first;
  // Each GPU of a line of the grid takes one.
  do {
    tiles += tilesOf(end);
    end = Math.min(lines, end + step);
  } while (end < lines && tiles + tilesOf(end) <= room);
  return end;
}
