// Distributions: the process of a grid, and the device, that a tile belongs to. Pure arithmetic.
import { shown } from '../../trace/shown.js';
import { HeadraceError } from '../errors.js';

/**
 * Two-dimensional block-cyclic distribution (ScaLAPACK Users' Guide, section 4.3): tile (i, j) belongs to grid
 * position ((i / blockRows + originRow) mod rows, (j / blockColumns + originColumn) mod columns), numbered row by row.
 * Quotients are rounded down.
 */
export interface BlockCyclic {
  /** Rows of the grid. */
  readonly rows: number;
  /** Columns of the grid. */
  readonly columns: number;
  readonly originRow?: number;
  readonly originColumn?: number;
  /** Successive rows and columns of tiles that one position owns; default 1. */
  readonly blockRows?: number;
  readonly blockColumns?: number;
}

/** The grid of the GPUs of a rank. */
export interface GpuGrid extends BlockCyclic {
  /**
   * Rows and columns are dealt forth and back: 0, 1, 1, 0, 0, 1 ... instead of 0, 1, 0, 1 ... In a factorisation the work of a row
   * grows with its number, and dealt this way the last position has no more of it than the first. Default false.
   */
  readonly reflected?: boolean;
}

/** Position of line `n` among `count`. */
function position(n: number, count: number, isReflected: boolean): number {
  const at = n % count;
  return isReflected && Math.floor(n / count) % 2 === 1 ? count - 1 - at : at;
}

/** Number of the grid position that owns tile (i, j). */
export function ownerOf(grid: GpuGrid, i: number, j: number): number {
  const { rows, columns, originRow = 0, originColumn = 0, blockRows = 1, blockColumns = 1 } = grid;
  const { reflected = false } = grid;
  const r = (blockRows === 1 ? i : Math.floor(i / blockRows)) + originRow;
  const c = (blockColumns === 1 ? j : Math.floor(j / blockColumns)) + originColumn;
  return position(r, rows, reflected) * columns + position(c, columns, reflected);
}

/** Place of tile (i, j) among the tiles of its owner: their row and column when the tiles of others are left out. */
export function placeOf(grid: BlockCyclic, i: number, j: number): [number, number] {
  const { rows, columns, blockRows = 1, blockColumns = 1 } = grid;
  return [
    Math.floor(i / (blockRows * rows)) * blockRows + (i % blockRows),
    Math.floor(j / (blockColumns * columns)) * blockColumns + (j % blockColumns),
  ];
}

/** The most square grid of `n` positions, at least as many columns as rows. @throws HeadraceError `ERR_OPTION` */
export function squareGrid(n: number): BlockCyclic {
  if (!Number.isSafeInteger(n) || n < 1)
    throw new HeadraceError(
      'ERR_OPTION',
      `a grid has a whole number of positions from 1 on, not ${shown(n)}`,
    );
  let rows = Math.floor(Math.sqrt(n));
  while (n % rows !== 0) rows--;
  return { rows, columns: n / rows };
}

/** Up to so many GPUs, a triangle is dealt by rows. */
const BY_ROWS = 8;

/**
 * The grid of so many GPUs for a matrix that names none. A triangle on few GPUs is dealt by rows: then all GPUs work on every
 * column of a factorisation, and each reads only its own rows of the columns left of a panel. With more GPUs too much would travel
 * between them, so the grid is the most square one, as for a full matrix. Reflection gives all GPUs the same work (figures:
 * docs/gpu-results.md, section 6).
 */
export function gridOfGpus(gpus: number, isTriangle: boolean): GpuGrid {
  return isTriangle && gpus <= BY_ROWS
    ? { rows: gpus, columns: 1, reflected: true }
    : { ...squareGrid(gpus), reflected: isTriangle };
}

/** The least value of each number of a grid. */
const LEAST: Readonly<Record<keyof BlockCyclic, number>> = {
  rows: 1,
  columns: 1,
  originRow: 0,
  originColumn: 0,
  blockRows: 1,
  blockColumns: 1,
};

/** Names of the numbers of a grid. */
export const GRID_OPTIONS: readonly string[] = Object.keys(LEAST);

/**
 * A grid with all its numbers.
 * @throws HeadraceError `ERR_UNDISTRIBUTED` when the grid has no positions or more than there are places; `what` names the grid.
 */
export function checkGrid(
  {
    rows,
    columns,
    originRow = 0,
    originColumn = 0,
    blockRows = 1,
    blockColumns = 1,
  }: Partial<BlockCyclic>,
  places: number,
  what: string,
): Required<BlockCyclic> {
  const grid = { rows, columns, originRow, originColumn, blockRows, blockColumns };
  for (const [name, least] of Object.entries(LEAST)) {
    const value = grid[name as keyof BlockCyclic];
    if (Number.isSafeInteger(value) && (value as number) >= least) continue;
    throw new HeadraceError(
      'ERR_UNDISTRIBUTED',
      `${what} needs a whole number of at least ${least} as its ${name}, not ${shown(value)}`,
    );
  }
  return checkPlaces(grid as Required<BlockCyclic>, places, what);
}

function checkPlaces(
  grid: Required<BlockCyclic>,
  places: number,
  what: string,
): Required<BlockCyclic> {
  if (grid.rows * grid.columns > places) {
    throw new HeadraceError(
      'ERR_UNDISTRIBUTED',
      `${what} of ${grid.rows} x ${grid.columns} needs ${grid.rows * grid.columns} devices, but there are ${places}`,
      { limit: places, remedy: 'use a smaller grid or more devices' },
    );
  }
  return grid;
}
