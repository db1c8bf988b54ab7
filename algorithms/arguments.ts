// Checks of the arguments of algorithms. A value may be of any type, whatever its declared type says.
// Invariant: an algorithm has checked all of its arguments, and all data that its tasks use, before it inserts the first task.
import { checkTruth, optionsOf, shown } from '../scheduler/checks.js';
import { Datum, type Graph, HeadraceError, TiledMatrix } from '../scheduler/index.js';
import type { MemoryOptions } from './panels.js';

/** An argument is of another type. */
export function wrongType(
  operation: string,
  name: string,
  wanted: string,
  value: unknown,
): HeadraceError {
  return new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `${operation}: ${name} must be ${wanted}, not ${shown(value)}`,
  );
}

/** @throws HeadraceError `ERR_ARGUMENT_TYPE` unless the value can take tasks. */
export function checkGraph(operation: string, graph: Graph): void {
  const given = graph as unknown as Partial<Graph> | null | undefined;
  // Not by its class: tests and the simulator count or share out the tasks with graphs of their own.
  const isGraph =
    typeof given === 'object' &&
    given !== null &&
    [given.insert, given.skips, given.check].every((method) => typeof method === 'function');
  if (isGraph) return;
  throw wrongType(operation, 'graph', 'the graph of a run', graph);
}

/** A copy of a list, whose elements are not checked. @throws HeadraceError `ERR_ARGUMENT_TYPE` unless it is an array. */
export function checkList<D>(operation: string, name: string, list: readonly D[]): D[] {
  if (Array.isArray(list)) return [...list];
  throw wrongType(operation, name, 'an array of data', list);
}

/** @throws HeadraceError `ERR_ARGUMENT_TYPE` unless the value is a matrix of f64 or f32. */
export function checkMatrix(operation: string, name: string, matrix: TiledMatrix): void {
  if (!(matrix instanceof TiledMatrix)) throw wrongType(operation, name, 'a TiledMatrix', matrix);
  const { element } = matrix;
  if (element === 'f64' || element === 'f32') return;
  throw new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `${operation}: ${name} must have elements of f64 or f32, but '${matrix.name}' has ${shown(element)}`,
  );
}

/** @throws HeadraceError `ERR_ARGUMENT_TYPE` unless all have the same elements */
export function checkTypes(
  operation: string,
  all: Readonly<Record<string, Pick<Datum, 'name' | 'element'>>>,
): void {
  const [[first, { name, element }], ...others] = Object.entries(all);
  for (const [other, of] of others) {
    if (of.element === element) continue;
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `${operation}: ${first} ('${name}') has elements of ${element}, but ${other} ('${of.name}') has ${of.element}`,
    );
  }
}

/** Matrices of one algorithm, of the same element type. @throws HeadraceError `ERR_ARGUMENT_TYPE` */
export function checkMatrices(
  operation: string,
  matrices: Readonly<Record<string, TiledMatrix>>,
): void {
  for (const [name, matrix] of Object.entries(matrices)) checkMatrix(operation, name, matrix);
  checkTypes(operation, matrices);
}

/** @throws HeadraceError `ERR_DUPLICATE_DATUM` when the matrix that is written is one of the others, too */
export function checkDistinct(
  operation: string,
  matrices: Readonly<Record<string, TiledMatrix>>,
  written: string,
): void {
  for (const [name, matrix] of Object.entries(matrices)) {
    if (matrix === matrices[written] && name !== written) {
      throw new HeadraceError(
        'ERR_DUPLICATE_DATUM',
        `${operation}: ${name} and ${written} are both '${matrix.name}', and ${written} is written`,
      );
    }
  }
}

/** @throws HeadraceError `ERR_SHAPE` for a matrix of which only a triangle exists */
export function checkFull(
  operation: string,
  matrices: Readonly<Record<string, TiledMatrix>>,
): void {
  for (const [name, matrix] of Object.entries(matrices)) {
    if (!matrix.lower) continue;
    throw new HeadraceError(
      'ERR_SHAPE',
      `${operation}: ${name} needs all of its tiles, but '${matrix.name}' is a lower triangle`,
    );
  }
}

/**
 * Every tile of a matrix, or of its lower or upper triangle, can be used, and has a value where it is read.
 * @throws HeadraceError as `Graph.check`, with the argument's name
 */
