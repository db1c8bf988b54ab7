// Tiled LU factorisation with pivoting between pairs of tiles: A. Buttari, J. Langou, J. Kurzak, J. Dongarra, "A class of parallel tiled
// linear algebra algorithms for multicore architectures", Parallel Computing 35 (2009), algorithm 3. The diagonal tile is factorised
// with partial pivoting. Then its triangle U is eliminated against each tile below it, again with partial pivoting, so every
// task uses one pair of tiles: no row travels through a column of tiles, and ranks exchange tiles only.
//
// Stability: multipliers are at most 1, as with partial pivoting, but the elements can grow by 4^(n / tile - 1) in the worst case on top of 2^(tile - 1)
// (E. S. Quintana-Orti, R. A. van de Geijn, "Updating an LU factorization with pivoting", ACM TOMS 35 (2008)). With one tile it is
// partial pivoting. For random matrices the residual is some times larger than with partial pivoting, and grows with the number of tiles in
// a column; large tiles help.
//
// In the pair the upper part of L is a full triangle, which makes the work n^3 instead of 2/3 n^3. In return the updates are trsm
// and gemm of whole tiles.
import type { Graph, Runtime, TiledMatrix } from '../scheduler/index.js';
import {
  checkGraph,
  checkMatrices,
  checkMatrix,
  checkNames,
  checkSquare,
  checkTiles,
  checkTilesPerGpu,
  wrongType,
} from './arguments.js';
import { luClasses } from './lu-classes.js';
import { linesOf, MEMORY_OPTIONS, type MemoryOptions } from './panels.js';
import { type Real, tileClasses } from './tile-classes.js';
import { checkFactors, checkFactorsOf, TileData } from './tile-data.js';
import { checkSystem, sweep } from './triangular-solve.js';

/** What `lu` keeps beside A: the upper parts of L and the pivots of each pair of tiles, half as many elements as A. */
export class LuFactors<E extends Real = Real> {
  /** The matrix's elements, rows, columns and tile size. */
  readonly element: E;
  readonly rows: number;
  readonly columns: number;
  readonly tile: number;
  /** @internal */
  readonly lower: TileData<E>;
  /** @internal */
  readonly pivots: TileData<'i32'>;

  /** @internal */
  constructor(runtime: Runtime, A: TiledMatrix<E>) {
    this.element = A.element;
    this.rows = A.rows;
    this.columns = A.columns;
    this.tile = A.tile;
    const square = (n: number): { length: number; rows: number } => ({ length: n * n, rows: n });
    this.lower = new TileData(runtime, A, 'L', A.element, 1, (_, j) => square(A.columnsOf(j)));
    this.pivots = new TileData(runtime, A, 'pivots', 'i32', 0, (_, j) => {
      const length = A.columnsOf(j);
      return { length, rows: length };
    });
  }

  /** Closes the data, after the tasks that use them. Idempotent. */
  close(): void {
    this.lower.close();
    this.pivots.close();
  }
}

/**
 * Makes the data that `lu` keeps beside A, n x n. They need no values; each lies on the rank of its tile. Call it on every rank, as
 * `Runtime.data`.
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square or a lower triangle; `ERR_ARGUMENT_TYPE` and the errors of `Runtime.data`
 */
export function luFactors<E extends Real>(runtime: Runtime, A: TiledMatrix<E>): LuFactors<E> {
  checkFactorsOf('luFactors', runtime, A);
  checkSquare('luFactors', 'A', A);
  return new LuFactors(runtime, A);
}

/**
 * Inserts the tasks that factorise A, n x n with a full set of tiles: U is left in its upper triangle, and L, in the form of eliminations of
 * pairs of tiles, in the lower one and in `factors`. `luSolve` solves with them. n^3 operations; the top of lu.ts has source and stability.
 *
 * In a pruned run every rank inserts all of the tasks. With CUDA GPUs the panels and the exchanges of rows run on
 * the host, solves and products on the GPUs.
 *
 * A matrix that is singular in floating point fails the run with `ERR_SINGULAR`, which names the pivot and the tile.
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square or a lower triangle, or the factors were made for another shape or tile size;
 *   `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`, each before the first task is inserted
 */
