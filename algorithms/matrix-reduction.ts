// Norms, sums and dot products of tiled matrices. Each tile is reduced where it lies to a number, or to one per column or row, and only these
// partial results travel: along a binary tree in each column of tiles (each row for the infinity norm), then along one over the columns.
//
// Invariant: the order of all operations depends on the shape of the matrix and its tile size only. So a result has the same
// bits for any number of ranks, GPUs and workers.
import {
  Datum,
  type Flow,
  type Graph,
  HeadraceError,
  Runtime,
  read,
  type TaskClass,
  type TiledMatrix,
  task,
  write,
} from '../scheduler/index.js';
import {
  checkFull,
  checkGraph,
  checkMatrices,
  checkMatrix,
  checkTileSizes,
  checkTiles,
  shapes,
  wrongType,
} from './arguments.js';
import { reduce, reducePartials } from './reduce.js';
import type { ReduceOperation } from './reduce-classes.js';
import type { Real } from './tile-classes.js';

/**
 * What `reduceMatrix` computes of the elements a_ij: their sum, minimum or maximum; `largest`, the maximum of |a_ij|; the Frobenius norm;
 * `one`, the largest sum of |a_ij| of a column; `infinity`, the largest of a row.
 */
export type MatrixReduction = 'sum' | 'min' | 'max' | 'largest' | 'frobenius' | 'one' | 'infinity';

interface Steps {
  /** Kernel that reduces a tile, and how its results are combined along a line of tiles. */
  readonly tile: string;
  readonly along: ReduceOperation;
  /** How the numbers of the lines are combined. */
  readonly across: ReduceOperation;
  /** Numbers per tile: one, or one per column or row. Lines of tiles are columns, and rows for `rows`. */
  readonly per: 'tile' | 'columns' | 'rows';
}

const STEPS: Readonly<Record<MatrixReduction | 'dot', Steps>> = {
  sum: { tile: 'tile_sum', along: 'sum', across: 'sum', per: 'tile' },
  min: { tile: 'tile_min', along: 'min', across: 'min', per: 'tile' },
  max: { tile: 'tile_max', along: 'max', across: 'max', per: 'tile' },
  largest: { tile: 'tile_largest', along: 'max', across: 'max', per: 'tile' },
  frobenius: { tile: 'tile_frobenius', along: 'hypot', across: 'hypot', per: 'tile' },
  one: { tile: 'tile_columns', along: 'sum', across: 'max', per: 'columns' },
  infinity: { tile: 'tile_rows', along: 'sum', across: 'max', per: 'rows' },
  dot: { tile: 'tile_dot', along: 'sum', across: 'sum', per: 'tile' },
};

const SHAPE = { m: 'i32', n: 'i32', lda: 'i32' } as const;
type To = Flow<'f64', 'write'>;
type One = TaskClass<{ readonly to: To; readonly a: Flow<Real, 'read'> }, typeof SHAPE>;
const DOT = { m: 'i32', n: 'i32', lda: 'i32', ldb: 'i32' } as const;
type Two = TaskClass<
  { readonly to: To; readonly a: Flow<Real, 'read'>; readonly b: Flow<Real, 'read'> },
  typeof DOT
>;

function classesFor(e: Real): { readonly one: Readonly<Record<string, One>>; readonly two: Two } {
  const one: Record<string, One> = {};
  for (const { tile } of Object.values(STEPS)) {
    if (tile === 'tile_dot') continue;
    const flows = { to: write('f64'), a: read(e) };
    one[tile] = task({ name: tile, flows, params: SHAPE, kernel: `${tile}_${e}` });
  }
  const flows = { to: write('f64'), a: read(e), b: read(e) };
  return { one, two: task({ name: 'tile_dot', flows, params: DOT, kernel: `tile_dot_${e}` }) };
}
const CLASSES = { f64: classesFor('f64'), f32: classesFor('f32') };

/** The task class that writes the sum of the products of the elements of two tiles. */
export function dotClass(element: Real): Two {
  return CLASSES[element].two;
}

/** The largest number of a list. A NaN is larger than all. */
const largest = task({
  name: 'largest',
  flows: { to: write('f64'), from: read('f64') },
  body: ({ to, from }) => {
    to[0] = from.reduce((most, value) => Math.max(most, value), 0);
  },
});

/** The data of one line of tiles. */
interface Line {
  readonly tiles: readonly Datum<'f64'>[];
  readonly partials: readonly Datum<'f64'>[];
  /** The line's numbers, and their largest if there are several. */
  readonly total: Datum<'f64'>;
  readonly number: Datum<'f64'>;
}

