// Tiled QR factorisation with Householder reflectors: A. Buttari, J. Langou, J. Kurzak, J. Dongarra, "A class of parallel tiled linear
// algebra algorithms for multicore architectures", Parallel Computing 35 (2009), algorithm 2. The diagonal tile is factorised. Then its triangle
// R is eliminated against each tile below it, so every task uses one pair of tiles. Reflectors are orthogonal whatever the matrix:
// N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition (2002), theorem 19.4.
import { type Graph, HeadraceError, type Runtime, type TiledMatrix } from '../scheduler/index.js';
import {
  checkDistinct,
  checkFull,
  checkGraph,
  checkMatrices,
  checkMatrix,
  checkNames,
  checkTileSizes,
  checkTiles,
  checkTilesPerGpu,
  checkTruths,
  shapes,
  wrongType,
} from './arguments.js';
import { linesOf, MEMORY_OPTIONS, type MemoryOptions } from './panels.js';
import { qrClasses } from './qr-classes.js';
import { type Real, tileClasses } from './tile-classes.js';
import { checkFactors, checkFactorsOf, TileData } from './tile-data.js';

/** Reflectors that are applied at a time. */
const BLOCK = 32;

/** What `qr` keeps beside A: the triangles of the blocks of reflectors, 32 rows per tile on and below the diagonal. */
export class QrFactors<E extends Real = Real> {
  /** The matrix's elements, rows, columns and tile size. */
  readonly element: E;
  readonly rows: number;
  readonly columns: number;
  readonly tile: number;
  /** @internal */
  readonly triangles: TileData<E>;

  /** @internal */
  constructor(runtime: Runtime, A: TiledMatrix<E>) {
    this.element = A.element;
    this.rows = A.rows;
    this.columns = A.columns;
    this.tile = A.tile;
    this.triangles = new TileData(runtime, A, 'T', A.element, 0, (_, j) => {
      const columns = A.columnsOf(j);
      const rows = Math.min(BLOCK, columns);
      return { length: rows * columns, rows };
    });
  }

  /** Closes the data, after the tasks that use them. Idempotent. */
  close(): void {
    this.triangles.close();
  }
}

/** Options of `applyQ`. */
export interface ApplyQOptions extends MemoryOptions {
  /** Multiply by Q^T; default false. */
  readonly trans?: boolean;
}

/**
 * Makes the data that `qr` keeps beside A, m x n with m >= n. They need no values; each lies on the rank of its tile. Call it on every rank,
 * as `Runtime.data`.
 *
 * @throws HeadraceError `ERR_SHAPE` when A has more columns than rows or is a lower triangle; `ERR_ARGUMENT_TYPE` and the errors of
 *   `Runtime.data`
 */
export function qrFactors<E extends Real>(runtime: Runtime, A: TiledMatrix<E>): QrFactors<E> {
  checkFactorsOf('qrFactors', runtime, A);
  return new QrFactors(runtime, A);
}

/**
 * Inserts the tasks of A = Q R, A m x n with m >= n and a full set of tiles: R is left in the upper triangle of A, and Q as reflectors below it and in
 * `factors`. `applyQ` and `leastSquares` use them. |Q^T A - R| is of the order of m n eps |A|. In a pruned run every rank inserts
 * all of the tasks. With CUDA GPUs the tasks run on the host.
 *
 * @throws HeadraceError `ERR_SHAPE` when A is a lower triangle, or the factors were made for another shape or tile size; `ERR_ARGUMENT_TYPE`,
 *   `ERR_OPTION` and the errors of `Graph.check`, each before the first task is inserted
 */
