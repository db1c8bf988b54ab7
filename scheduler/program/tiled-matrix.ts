// A matrix of tiles, each a datum of its own, distributed block-cyclically over the devices.
// Tile (i, j) holds the rows from i*tile and the columns from j*tile, in column-major order. Edge tiles are smaller. The
// leading dimension of a tile is its number of rows.
// On several ranks a rank makes the tiles that it owns, and any other tile when the program first uses it there. So the
// tiles that a pruned program leaves out cost a rank nothing.

import { HeadraceError } from '../../devices/errors.js';
import {
  type BlockCyclic,
  checkGrid,
  type GpuGrid,
  GRID_OPTIONS,
  gridOfGpus,
  ownerOf,
  placeOf,
  squareGrid,
} from '../../devices/memory/distribution.js';
import { roundedBytes } from '../../devices/memory/zone.js';
import { checkText, checkTruth, isInstance, optionsOf, shown } from '../checks.js';
import { type OwnRange, type Range, range } from '../parameterised/range.js';
import type { Datum } from './datum.js';
import { type ElementArray, elementBytes, isElementType, newArray } from './element-type.js';
import type { BlockOptions } from './parts/mistakes.js';
import type { SharedNames } from './program-data.js';
import { Runtime } from './runtime.js';

/** Options of a tiled matrix. */
export interface TiledMatrixOptions {
  readonly rows: number;
  /** Default: as many as rows. */
  readonly columns?: number;
  /** Rows and columns of a tile. */
  readonly tile: number;
  /**
   * Grid of GPUs among which tiles are distributed. Default: the most square one; for a triangle, reflected, and one
   * column of all GPUs up to eight. Without GPUs it has no effect.
   */
  readonly grid?: GpuGrid;
  /** Grid of ranks among which tiles are distributed first; default: the most square one. */
  readonly rankGrid?: BlockCyclic;
  /** Only tiles on or below the diagonal exist. */
  readonly lower?: boolean;
  readonly name?: string;
}

const MATRIX_OPTIONS: readonly string[] = [
  'rows',
  'columns',
  'tile',
  'grid',
  'rankGrid',
  'lower',
  'name',
];
/** Each tile that is used is an object and a row of the directory: more would not fit the memory of a process. */
const MOST_TILES = 2 ** 24;

/** Fills one tile: column-major `values` of `rows` x `columns`, whose first element is (row, column) of the matrix. */
export type TileFill<E extends 'f64' | 'f32'> = (
  values: ElementArray<E>,
  row: number,
  column: number,
  rows: number,
  columns: number,
) => void;

/** A matrix of tiles, each a datum of its own, distributed block-cyclically. */
export class TiledMatrix<E extends 'f64' | 'f32' = 'f64' | 'f32'> {
  readonly name: string;
  readonly element: E;
  readonly rows: number;
  readonly columns: number;
  /** Rows and columns of a full tile. */
  readonly tile: number;
  /** Tiles per column and per row. */
  readonly tileRows: number;
  readonly tileColumns: number;
  readonly lower: boolean;
  readonly grid: GpuGrid;
  readonly rankGrid: BlockCyclic;
  /**
   * Number of full tiles that fit the memory of each GPU. Infinite without GPUs, and on several ranks, because a rank
   * does not know the memory of the others.
   */
  readonly tilesPerGpu: number;
  /** The tiles that this rank has made, column by column. Without holes it is an array, with many a table of its entries. */
  private readonly tiles: (Datum<E> | undefined)[] = [];
  private readonly runtime: Runtime;
  /** The name of the first tile that is the same on all ranks; the others follow, column by column. */
  private readonly names: SharedNames | undefined;
  private readonly hasValues: boolean;
  private isClosed = false;

