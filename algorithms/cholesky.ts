// Tiled Cholesky factorisation, right-looking: A. Buttari, J. Langou, J. Kurzak, J. Dongarra, "A class of parallel
// tiled linear algebra algorithms for multicore architectures", Parallel Computing 35 (2009), algorithm 1.
import { type Graph, HeadraceError, type TiledMatrix } from '../scheduler/index.js';
import { tileKernels } from './tile-kernels.js';

/**
 * Inserts the tasks that overwrite the lower triangle of the symmetric positive definite matrix A (square, square
 * tiles) with L, where A = L L^T. Tiles above the diagonal are neither read nor written.
 *
 * A matrix that is not positive definite fails the run with `ERR_NOT_POSITIVE_DEFINITE`, naming tile and pivot.
 * Tasks near the diagonal go first: the critical path runs along it.
 * In a pruned run every rank inserts only what uses a tile of its own: other ranks read final tiles only.
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square
 */
export function cholesky<E extends 'f64' | 'f32'>(graph: Graph, A: TiledMatrix<E>): void {
  if (A.rows !== A.columns) {
    throw new HeadraceError('ERR_SHAPE', `'${A.name}' is ${A.rows} x ${A.columns}, not square`);
  }
  const { potrf, trsm, syrk, gemm } = tileKernels(A.element);
  const nt = A.tileRows;
  const rows = (i: number): number => A.rowsOf(i);

  for (let k = 0; k < nt; k++) {
    // Factor the diagonal tile: A_kk = L_kk L_kk^T.
    const nk = rows(k);
    const diagonal = A.at(k, k);
    if (!graph.skips(diagonal)) {
      graph.insert(
        potrf,
        { a: diagonal, n: nk, upper: false, lda: nk },
        { priority: 3 * (nt - k) },
      );
    }

    // The panel below it: L_ik = A_ik L_kk^-T.
    for (let i = k + 1; i < nt; i++) {
      const b = A.at(i, k);
      if (graph.skips(diagonal, b)) continue;
      graph.insert(
        trsm,
        {
          a: diagonal,
          b,
          m: rows(i),
          n: nk,
          right: true,
          upper: false,
          trans: true,
          unit: false,
          alpha: 1,
          lda: nk,
          ldb: rows(i),
        },
        { priority: 3 * (nt - i) + 2 },
      );
    }

    // The trailing matrix: A_ij -= L_ik L_jk^T.
    for (let j = k + 1; j < nt; j++) {
      const ajk = A.at(j, k);
      const ajj = A.at(j, j);
      if (!graph.skips(ajk, ajj)) {
        graph.insert(
          syrk,
          {
            a: ajk,
            c: ajj,
            n: rows(j),
            k: nk,
            upper: false,
            trans: false,
            alpha: -1,
            beta: 1,
            lda: rows(j),
            ldc: rows(j),
          },
          { priority: 3 * (nt - j) + 1 },
        );
      }
      for (let i = j + 1; i < nt; i++) {
        const aik = A.at(i, k);
        const aij = A.at(i, j);
        if (graph.skips(aik, ajk, aij)) continue;
        graph.insert(
          gemm,
          {
            a: aik,
            b: ajk,
            c: aij,
            m: rows(i),
            n: rows(j),
            k: nk,
            transA: false,
            transB: true,
            alpha: -1,
            beta: 1,
            lda: rows(i),
            ldb: rows(j),
            ldc: rows(i),
          },
          { priority: 3 * (nt - i) },
        );
      }
    }
  }
}

/** Floating-point operations of a Cholesky factorisation of order n (LAPACK Working Note 41). */
export function choleskyFlops(n: number): number {
  return n ** 3 / 3 + n ** 2 / 2 + n / 6;
}