export function qr<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  factors: QrFactors<NoInfer<E>>,
  options: MemoryOptions = {},
): void {
  checkGraph('qr', graph);
  checkMatrix('qr', 'A', A);
  checkNames('qr', options, MEMORY_OPTIONS);
  const tilesPerGpu = checkTilesPerGpu('qr', options, A);
  checkFull('qr', { A });
  checkQrFactors('qr', graph, A, factors, false);
  checkTiles('qr', 'A', graph, A, true);
  const { geqrt, tpqrt } = qrClasses(A.element);
  const self = { A, factors, X: A, trans: true };
  for (const [begin, end] of linesOf(A, tilesPerGpu, 'columns')) {
    // All columns left of the panel are final.
    for (let k = 0; k < begin; k++)
      for (let i = k; i < A.tileRows; i++) reflect(graph, self, [i, k], [begin, end]);
    for (let k = begin; k < end; k++) {
      const a = A.at(k, k);
      const n = a.columns;
      for (let i = k; i < A.tileRows; i++) {
        const t = factors.triangles.at(i, k);
        const b = A.at(i, k);
        const shape = { m: b.rows, n, nb: t.rows, lda: a.rows };
        // A_kk = Q_kk R_kk, then [R_kk; A_ik] = Q_ik [R_kk; 0]
        if (i === k) graph.insert(geqrt, { a, t, ...shape });
        else graph.insert(tpqrt, { a, b, t, ...shape, ldb: b.rows });
        reflect(graph, self, [i, k], [k + 1, end]);
      }
    }
  }
}

/**
 * Inserts the tasks of B := Q B, or of B := Q^T B with `trans`, with the Q, m x m, that `qr` has left in A and `factors`. B has m rows and the same
 * tile size. In a pruned run every rank inserts all of the tasks.
 *
 * @throws HeadraceError `ERR_SHAPE` when B has another number of rows, the tile sizes differ or the factors were made for another matrix;
 *   `ERR_DUPLICATE_DATUM` when A is B; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`, each before the first task is
 *   inserted
 */
export function applyQ<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  factors: QrFactors<NoInfer<E>>,
  B: TiledMatrix<NoInfer<E>>,
  options: ApplyQOptions = {},
): void {
  const tilesPerGpu = checkUse('applyQ', graph, { A, factors, B }, options, ['trans']);
  checkTruths('applyQ', options, ['trans']);
  const { trans = false } = options;
  for (const lines of linesOf(B, tilesPerGpu, 'columns'))
    sweepQ(graph, { A, factors, X: B, trans }, lines);
}

/**
 * Inserts the tasks that solve min |A x - b| for each column b of B, A m x n with m >= n, of full rank, with what `qr` has left in A and `factors`: the first n rows of B
 * become X, the others Q^T B, whose norm by columns is that of the residual (as LAPACK's GELS). For square A it solves A X = B. A zero on the diagonal of R
 * gives infinities or NaNs. In a pruned run every rank inserts all of the tasks.
 *
 * @throws HeadraceError as `applyQ`
 */
export function leastSquares<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  factors: QrFactors<NoInfer<E>>,
  B: TiledMatrix<NoInfer<E>>,
  options: MemoryOptions = {},
): void {
  const tilesPerGpu = checkUse('leastSquares', graph, { A, factors, B }, options, []);
  for (const lines of linesOf(B, tilesPerGpu, 'columns')) {
    sweepQ(graph, { A, factors, X: B, trans: true }, lines);
    solveR(graph, A, B, lines);
  }
}

/** The factors, and the matrix to which they are applied. */
interface Reflection<E extends Real> {
  readonly A: TiledMatrix<E>;
  readonly factors: QrFactors<E>;
  readonly X: TiledMatrix<E>;
  readonly trans: boolean;
}

type Columns = readonly [first: number, end: number];

/** Q^T is the product of all reflections from the first on, Q from the last on. */
function sweepQ<E extends Real>(graph: Graph, to: Reflection<E>, columns: Columns): void {
  const { tileRows, tileColumns } = to.A;
  for (let step = 0; step < tileColumns; step++) {
    const k = to.trans ? step : tileColumns - 1 - step;
    for (let i = k; i < tileRows; i++)
      reflect(graph, to, [to.trans ? i : tileRows - 1 - (i - k), k], columns);
  }
}