  /**
   * A matrix without values: tasks write its tiles first. With `fill`, tiles get values one at a time.
   *
   * @throws HeadraceError `ERR_OPTION` for sizes that are not positive integers and for more than 2^24 tiles,
   *   `ERR_OUT_OF_HOST_MEMORY` when filled tiles do not fit, `ERR_UNDISTRIBUTED` for a grid that needs more GPUs than
   *   there are.
   */
  constructor(runtime: Runtime, element: E, options: TiledMatrixOptions, fill?: TileFill<E>) {
    if (!isInstance(runtime, Runtime))
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `a matrix is made for a runtime, not for ${shown(runtime)}`,
        { remedy: 'new TiledMatrix(runtime, element, options)' },
      );
    const given = optionsOf(options, MATRIX_OPTIONS, 'the options of a matrix');
    const { rows, columns = rows, tile } = given;
    this.rows = checkSize('rows', rows);
    this.columns = checkSize('columns', columns);
    this.tile = checkSize('tile', tile);
    if (!isElementType(element)) {
      throw new HeadraceError('ERR_ARGUMENT_TYPE', `a matrix has no elements of ${shown(element)}`);
    }
    if (fill !== undefined && typeof fill !== 'function')
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `the values of a matrix come from a function, not from ${shown(fill)}`,
      );
    const gpus = runtime.gpus.length;
    this.name = checkText(given.name ?? 'matrix', 'the name of a matrix');
    this.element = element;
    this.tileRows = Math.ceil(this.rows / this.tile);
    this.tileColumns = Math.ceil(this.columns / this.tile);
    this.lower = checkTruth(given.lower ?? false, 'lower');
    this.checkTiles();
    this.grid =
      given.grid === undefined
        ? gridOfGpus(Math.max(1, gpus), this.lower)
        : this.gpuGridOf(given.grid, Math.max(1, gpus));
    const ranks = runtime.ranks;
    this.rankGrid =
      given.rankGrid === undefined
        ? squareGrid(ranks)
        : this.gridOf('rankGrid', given.rankGrid, ranks);
    const tileBytes = roundedBytes(this.tile ** 2 * elementBytes(element));
    const memory = ranks > 1 ? [] : runtime.engine.spaces.slice(1);
    this.tilesPerGpu = Math.floor(
      Math.min(...memory.map((space) => space.zone.capacity)) / tileBytes,
    );
    this.runtime = runtime;
    this.hasValues = fill !== undefined;
    const { name } = this;
    this.names = runtime.programData.share(this.tileRows * this.tileColumns, {
      name,
      element,
      shape: [
        this.rows,
        this.columns,
        this.tile,
        this.lower ? 1 : 0,
        ...gridNumbers(this.rankGrid),
      ],
    });
    try {
      for (let j = 0; j < this.tileColumns; j++) {
        for (let i = this.lower ? j : 0; i < this.tileRows; i++)
          if (this.names === undefined || this.rankOf(i, j) === runtime.rank)
            this.makeTile(i, j, fill);
      }
    } catch (error) {
      this.close();
      throw error;
    }
  }

  private gpuGridOf(given: GpuGrid, gpus: number): GpuGrid {
    const { reflected, ...grid } = optionsOf(
      given,
      [...GRID_OPTIONS, 'reflected'],
      this.gridName('grid'),
    );
    return {
      ...this.gridOf('grid', grid as BlockCyclic, gpus),
      reflected: checkTruth(reflected ?? false, 'reflected'),
    };
  }

  private gridName(option: string): string {
    return `the ${option} of matrix '${this.name}'`;
  }

  private gridOf(option: string, given: BlockCyclic, places: number): BlockCyclic {
    const what = this.gridName(option);
    return checkGrid(optionsOf(given, GRID_OPTIONS, what), places, what);
  }

  private makeTile(i: number, j: number, fill?: TileFill<E>): Datum<E> {
    const { element, rankGrid, runtime, tile } = this;
    const m = this.rowsOf(i);
    const n = this.columnsOf(j);
    const at = j * this.tileRows + i;
    const name = `${this.name}(${i}, ${j})`;
    const rank = this.rankOf(i, j);
    // The tiles of one rank are distributed over its GPUs as if it were the only rank.
    const device = ownerOf(this.grid, ...placeOf(rankGrid, i, j));
    const placed =
      runtime.gpus.length === 0 ? { name, rank, rows: m } : { name, rank, rows: m, device };
    const { programData } = runtime;
    const shared = this.names === undefined ? undefined : this.names.first + at;
    let datum: Datum<E>;
    if (fill !== undefined && rank === runtime.rank) {
      const values = newArray(element, m * n);
      fill(values, i * tile, j * tile, m, n);
      datum = programData.from(values, placed, shared) as unknown as Datum<E>;
    } else {
      datum = programData.empty(element, m * n, placed, shared) as unknown as Datum<E>;
      if (this.hasValues) programData.valueIsElsewhere(datum);
    }
    this.tiles[at] = datum;
    return datum;
  }

  /** Rank that owns tile (i, j), whether or not the tile exists. */
  rankOf(i: number, j: number): number {
    return ownerOf(this.rankGrid, i, j);
  }

  /**
   * The rows of tiles in `rows` in which rank `rank` may own tiles, for the ranges of its tasks (`own` of a class of a parameterised
   * graph). Takes time only for these.
   */
  ownRows(rank: number, rows: Range): OwnRange {
    const { rows: count, columns, originRow = 0, blockRows = 1 } = this.rankGrid;
    if (rank >= count * columns) return [];
    return ownLines(rows, Math.floor(rank / columns), {
      count,
      origin: originRow,
      block: blockRows,
    });
  }

  /** As `ownRows`, the columns. */
  ownColumns(rank: number, columns: Range): OwnRange {
    const { rows, columns: count, originColumn = 0, blockColumns = 1 } = this.rankGrid;
    if (rank >= rows * count) return [];
    return ownLines(columns, rank % count, {
      ...{ count, origin: originColumn, block: blockColumns },
    });
  }

  private hasTile(i: number, j: number): boolean {
    const { tileRows, tileColumns, lower } = this;
    const isWhole = Number.isInteger(i) && Number.isInteger(j);
    return isWhole && j >= 0 && j < tileColumns && i >= (lower ? j : 0) && i < tileRows;
  }

  private checkTiles(): void {
    const { name, tileRows, tileColumns } = this;
    if (tileRows * tileColumns <= MOST_TILES) return;
    throw new HeadraceError(
      'ERR_OPTION',
      `matrix '${name}' would have ${tileRows} x ${tileColumns} tiles; the limit is ${MOST_TILES}`,
      { limit: MOST_TILES, remedy: 'use larger tiles' },
    );
  }

  /** Rows of the tiles in tile row `i`. */
  rowsOf(i: number): number {
    return Math.min(this.tile, this.rows - i * this.tile);
  }

  /** Columns of the tiles in tile column `j`. */
  columnsOf(j: number): number {
    return Math.min(this.tile, this.columns - j * this.tile);
  }

  /**
   * The datum of tile (i, j).
   * @throws HeadraceError `ERR_NO_TILE` outside of the matrix, or above the diagonal of a lower one.
   */
  at(i: number, j: number): Datum<E> {
    const datum =
      Number.isInteger(i) && i >= 0 && i < this.tileRows && j >= 0 && j < this.tileColumns
        ? this.tiles[j * this.tileRows + i]
        : undefined;
    return datum ?? this.firstUse(i, j);
  }

  /**
   * The block of tile (i, j) with these rows and columns of the tile (`Datum.block`).
   * @throws HeadraceError `ERR_NO_TILE`, and the errors of `Datum.block`
   */
  block(i: number, j: number, options: BlockOptions): Datum<E> {
    return this.at(i, j).block(options);
  }

  private firstUse(i: number, j: number): Datum<E> {
    if (this.names === undefined || !this.hasTile(i, j)) {
      throw new HeadraceError(
        'ERR_NO_TILE',
        `matrix '${this.name}' has no tile (${shown(i)}, ${shown(j)}): it has ${this.tileRows} x ${this.tileColumns}${this.lower ? ', lower triangle only' : ''}`,
      );
    }
    const datum = this.makeTile(i, j);
    if (this.isClosed) this.runtime.programData.closeQuietly(datum);
    return datum;
  }

  /** The tiles, column by column. On several ranks this makes those that the rank has not made. */
  *[Symbol.iterator](): Iterator<Datum<E>> {
    for (let j = 0; j < this.tileColumns; j++)
      for (let i = this.lower ? j : 0; i < this.tileRows; i++) yield this.at(i, j);
  }

  /** Bytes of all tiles. */
  get bytes(): number {
    let elements = 0;
    for (let j = 0; j < this.tileColumns; j++) {
      const first = this.lower ? j * this.tile : 0;
      elements += Math.max(0, this.rows - first) * this.columnsOf(j);
    }
    return elements * elementBytes(this.element);
  }

  /** The whole matrix, column-major, after all tasks inserted so far. Absent upper tiles are zero. */
  async read(): Promise<ElementArray<E>> {
    const all = newArray(this.element, this.rows * this.columns);
    for (let j = 0; j < this.tileColumns; j++) {
      for (let i = this.lower ? j : 0; i < this.tileRows; i++) {
        const values = await this.at(i, j).read();
        const m = this.rowsOf(i);
        for (let c = 0; c < this.columnsOf(j); c++) {
          all.set(
            values.subarray(c * m, (c + 1) * m) as never,
            (j * this.tile + c) * this.rows + i * this.tile,
          );
        }
      }
    }
    return all;
  }

  /** Closes every tile. Idempotent. */
  close(): void {
    const { names, tiles } = this;
    if (names === undefined) {
      for (const datum of tiles) datum?.close();
      return;
    }
    if (this.isClosed) return;
    this.isClosed = true;
    const { programData } = this.runtime;
    programData.closeShared(names);
    for (const at in tiles) programData.closeQuietly(tiles[at] as Datum<E>);
  }
}

