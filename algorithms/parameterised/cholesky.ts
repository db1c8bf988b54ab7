// The Cholesky factorisation of ../cholesky.ts as a parameterised graph: the same tasks, priorities and bits.
import {
  HeadraceError,
  type ParameterisedGraph,
  parameterised,
  range,
  type TiledMatrix,
} from '../../scheduler/index.js';
import { checkMatrix } from '../arguments.js';
import { type Real, tileClasses } from '../tile-classes.js';

/** Arguments of `choleskyGraph`. */
export interface CholeskyArguments {
  /** Symmetric positive definite, of square tiles; its lower triangle becomes L, where A = L L^T. */
  readonly A: TiledMatrix<Real>;
}

// Parameters of the tasks on tiles, each as one literal: a spread in a literal takes longer than the rest of the task.
const solved = (m: number, n: number) => {
  return { m, n, lda: n, ldb: m, alpha: 1, right: true, upper: false, trans: true, unit: false };
};
const updated = (n: number, k: number) => {
  return { n, k, lda: n, ldc: n, alpha: -1, beta: 1, upper: false, trans: false };
};
const multiplied = (m: number, n: number, k: number) => {
  return { m, n, k, lda: m, ldb: n, ldc: m, alpha: -1, beta: 1, transA: false, transB: true };
};

/**
 * Overwrites the lower triangle of A with L, where A = L L^T: as `cholesky`, without panels.
 *
 * An instance throws `ERR_SHAPE` when A is not square, and `ERR_ARGUMENT_TYPE`. A matrix that is not positive definite fails the
 * run with `ERR_NOT_POSITIVE_DEFINITE`.
 */
export const choleskyGraph: ParameterisedGraph<CholeskyArguments> = parameterised(
  'cholesky',
  (graph, { A }) => {
    checkMatrix('choleskyGraph', 'A', A);
    if (A.rows !== A.columns)
      throw new HeadraceError('ERR_SHAPE', `'${A.name}' is ${A.rows} x ${A.columns}, not square`);
    const nt = A.tileRows;
    const classes = tileClasses(A.element);
    const { potrf, trsm, syrk, gemm } = graph.declare({
      potrf: { runs: classes.potrf, indices: ['k'] },
      trsm: { runs: classes.trsm, indices: ['k', 'i'] },
      syrk: { runs: classes.syrk, indices: ['k', 'i'] },
      gemm: { runs: classes.gemm, indices: ['k', 'i', 'j'] },
    });
    const column = () => range(0, nt);
    const below = ({ k }: { readonly k: number }) => range(k + 1, nt);
    const n = (i: number) => A.rowsOf(i);

    // L_kk L_kk^T = A_kk
    graph.define(potrf, {
      ranges: { k: column },
      starts: { k: () => range(0, 1) },
      on: ({ k }) => A.rankOf(k, k),
      flows: {
        a: {
          from: ({ k }) => (k === 0 ? A.at(0, 0) : syrk.c({ k: k - 1, i: k })),
          to: ({ k }) => [range(k + 1, nt).map((i) => trsm.a({ k, i })), A.at(k, k)],
        },
      },
      params: ({ k }) => ({ n: n(k), upper: false, lda: n(k) }),
      priority: ({ k }) => 3 * (nt - k),
    });

    // L_ik = A_ik L_kk^-T
    graph.define(trsm, {
      ranges: { k: column, i: below },
      starts: { k: () => range(0, 0) },
      on: ({ k, i }) => A.rankOf(i, k),
      flows: {
        a: { from: ({ k }) => potrf.a({ k }) },
        b: {
          from: ({ k, i }) => (k === 0 ? A.at(i, 0) : gemm.c({ k: k - 1, i, j: k })),
          to: ({ k, i }) => [
            syrk.a({ k, i }),
            range(k + 1, i).map((j) => gemm.a({ k, i, j })),
            range(i + 1, nt).map((row) => gemm.b({ k, i: row, j: i })),
            A.at(i, k),
          ],
        },
      },
      params: ({ k, i }) => solved(n(i), n(k)),
      priority: ({ i }) => 3 * (nt - i) + 2,
    });

    // A_ii -= L_ik L_ik^T
    graph.define(syrk, {
      ranges: { k: column, i: below },
      starts: { k: () => range(0, 0) },
      on: ({ i }) => A.rankOf(i, i),
      flows: {
        a: { from: ({ k, i }) => trsm.b({ k, i }) },
        c: {
          from: ({ k, i }) => (k === 0 ? A.at(i, i) : syrk.c({ k: k - 1, i })),
          to: ({ k, i }) => (i === k + 1 ? potrf.a({ k: i }) : syrk.c({ k: k + 1, i })),
        },
      },
      params: ({ k, i }) => updated(n(i), n(k)),
      priority: ({ i }) => 3 * (nt - i) + 1,
    });

    // A_ij -= L_ik L_jk^T
    graph.define(gemm, {
      ranges: { k: column, i: below, j: ({ k, i }) => range(k + 1, i) },
      starts: { k: () => range(0, 0) },
      on: ({ i, j }) => A.rankOf(i, j),
      flows: {
        a: { from: ({ k, i }) => trsm.b({ k, i }) },
        b: { from: ({ k, j }) => trsm.b({ k, i: j }) },
        c: {
          from: ({ k, i, j }) => (k === 0 ? A.at(i, j) : gemm.c({ k: k - 1, i, j })),
          to: ({ k, i, j }) => (j === k + 1 ? trsm.b({ k: j, i }) : gemm.c({ k: k + 1, i, j })),
        },
      },
      params: ({ k, i, j }) => multiplied(n(i), n(j), n(k)),
      priority: ({ i }) => 3 * (nt - i),
    });
  },
);