export function lu<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  factors: LuFactors<NoInfer<E>>,
  options: MemoryOptions = {},
): void {
  checkGraph('lu', graph);
  checkMatrix('lu', 'A', A);
  checkNames('lu', options, MEMORY_OPTIONS);
  const tilesPerGpu = checkTilesPerGpu('lu', options, A);
  checkSquare('lu', 'A', A);
  checkLuFactors('lu', graph, A, factors, false);
  checkTiles('lu', 'A', graph, A, true);
  const nt = A.tileRows;
  const { getrf, tstrf } = luClasses(A.element);
  const self = { A, factors, X: A };
  for (const [begin, end] of linesOf(A, tilesPerGpu, 'columns')) {
    // All columns left of the panel are final.
    for (let k = 0; k < begin; k++)
      for (let i = k; i < nt; i++) eliminate(graph, self, [i, k], [begin, end]);
    for (let k = begin; k < end; k++) {
      const u = A.at(k, k);
      const n = u.rows;
      const isLast = (i: number): boolean => i === nt - 1;
      // P_kk A_kk = L_kk U_kk
      const pivots = factors.pivots.at(k, k);
      graph.insert(getrf, { a: u, pivots, m: n, n, last: isLast(k), lda: n });
      eliminate(graph, self, [k, k], [k + 1, end]);
      for (let i = k + 1; i < nt; i++) {
        // P_ik [U_kk; A_ik] = [L_ik; A_ik] U_kk
        const a = A.at(i, k);
        const made = { l: factors.lower.at(i, k), pivots: factors.pivots.at(i, k) };
        const sizes = { m: a.rows, n, ldu: n, lda: a.rows, ldl: n };
        graph.insert(tstrf, { u, a, ...made, ...sizes, last: isLast(i) });
        eliminate(graph, self, [i, k], [k + 1, end]);
      }
    }
  }
}

/**
 * Inserts the tasks of B := A^-1 B with what `lu` has left in A and `factors`: the eliminations, then U X = Y. A is n x n, B n x m with the same
 * tile size. In a pruned run every rank inserts all of the tasks.
 *
 * @throws HeadraceError `ERR_SHAPE` when B does not fit, the tile sizes differ or the factors were made for another matrix;
 *   `ERR_DUPLICATE_DATUM` when A is B; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`, each before the first task is
 *   inserted
 */
export function luSolve<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  factors: LuFactors<NoInfer<E>>,
  B: TiledMatrix<NoInfer<E>>,
  options: MemoryOptions = {},
): void {
  const operation = 'luSolve';
  checkGraph(operation, graph);
  checkMatrices(operation, { A, B });
  checkNames(operation, options, MEMORY_OPTIONS);
  const tilesPerGpu = checkTilesPerGpu(operation, options, B);
  checkSystem(operation, { A, B });
  checkLuFactors(operation, graph, A, factors, true);
  checkTiles(operation, 'A', graph, A, true);
  checkTiles(operation, 'B', graph, B, true);
  for (const lines of linesOf(B, tilesPerGpu, 'columns')) {
    for (let k = 0; k < A.tileRows; k++)
      for (let i = k; i < A.tileRows; i++) eliminate(graph, { A, factors, X: B }, [i, k], lines);
    sweep(graph, A, B, { upper: true }, lines);
  }
}

/** The factors, and the matrix to which they are applied. */
interface Elimination<E extends Real> {
  readonly A: TiledMatrix<E>;
  readonly factors: LuFactors<E>;
  readonly X: TiledMatrix<E>;
}

/** Applies the elimination of row i of tiles by row k to the columns [first, end) of tiles of X. */
function eliminate<E extends Real>(
  graph: Graph,
  { A, factors, X }: Elimination<E>,
  [i, k]: readonly [i: number, k: number],
  [first, end]: readonly [first: number, end: number],
): void {
  const { swapRows, swapPairs } = luClasses(A.element);
  // Not by tile-tasks.ts: a rank that left out updates of a row could not take part in its next elimination.
  const { gemm, trsm } = tileClasses(A.element);
  const pivots = factors.pivots.at(i, k);
  const { length: size } = pivots;
  for (let j = first; j < end; j++) {
    const x = X.at(k, j);
    const n = x.columns;
    const solve = { right: false, upper: false, trans: false, unit: true, alpha: 1 };
    const shape = { m: size, n, lda: size, ldb: size };
    if (i === k) {
      // X_kj = L_kk^-1 P_kk X_kj
      graph.insert(swapRows, { a: x, pivots, k: size, m: size, n, lda: size });
      graph.insert(trsm, { a: A.at(k, k), b: x, ...solve, ...shape });
      continue;
    }
    const [a, b] = [A.at(i, k), X.at(i, j)];
    const m = b.rows;
    // [X_kj; X_ij] = P_ik [X_kj; X_ij]
    graph.insert(swapPairs, { a: x, b, pivots, k: size, m, n, lda: size, ldb: m });
    // X_kj = L_ik^-1 X_kj
    graph.insert(trsm, { a: factors.lower.at(i, k), b: x, ...solve, ...shape });
    // X_ij -= A_ik X_kj
    const scalars = { transA: false, transB: false, alpha: -1, beta: 1 };
    const product = { a, b: x, c: b, m, n, k: size, lda: m, ldb: size, ldc: m };
    graph.insert(gemm, { ...product, ...scalars });
  }
}

function checkLuFactors(
  operation: string,
  graph: Graph,
  A: TiledMatrix,
  factors: LuFactors,
  reads: boolean,
): void {
  if (!(factors instanceof LuFactors))
    throw wrongType(operation, 'factors', 'what luFactors makes', factors);
  checkFactors(operation, A, factors, 'luFactors');
  for (const data of [factors.lower, factors.pivots])
    for (const datum of data)
      graph.check(datum, reads, `${operation}: datum '${datum.name}' of factors`);
}
