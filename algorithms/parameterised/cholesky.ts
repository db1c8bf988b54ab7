// The Cholesky factorisation of ../cholesky.ts as a parameterised graph: the same tasks, priorities and bits.
import {
  type ParameterisedGraph,
  parameterised,
  range,
  type TiledMatrix,
} from '../../scheduler/index.js';
import { checkMatrix, checkSquare } from '../arguments.js';
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

type Step = { readonly k: number };
type Row = Step & { readonly i: number };

/** The order of the tasks, and the shares of the ranks: so that a rank looks at its own tasks only. */
function localOf(A: TiledMatrix<Real>) {
  const nt = A.tileRows;
  const steps = () => range(0, nt);
  /** Step by step; first the diagonal and the column below it, then the rest by rows. */
  const position = (k: number, i: number, j: number) => (k * (nt + 1) + i) * (nt + 1) + j;
  const ownRows = ({ k }: Step, rank: number) => A.ownRows(rank, range(k + 1, nt));
  return {
    potrf: {
      order: ({ k }: Step) => position(k, 0, 0),
      own: { k: (_: object, rank: number) => A.ownRows(rank, steps()) },
    },
    trsm: {
      order: ({ k, i }: Row) => position(k, 0, i),
      own: { k: (_: object, rank: number) => A.ownColumns(rank, steps()), i: ownRows },
    },
    syrk: { order: ({ k, i }: Row) => position(k, i, 0), own: { i: ownRows } },
    gemm: {
      order: ({ k, i, j }: Row & { readonly j: number }) => position(k, i, j),
      own: {
        i: ownRows,
        j: ({ k, i }: Row, rank: number) => A.ownColumns(rank, range(k + 1, i)),
      },
    },
  };
}

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
    checkSquare('choleskyGraph', 'A', A);
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
    const local = localOf(A);

    // L_kk L_kk^T = A_kk
    graph.define(potrf, {
      ranges: { k: column },
      starts: { k: () => range(0, 1) },
      ...local.potrf,
      on: ({ k }) => A.rankOf(k, k),
      flows: {
        a: {
          datum: ({ k }) => A.at(k, k),
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
      ...local.trsm,
      on: ({ k, i }) => A.rankOf(i, k),
      flows: {
        a: { from: ({ k }) => potrf.a({ k }) },
        b: {
          datum: ({ k, i }) => A.at(i, k),
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
      ...local.syrk,
      on: ({ i }) => A.rankOf(i, i),
      flows: {
        a: { from: ({ k, i }) => trsm.b({ k, i }) },
        c: {
          datum: ({ i }) => A.at(i, i),
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
      ...local.gemm,
      on: ({ i, j }) => A.rankOf(i, j),
      flows: {
        a: { from: ({ k, i }) => trsm.b({ k, i }) },
        b: { from: ({ k, j }) => trsm.b({ k, i: j }) },
        c: {
          datum: ({ i, j }) => A.at(i, j),
          from: ({ k, i, j }) => (k === 0 ? A.at(i, j) : gemm.c({ k: k - 1, i, j })),
          to: ({ k, i, j }) => (j === k + 1 ? trsm.b({ k: j, i }) : gemm.c({ k: k + 1, i, j })),
        },
      },
      params: ({ k, i, j }) => multiplied(n(i), n(j), n(k)),
      priority: ({ i }) => 3 * (nt - i),
    });
  },
);