/** The data for the partial results of reductions over a matrix. Reductions that follow each other may share them. */
export class MatrixPartials {
  /** What they were made for. */
  readonly operation: MatrixReduction | 'dot';
  /** The matrix's rows, columns and tile size. */
  readonly shape: readonly [rows: number, columns: number, tile: number];
  /** @internal */
  readonly lines: readonly Line[];
  /** @internal */
  readonly partials: readonly Datum<'f64'>[];

  /** @internal */
  constructor(runtime: Runtime, matrix: TiledMatrix, operation: MatrixReduction | 'dot') {
    const { per } = STEPS[operation];
    this.operation = operation;
    this.shape = [matrix.rows, matrix.columns, matrix.tile];
    const make = (count: number, rank: number): Datum<'f64'> =>
      runtime.data('f64', count, { name: `partial ${operation} of ${matrix.name}`, rank });
    const [lines, along] =
      per === 'rows'
        ? [matrix.tileRows, matrix.tileColumns]
        : [matrix.tileColumns, matrix.tileRows];
    this.lines = Array.from({ length: lines }, (_, line) => {
      const tiles = Array.from({ length: along }, (_, at) => {
        const [i, j] = per === 'rows' ? [line, at] : [at, line];
        const each = { tile: 1, columns: matrix.columnsOf(j), rows: matrix.rowsOf(i) };
        return make(each[per], matrix.rankOf(i, j));
      });
      const [{ length, rank }] = tiles;
      const partials = reducePartials(runtime, tiles);
      const total = make(length, rank);
      return { tiles, partials, total, number: per === 'tile' ? total : make(1, rank) };
    });
    const numbers = this.lines.map(({ number }) => number);
    this.partials = reducePartials(runtime, numbers);
  }

  /** Closes the data, after the tasks that use them. Idempotent. */
  close(): void {
    for (const { tiles, partials, total, number } of this.lines)
      for (const datum of [...tiles, ...partials, total, number]) datum.close();
    for (const datum of this.partials) datum.close();
  }
}

/**
 * Makes the data for the partial results of an operation over matrices of this shape, tile size and distribution, each on the rank of a
 * tile that it stands for. Call it on every rank, as `Runtime.data`.
 *
 * @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_SHAPE` for a lower triangle, and the errors of `Runtime.data`
 */
export function matrixPartials(
  runtime: Runtime,
  matrix: TiledMatrix,
  operation: MatrixReduction | 'dot',
): MatrixPartials {
  const name = 'matrixPartials';
  if (!(runtime instanceof Runtime)) throw wrongType(name, 'runtime', 'a Runtime', runtime);
  checkMatrix(name, 'matrix', matrix);
  checkFull(name, { matrix });
  if (typeof operation !== 'string' || !Object.hasOwn(STEPS, operation)) {
    throw wrongType(name, 'operation', `one of ${Object.keys(STEPS).join(', ')}`, operation);
  }
  return new MatrixPartials(runtime, matrix, operation);
}

/**
 * Inserts the tasks that write to `result`, a datum of one f64, the number that `partials` were made for: `matrixPartials(runtime, A, 'one')`
 * for the norm |A|_1. A may have any shape; matrices of f32 are reduced in f64, too. A NaN in A gives a NaN (or, for `frobenius` and with an
 * infinity in another tile, an infinity). On CUDA GPUs the tiles are copied to the host, because the kernels exist for hosts and
 * emulated GPUs.
 *
 * Sums are rounded once per addition, in an order that depends on the shape and the tile size only. The Frobenius norm neither
 * overflows nor vanishes if the result is a number of its range (J. L. Blue, "A portable Fortran program to find the Euclidean norm of a
 * vector", ACM TOMS 4 (1978); scaled as in LAPACK's LASSQ).
 *
 * @throws HeadraceError `ERR_SHAPE` when A is a lower triangle, the partials were made for another shape or tile size or for `dot`, or the
 *   result is not one element; `ERR_ARGUMENT_TYPE` and the errors of `Graph.check`, each before the first task is inserted
 */