export function checkTiles(
  operation: string,
  name: string,
  graph: Graph,
  matrix: TiledMatrix,
  reads: boolean,
  part: 'all' | 'lower' | 'upper' = 'all',
): void {
  // Of tiles of other ranks a pruned run knows nothing to check.
  const isPruned = graph.skips();
  for (let j = 0; j < matrix.tileColumns; j++) {
    const end = part === 'upper' ? Math.min(j + 1, matrix.tileRows) : matrix.tileRows;
    for (let i = part === 'lower' ? j : 0; i < end; i++) {
      if (isPruned && graph.skips(matrix.rankOf(i, j))) continue;
      const tile = matrix.at(i, j);
      graph.check(tile, reads, `${operation}: tile '${tile.name}' of ${name}`);
    }
  }
}

/** @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_DATUM_CLOSED` unless the value is an open datum of f64 or f32. */
export function checkTile(operation: string, name: string, tile: Datum): void {
  if (!(tile instanceof Datum)) throw wrongType(operation, name, 'a datum', tile);
  if (tile.closed) {
    throw new HeadraceError(
      'ERR_DATUM_CLOSED',
      `${operation}: datum '${tile.name}' for ${name} is closed`,
      { datum: tile.name },
    );
  }
  const { element } = tile;
  if (element === 'f64' || element === 'f32') return;
  throw new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `${operation}: ${name} must have elements of f64 or f32, but datum '${tile.name}' is ${shown(element)}`,
    { datum: tile.name },
  );
}

/** @throws HeadraceError `ERR_SHAPE` unless all have tiles of the same size */
export function checkTileSizes(
  operation: string,
  matrices: Readonly<Record<string, TiledMatrix>>,
): void {
  const [[first, one], ...others] = Object.entries(matrices);
  for (const [name, matrix] of others) {
    if (matrix.tile === one.tile) continue;
    throw new HeadraceError(
      'ERR_SHAPE',
      `${operation}: ${first} ('${one.name}') has tiles of ${one.tile}, but ${name} ('${matrix.name}') of ${matrix.tile}`,
      { remedy: 'give them the same tile size' },
    );
  }
}

/** @throws HeadraceError `ERR_SHAPE` unless the matrix is square */
export function checkSquare(operation: string, name: string, matrix: TiledMatrix): void {
  if (matrix.rows === matrix.columns) return;
  throw new HeadraceError(
    'ERR_SHAPE',
    `${operation}: ${name} must be square, but '${matrix.name}' is ${matrix.rows} x ${matrix.columns}`,
  );
}

/** The matrices in the words of an error: names and shapes. */
export function shapes(...matrices: readonly TiledMatrix[]): string {
  return matrices
    .map(({ name, rows, columns }) => `'${name}' (${rows} x ${columns})`)
    .join(' and ');
}

/** Options whose values the insertion of the task checks. @throws HeadraceError `ERR_OPTION` */
export function checkNames(
  operation: string,
  options: unknown,
  known: readonly string[],
  what = 'the options',
): void {
  optionsOf(options as object, known, `${operation}: ${what}`);
}

/** @throws HeadraceError `ERR_OPTION` unless each of the named options is left out or a truth value */
export function checkTruths(operation: string, options: object, names: readonly string[]): void {
  for (const name of names) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined) checkTruth(value, `${operation}: ${name}`);
  }
}

/** @throws HeadraceError `ERR_OPTION` unless the value is a number; NaN and infinities are. */
export function checkScalar(operation: string, name: string, value: number): void {
  if (typeof value === 'number') return;
  throw new HeadraceError(
    'ERR_OPTION',
    `${operation}: ${name} must be a number, not ${shown(value)}`,
  );
}

/** @throws HeadraceError `ERR_ARGUMENT_TYPE` unless the value is an integer from `least` to `most`. */
export function checkCount(
  operation: string,
  name: string,
  value: number,
  least = 0,
  most: number = Number.MAX_SAFE_INTEGER,
): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const range =
    most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  throw wrongType(operation, name, `an integer ${range}`, value);
}

/** Tiles that the memory of a GPU holds, for the distribution of `matrix`. @throws HeadraceError `ERR_OPTION` */
export function checkTilesPerGpu(
  operation: string,
  { tilesPerGpu }: MemoryOptions,
  matrix: TiledMatrix,
): number {
  if (tilesPerGpu === undefined) return matrix.tilesPerGpu;
  if (typeof tilesPerGpu === 'number' && tilesPerGpu >= 1) return tilesPerGpu;
  throw new HeadraceError(
    'ERR_OPTION',
    `${operation}: tilesPerGpu must be a number of at least 1, not ${shown(tilesPerGpu)}`,
  );
}
