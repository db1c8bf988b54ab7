// Distributions: the process of a grid, and the device, that a tile belongs to. Pure arithmetic.
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

/** Number of the grid position that owns tile (i, j). */
export function ownerOf(grid: BlockCyclic, i: number, j: number): number {
  const { rows, columns, originRow = 0, originColumn = 0, blockRows = 1, blockColumns = 1 } = grid;
  const r = ((blockRows === 1 ? i : Math.floor(i / blockRows)) + originRow) % rows;
  const c = ((blockColumns === 1 ? j : Math.floor(j / blockColumns)) + originColumn) % columns;
  return r * columns + c;
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
      `a grid has a whole number of positions from 1 on, not ${typeof n === 'number' ? n : `a value of type ${typeof n}`}`,
    );
  let rows = Math.floor(Math.sqrt(n));
  while (n % rows !== 0) rows--;
  return { rows, columns: n / rows };
}

/** Up to so many GPUs, a triangle is dealt by rows. */
const BY_ROWS = 4;

/**
 * The grid of so many GPUs for a matrix that names none. A triangle on few GPUs is dealt by rows: then all GPUs work on every
 * column of a factorisation, and each reads only its own rows of the columns left of a panel. With more GPUs too much would travel
 * between them, so the grid is the most square one, as for a full matrix.
 */
export function gridOfGpus(gpus: number, isTriangle: boolean): BlockCyclic {
  return isTriangle && gpus <= BY_ROWS ? { rows: gpus, columns: 1 } : squareGrid(gpus);
}

/** @throws HeadraceError `ERR_UNDISTRIBUTED` when the grid has no positions or more than there are places. */
export function checkGrid(given: BlockCyclic, places: number, what: string): BlockCyclic {
  if (given === null || typeof given !== 'object')
    throw new HeadraceError(
      'ERR_UNDISTRIBUTED',
      `${what}: a grid is an object with rows and columns`,
    );
  const grid = { ...given };
  for (const origin of [grid.originRow ?? 0, grid.originColumn ?? 0]) {
    if (!Number.isSafeInteger(origin) || origin < 0) {
      throw new HeadraceError(
        'ERR_UNDISTRIBUTED',
        `${what}: the origin of a grid must be made of whole numbers of at least 0`,
      );
    }
  }
  for (const block of [grid.blockRows ?? 1, grid.blockColumns ?? 1]) {
    if (!Number.isSafeInteger(block) || block < 1) {
      throw new HeadraceError(
        'ERR_UNDISTRIBUTED',
        `${what}: the blocks of a grid must have whole numbers of rows and columns of at least 1`,
      );
    }
  }
  const whole = Number.isInteger(grid.rows) && Number.isInteger(grid.columns);
  if (!whole || grid.rows < 1 || grid.columns < 1) {
    throw new HeadraceError(
      'ERR_UNDISTRIBUTED',
      `${what}: a grid of ${String(grid.rows)} x ${String(grid.columns)} has no positions`,
    );
  }
  if (grid.rows * grid.columns > places) {
    throw new HeadraceError(
      'ERR_UNDISTRIBUTED',
      `${what}: a grid of ${grid.rows} x ${grid.columns} needs ${grid.rows * grid.columns} devices, but there are ${places}`,
      { limit: places, remedy: 'use a smaller grid or more devices' },
    );
  }
  return grid;
}