/** Applies the reflections of tile (i, k) to the columns [first, end) of tiles of X. */
function reflect<E extends Real>(
  graph: Graph,
  { A, factors, X, trans }: Reflection<E>,
  [i, k]: readonly [i: number, k: number],
  [first, end]: Columns,
): void {
  const { gemqrt, tpmqrt } = qrClasses(A.element);
  const v = A.at(i, k);
  const t = factors.triangles.at(i, k);
  const shape = { m: v.rows, k: v.columns, nb: t.rows, ldv: v.rows };
  for (let j = first; j < end; j++) {
    const [a, b] = [X.at(k, j), X.at(i, j)];
    const n = b.columns;
    // X_kj = Q_kk^T X_kj, then [X_kj; X_ij] = Q_ik^T [X_kj; X_ij], or the same with Q
    if (i === k) graph.insert(gemqrt, { v, t, c: b, trans, ...shape, n, ldc: b.rows });
    else graph.insert(tpmqrt, { v, t, a, b, trans, ...shape, n, lda: a.rows, ldb: b.rows });
  }
}

/** The first n rows of B := R^-1 B. The last of A's diagonal tiles may have more rows than columns. */
function solveR<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  B: TiledMatrix<E>,
  [first, end]: Columns,
): void {
  const { gemm, trsm } = tileClasses(A.element);
  const none = { trans: false, unit: false, right: false, transA: false, transB: false };
  const { transA, transB, ...flags } = none;
  for (let k = A.tileColumns - 1; k >= 0; k--) {
    const r = A.at(k, k);
    const size = r.columns;
    for (let j = first; j < end; j++) {
      const x = B.at(k, j);
      const n = x.columns;
      // X_k = R_kk^-1 X_k
      const shape = { m: size, n, lda: r.rows, ldb: x.rows };
      graph.insert(trsm, { a: r, b: x, ...flags, upper: true, alpha: 1, ...shape });
      for (let i = 0; i < k; i++) {
        const [a, c] = [A.at(i, k), B.at(i, j)];
        const sizes = { m: a.rows, n, k: size, lda: a.rows, ldb: x.rows, ldc: c.rows };
        // X_i -= R_ik X_k
        graph.insert(gemm, { a, b: x, c, transA, transB, alpha: -1, beta: 1, ...sizes });
      }
    }
  }
}

/** Checks what `applyQ` and `leastSquares` take; returns the tiles that a GPU holds. */
function checkUse(
  operation: string,
  graph: Graph,
  {
    A,
    factors,
    B,
  }: { readonly A: TiledMatrix; readonly factors: QrFactors; readonly B: TiledMatrix },
  options: MemoryOptions,
  others: readonly string[],
): number {
  checkGraph(operation, graph);
  checkMatrices(operation, { A, B });
  checkNames(operation, options, [...others, ...MEMORY_OPTIONS]);
  const tilesPerGpu = checkTilesPerGpu(operation, options, B);
  checkDistinct(operation, { A, B }, 'B');
  checkFull(operation, { A, B });
  if (A.rows !== B.rows) {
    throw new HeadraceError('ERR_SHAPE', `${operation}: the shapes of ${shapes(A, B)} do not fit`);
  }
  checkTileSizes(operation, { A, B });
  checkQrFactors(operation, graph, A, factors, true);
  checkTiles(operation, 'A', graph, A, true);
  checkTiles(operation, 'B', graph, B, true);
  return tilesPerGpu;
}

function checkQrFactors(
  operation: string,
  graph: Graph,
  A: TiledMatrix,
  factors: QrFactors,
  reads: boolean,
): void {
  if (!(factors instanceof QrFactors))
    throw wrongType(operation, 'factors', 'what qrFactors makes', factors);
  checkFactors(operation, A, factors, 'qrFactors');
  for (const datum of factors.triangles)
    graph.check(datum, reads, `${operation}: datum '${datum.name}' of factors`);
}