export function reduceMatrix(
  graph: Graph,
  A: TiledMatrix,
  partials: MatrixPartials,
  result: Datum<'f64'>,
): void {
  const operation = 'reduceMatrix';
  checkGraph(operation, graph);
  checkMatrix(operation, 'A', A);
  checkFull(operation, { A });
  checkPartials(operation, graph, A, partials);
  if (partials.operation === 'dot') {
    throw new HeadraceError('ERR_SHAPE', `${operation}: the partials were made for dot`);
  }
  checkResult(operation, graph, result);
  checkTiles(operation, 'A', graph, A, true);
  const { tile } = STEPS[partials.operation];
  const reduceTile = CLASSES[A.element].one[tile];
  insertAll(graph, partials, result, (to, i, j) => {
    const a = A.at(i, j);
    graph.insert(reduceTile, { to, a, m: a.rows, n: a.columns, lda: a.rows });
  });
}

/**
 * Inserts the tasks that write to `result`, a datum of one f64, the sum of a_ij b_ij: the dot product of vectors, and trace(A^T B) of
 * matrices. `partials` come from `matrixPartials(runtime, A, 'dot')`. A and B have the same shape, tile size and elements; B may be A. Where
 * their distributions differ, tiles of B travel to the rank of A's.
 *
 * @throws HeadraceError `ERR_SHAPE` when the shapes or tile sizes differ or a matrix is a lower triangle, and as `reduceMatrix`
 */
export function dot<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  B: TiledMatrix<NoInfer<E>>,
  partials: MatrixPartials,
  result: Datum<'f64'>,
): void {
  const operation = 'dot';
  checkGraph(operation, graph);
  checkMatrices(operation, { A, B });
  checkFull(operation, { A, B });
  if (A.rows !== B.rows || A.columns !== B.columns) {
    throw new HeadraceError('ERR_SHAPE', `${operation}: the shapes of ${shapes(A, B)} differ`);
  }
  checkTileSizes(operation, { A, B });
  checkPartials(operation, graph, A, partials);
  if (partials.operation !== 'dot') {
    throw new HeadraceError(
      'ERR_SHAPE',
      `${operation}: the partials were made for ${partials.operation}`,
    );
  }
  checkResult(operation, graph, result);
  checkTiles(operation, 'A', graph, A, true);
  checkTiles(operation, 'B', graph, B, true);
  const two = dotClass(A.element);
  insertAll(graph, partials, result, (to, i, j) => {
    const [a, b] = [A.at(i, j) as Datum<Real>, B.at(i, j) as Datum<Real>];
    graph.insert(two, { to, a, b, m: a.rows, n: a.columns, lda: a.rows, ldb: b.rows });
  });
}

/** Reduces the tiles, then the lines, then their numbers. */
function insertAll(
  graph: Graph,
  { operation, lines, partials }: MatrixPartials,
  result: Datum<'f64'>,
  reduceTile: (to: Datum<'f64'>, i: number, j: number) => void,
): void {
  const { along, across, per } = STEPS[operation];
  for (const [line, { tiles, partials: inner, total, number }] of lines.entries()) {
    for (const [at, to] of tiles.entries()) {
      if (per === 'rows') reduceTile(to, line, at);
      else reduceTile(to, at, line);
    }
    reduce(graph, { inputs: tiles, partials: inner, result: total }, along);
    if (number !== total) graph.insert(largest, { to: number, from: total });
  }
  reduce(graph, { inputs: lines.map(({ number }) => number), partials, result }, across);
}

function checkPartials(
  operation: string,
  graph: Graph,
  A: TiledMatrix,
  partials: MatrixPartials,
): void {
  if (!(partials instanceof MatrixPartials)) {
    throw wrongType(operation, 'partials', 'what matrixPartials makes', partials);
  }
  const [rows, columns, tile] = partials.shape;
  if (rows !== A.rows || columns !== A.columns || tile !== A.tile) {
    throw new HeadraceError(
      'ERR_SHAPE',
      `${operation}: the partials are for ${rows} x ${columns} in tiles of ${tile}, but '${A.name}' is ${A.rows} x ${A.columns} in tiles of ${A.tile}`,
      { remedy: 'make them with matrixPartials' },
    );
  }
  for (const { tiles, total, number } of partials.lines)
    for (const datum of [...tiles, total, number])
      graph.check(datum, false, `${operation}: datum '${datum.name}' of partials`);
}

function checkResult(operation: string, graph: Graph, result: Datum<'f64'>): void {
  if (!(result instanceof Datum) || result.element !== 'f64') {
    throw wrongType(operation, 'result', 'a datum of f64', result);
  }
  graph.check(result, false, `${operation}: datum '${result.name}' of result`);
  if (result.length === 1) return;
  throw new HeadraceError(
    'ERR_SHAPE',
    `${operation}: result needs one element, but '${result.name}' has ${result.length}`,
    { datum: result.name },
  );
}
