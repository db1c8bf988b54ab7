// Tiled Cholesky factorisation: A. Buttari, J. Langou, J. Kurzak, J. Dongarra, "A class of parallel tiled linear algebra
// algorithms for multicore architectures", Parallel Computing 35 (2009), algorithm 1. A matrix that does not fit the
// memory of the GPUs is factorised in panels (panels.ts). Each tile gets the same updates in the same order either way.
//
// Priorities: the critical path takes three tasks per column, potrf(k), trsm(k+1, k) and syrk(k+1, k). A task's priority is
// the number of tasks on the longest path behind it: 3 (nt - k) for potrf(k); 3 (nt - i) and 2, 1 or 0 more for the trsm,
// syrk and gemm of row i. In panels all priorities are 0, so that tasks go in program order.
import { type Graph, HeadraceError, type TiledMatrix } from '../scheduler/index.js';
import { checkGraph, checkMatrix, checkNames, checkTiles, checkTilesPerGpu } from './arguments.js';
import { MEMORY_OPTIONS, type MemoryOptions, panelsOf } from './panels.js';
import type { Real } from './tile-classes.js';
import { gemm, potrf, syrk, trsm } from './tile-tasks.js';

/**
 * Inserts the tasks that overwrite the lower triangle of the symmetric positive definite matrix A (square, square tiles)
 * with L, where A = L L^T. The tasks neither read nor write tiles above the diagonal. In a pruned run every rank inserts
 * only tasks that use a tile of its own: other ranks read final tiles only.
 *
 * A matrix that is not positive definite fails the run with `ERR_NOT_POSITIVE_DEFINITE`, which names tile and pivot.
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`,
 *   each before the first task is inserted
 */
export function cholesky<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  options: MemoryOptions = {},
): void {
  checkGraph('cholesky', graph);
  checkMatrix('cholesky', 'A', A);
  checkNames('cholesky', options, MEMORY_OPTIONS);
  if (A.rows !== A.columns) {
    throw new HeadraceError('ERR_SHAPE', `'${A.name}' is ${A.rows} x ${A.columns}, not square`);
  }
  const nt = A.tileRows;
  const panels = panelsOf(A, checkTilesPerGpu('cholesky', options, A));
  checkTiles('cholesky', 'A', graph, A, true, 'lower');
  const fits = panels.length === 1;
  const first = (row: number, lead: number) => ({ priority: fits ? 3 * (nt - row) + lead : 0 });
  const isPruned = graph.skips();
  /** Subtracts the product of columns k of rows i and j. */
  const update = (i: number, j: number, k: number): void => {
    if (isPruned && graph.skips(A.rankOf(i, k), A.rankOf(j, k), A.rankOf(i, j))) return;
    const a = A.at(i, k);
    // A_ii -= L_ik L_ik^T
    if (i === j) syrk(graph, a, A.at(i, i), { alpha: -1 }, first(i, 1));
    // A_ij -= L_ik L_jk^T
    else gemm(graph, a, A.at(j, k), A.at(i, j), { alpha: -1, transB: true }, first(i, 0));
  };
  for (const { first: begin, end, bands } of panels) {
    for (const [top, bottom] of bands) {
      // All columns left of the panel are final. Row by row: then only one row needs a tile of column k at a time.
      for (let k = 0; k < begin; k++)
        for (let i = top; i < bottom; i++)
          for (let j = begin; j < Math.min(end, i + 1); j++) update(i, j, k);
      for (let k = begin; k < end; k++) {
        const below = Math.max(top, k + 1);
        // L_kk L_kk^T = A_kk
        if (top <= k && k < bottom && !(isPruned && graph.skips(A.rankOf(k, k))))
          potrf(graph, A.at(k, k), first(k, 0));
        // L_ik = A_ik L_kk^-T
        for (let i = below; i < bottom; i++)
          if (!(isPruned && graph.skips(A.rankOf(k, k), A.rankOf(i, k))))
            trsm(graph, A.at(k, k), A.at(i, k), { right: true, trans: true }, first(i, 2));
        if (fits) {
          // Column by column: the next column is factored first.
          for (let j = k + 1; j < nt; j++) for (let i = j; i < nt; i++) update(i, j, k);
        } else {
          for (let i = below; i < bottom; i++)
            for (let j = k + 1; j < Math.min(end, i + 1); j++) update(i, j, k);
        }
      }
    }
  }
}

/** Floating-point operations of a Cholesky factorisation of order n (LAPACK Working Note 41). */
export function choleskyFlops(n: number): number {
  return n ** 3 / 3 + n ** 2 / 2 + n / 6;
}
