// Distributions: the process of a grid, and the device, that a tile belongs to. Pure arithmetic.
import { HeadraceError } from '../errors.js';

/**
 * Two-dimensional block-cyclic distribution (ScaLAPACK Users' Guide, section 4.3): tile (i, j) belongs to grid
 * position ((i + originRow) mod rows, (j + originColumn) mod columns), numbered row by row.
 */
export interface BlockCyclic {
  /** Rows of the grid. */
  readonly rows: number;
  /** Columns of the grid. */
  readonly columns: number;
  readonly originRow?: number;
  readonly originColumn?: number;
}

/** Number of the grid position that owns tile (i, j). */
export function ownerOf(grid: BlockCyclic, i: number, j: number): number {
  const r = (i + (grid.originRow ?? 0)) % grid.rows;
  const c = (j + (grid.originColumn ?? 0)) % grid.columns;
  return r * grid.columns + c;
}

/** The most square grid of `n` positions, at least as many columns as rows. */
export function squareGrid(n: number): BlockCyclic {
  let rows = Math.floor(Math.sqrt(n));
  while (n % rows !== 0) rows--;
  return { rows, columns: n / rows };
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
