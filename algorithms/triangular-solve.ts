// Tiled solves with triangular matrices and many right-hand sides: substitution by blocks, G. H. Golub, C. F. Van Loan,
// "Matrix Computations", 4th edition (2013), 3.1.4. Right-hand sides that do not fit the memory of the GPUs are solved in panels,
// so that the triangle is read once per panel. Each tile gets the same updates in the same order either way.
import { type Graph, HeadraceError, type TiledMatrix } from '../scheduler/index.js';
import {
  checkDistinct,
  checkFull,
  checkGraph,
  checkMatrices,
  checkNames,
  checkScalar,
  checkSquare,
  checkTileSizes,
  checkTiles,
  checkTilesPerGpu,
  checkTruths,
  shapes,
} from './arguments.js';
import { linesOf, MEMORY_OPTIONS, type MemoryOptions } from './panels.js';
import type { Real } from './tile-classes.js';
import { gemm, type TrsmOptions, trsm } from './tile-tasks.js';

/** Options of `triangularSolve`: those of the BLAS's TRSM, and the memory on which the order depends. */
export interface TriangularSolveOptions extends TrsmOptions, MemoryOptions {}

const FLAGS: readonly string[] = ['right', 'upper', 'trans', 'unit'];
const OPTIONS: readonly string[] = [...FLAGS, 'alpha', ...MEMORY_OPTIONS];

/**
 * Inserts the tasks of B := alpha op(A)^-1 B, or of B := alpha B op(A)^-1 with `right`. A is n x n and triangular: lower, or upper with
 * `upper`; op(A) is A, or A^T with `trans`. B is n x m, or m x n with `right`, of the same tile size. The tasks do not read tiles on the other
 * side of the diagonal, nor within the diagonal tiles, and with `unit` not the diagonal, which counts as 1. A zero on the
 * diagonal gives infinities or NaNs, as in the BLAS.
 *
 * With exact factors the computed X satisfies |op(A) X - B| <= n eps |op(A)| |X| in every element (N. J. Higham, "Accuracy and Stability of
 * Numerical Algorithms", 2nd edition (2002), theorem 8.5).
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square, B does not fit, the tile sizes differ, or tiles that are needed do not exist
 *   in a lower triangle; `ERR_DUPLICATE_DATUM` when A is B; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`,
 *   each before the first task is inserted
 */
export function triangularSolve<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  B: TiledMatrix<NoInfer<E>>,
  options: TriangularSolveOptions = {},
): void {
  const operation = 'triangularSolve';
  checkGraph(operation, graph);
  checkMatrices(operation, { A, B });
  checkNames(operation, options, OPTIONS);
  checkTruths(operation, options, FLAGS);
  const { right = false, upper = false, alpha = 1 } = options;
  checkScalar(operation, 'alpha', alpha);
  const tilesPerGpu = checkTilesPerGpu(operation, options, B);
  checkSystem(operation, { A, B }, right);
  if (upper) checkFull(operation, { A });
  checkTiles(operation, 'A', graph, A, true, upper ? 'upper' : 'lower');
  checkTiles(operation, 'B', graph, B, true);
  for (const lines of linesOf(B, tilesPerGpu, right ? 'rows' : 'columns'))
    sweep(graph, A, B, options, lines);
}

/**
 * Inserts the tasks of B := A^-1 B with the factor that `cholesky` has left in A's lower triangle, A = L L^T: L Y = B, then L^T X = Y.
 * A is n x n, B n x m with the same tile size.
 *
 * The residual is of the order of n eps |A| |X| (Higham 2002, theorem 10.4).
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square, B does not fit or the tile sizes differ; `ERR_DUPLICATE_DATUM` when A is B;
 *   `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`, each before the first task is inserted
 */
export function choleskySolve<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  B: TiledMatrix<NoInfer<E>>,
  options: MemoryOptions = {},
): void {
  const operation = 'choleskySolve';
  checkGraph(operation, graph);
  checkMatrices(operation, { A, B });
  checkNames(operation, options, MEMORY_OPTIONS);
  const tilesPerGpu = checkTilesPerGpu(operation, options, B);
  checkSystem(operation, { A, B });
  checkTiles(operation, 'A', graph, A, true, 'lower');
  checkTiles(operation, 'B', graph, B, true);
  for (const lines of linesOf(B, tilesPerGpu, 'columns')) {
    sweep(graph, A, B, {}, lines);
    sweep(graph, A, B, { trans: true }, lines);
  }
}

/** A is square and B a full matrix that fits it, on the left or on the right. */
export function checkSystem(
  operation: string,
  { A, B }: { readonly A: TiledMatrix; readonly B: TiledMatrix },
  right = false,
): void {
  checkSquare(operation, 'A', A);
  if (A.rows !== (right ? B.columns : B.rows)) {
    throw new HeadraceError('ERR_SHAPE', `${operation}: the shapes of ${shapes(A, B)} do not fit`);
  }
  checkTileSizes(operation, { A, B });
  checkDistinct(operation, { A, B }, 'B');
  checkFull(operation, { B });
}

/** Substitution in the lines [first, end) of B: its columns of tiles, or its rows with `right`. */
export function sweep(
  graph: Graph,
  A: TiledMatrix,
  B: TiledMatrix,
  { right = false, upper = false, trans = false, unit = false, alpha = 1 }: TrsmOptions,
  [first, end]: readonly [first: number, end: number],
): void {
  const nt = A.tileRows;
  // op(A) is a lower triangle if `upper` and `trans` are equal. From the left that one is solved from the top.
  const forward = right ? upper !== trans : upper === trans;
  const isPruned = graph.skips();
  const skips = (a: number, b: number, c: number): boolean => isPruned && graph.skips(a, b, c);
  const place = (i: number, line: number): [number, number] => (right ? [line, i] : [i, line]);
  for (let step = 0; step < nt; step++) {
    const k = forward ? step : nt - 1 - step;
    // alpha goes into the first operation on each tile.
    const scale = step === 0 ? alpha : 1;
    for (let line = first; line < end; line++) {
      const [row, column] = place(k, line);
      const rank = B.rankOf(row, column);
      if (skips(A.rankOf(k, k), rank, rank)) continue;
      // X_k = op(A_kk)^-1 B_k, or B_k op(A_kk)^-1
      const flags = { right, upper, trans, unit, alpha: scale };
      trsm(graph, A.at(k, k), B.at(row, column), flags);
    }
    for (let next = step + 1; next < nt; next++) {
      const i = forward ? next : nt - 1 - next;
      // The tile of op(A) is (i, k), or (k, i) from the right.
      const [p, q] = right === trans ? [i, k] : [k, i];
      for (let line = first; line < end; line++) {
        const [x, b] = [place(k, line), place(i, line)];
        if (skips(A.rankOf(p, q), B.rankOf(...x), B.rankOf(...b))) continue;
        const scalars = { alpha: -1, beta: scale };
        // B_i -= op(A)_ik X_k, or X_k op(A)_ki
        if (right) gemm(graph, B.at(...x), A.at(p, q), B.at(...b), { ...scalars, transB: trans });
        else gemm(graph, A.at(p, q), B.at(...x), B.at(...b), { ...scalars, transA: trans });
      }
    }
  }
}