/** The lines of tiles that a row or column of the grid owns: blocks of `block` lines go to `count` of them in turn, from `origin` on. */
function ownLines(
  { first, end, step }: Range,
  at: number,
  {
    count,
    origin,
    block,
  }: { readonly count: number; readonly origin: number; readonly block: number },
): OwnRange {
  /** The first line of this owner's first block. */
  const begin = ((((at - origin) % count) + count) % count) * block;
  const turn = count * block;
  if (block === 1 && step === 1)
    return range(begin + Math.max(0, Math.ceil((first - begin) / turn)) * turn, end, turn);
  const lines: number[] = [];
  const from = begin + Math.max(0, Math.floor((first - begin) / turn)) * turn;
  for (let base = from; base < end; base += turn)
    for (let line = Math.max(base, first); line < Math.min(base + block, end); line++)
      if ((line - first) % step === 0) lines.push(line);
  return lines;
}

/** @throws HeadraceError `ERR_OPTION` */
function checkSize(what: string, value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1) return value as number;
  throw new HeadraceError(
    'ERR_OPTION',
    `a matrix needs ${what} of at least 1, not ${shown(value)}`,
  );
}

/** A grid in numbers, which are equal on all ranks. */
function gridNumbers(grid: BlockCyclic): number[] {
  const { rows, columns, originRow = 0, originColumn = 0, blockRows = 1, blockColumns = 1 } = grid;
  return [rows, columns, originRow, originColumn, blockRows, blockColumns];
}
