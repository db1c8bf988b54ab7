// LU factorisation without pivoting as a parameterised graph: right-looking, by tiles. The four classes are those of Cholesky with both
// triangles. Without exchanges of rows every task has at most three tiles, and no column of tiles waits for a search.
//
// Stability: if A is diagonally dominant, by rows or by columns, or symmetric and positive definite, the elements grow by at most 2 and the residual is as
// with partial pivoting (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, 2002, 9.5; for tiles: J. W. Demmel,
// N. J. Higham, R. S. Schreiber, "Stability of block LU factorization", Numer. Linear Algebra Appl. 2 (1995)). For other matrices there is no
// bound; `lu` of ../lu.ts exchanges rows.
import {
  type ParameterisedGraph,
  parameterised,
  range,
  type TiledMatrix,
} from '../../scheduler/index.js';
import { checkFull, checkMatrix, checkSquare } from '../arguments.js';
import { luClasses } from '../lu-classes.js';
import { type Real, tileClasses } from '../tile-classes.js';

/** Arguments of `luGraph`. */
export interface LuArguments {
  /** n x n; becomes U in its upper triangle, and L, whose diagonal is 1, below it. */
  readonly A: TiledMatrix<Real>;
}

// Parameters of the tasks on tiles, each as one literal: a spread in a literal takes longer than the rest of the task.
const solvedRow = (m: number, n: number) => {
  return { m, n, lda: m, ldb: m, alpha: 1, right: false, upper: false, trans: false, unit: true };
};
const solvedColumn = (m: number, n: number) => {
  return { m, n, lda: n, ldb: m, alpha: 1, right: true, upper: true, trans: false, unit: false };
};
const updated = (m: number, n: number, k: number) => {
  return { m, n, k, lda: m, ldb: k, ldc: m, alpha: -1, beta: 1, transA: false, transB: false };
};

type Step = { readonly k: number };

/** Sizes and ranges; and the order of the tasks and the shares of the ranks, so that a rank looks at its own tasks only. */
function layoutOf(A: TiledMatrix<Real>) {
  const nt = A.tileRows;
  const steps = () => range(0, nt);
  const behind = ({ k }: Step) => range(k + 1, nt);
  /** In each step the diagonal tile, its row, its column, and the rest by rows. */
  const position = (k: number, at: number) => k * (nt + 2) * nt + at;
  const ownStepRow = (_: object, rank: number) => A.ownRows(rank, steps());
  const ownStepColumn = (_: object, rank: number) => A.ownColumns(rank, steps());
  const ownRows = (of: Step, rank: number) => A.ownRows(rank, behind(of));
  const ownColumns = (of: Step, rank: number) => A.ownColumns(rank, behind(of));
  return {
    ...{ n: (i: number) => A.rowsOf(i), steps, behind },
    factor: { order: ({ k }: Step) => position(k, 0), own: { k: ownStepRow } },
    row: {
      order: ({ k, j }: Step & { readonly j: number }) => position(k, j),
      own: { k: ownStepRow, j: ownColumns },
    },
    column: {
      order: ({ k, i }: Step & { readonly i: number }) => position(k, nt + i),
      own: { k: ownStepColumn, i: ownRows },
    },
    update: {
      order: ({ k, i, j }: Step & { readonly i: number; readonly j: number }) =>
        position(k, (i + 1) * nt + j),
      own: { i: ownRows, j: ownColumns },
    },
  };
}

/**
 * A = L U without exchanges of rows, in place: 2/3 n^3 operations. Meant for matrices that are diagonally dominant, or symmetric and positive
 * definite; the top of lu.ts has source and stability. `triangularSolve(graph, A, B, { unit: true })` and then `triangularSolve(graph, A, B,
 * { upper: true })` solve with the factors. With CUDA GPUs the diagonal tiles are factorised on the host, the rest runs on the GPUs.
 *
 * An instance throws `ERR_SHAPE` when A is not square or a lower triangle, and `ERR_ARGUMENT_TYPE`. A pivot of 0 fails the run with
 * `ERR_SINGULAR`, which names the tile: A itself may be regular then.
 */
export const luGraph: ParameterisedGraph<LuArguments> = parameterised('lu', (graph, { A }) => {
  checkArguments(A);
  const nt = A.tileRows;
  const { trsm, gemm } = tileClasses(A.element);
  const { factor, row, column, update } = graph.declare({
    factor: { runs: luClasses(A.element).unpivoted, indices: ['k'] },
    row: { runs: trsm, indices: ['k', 'j'] },
    column: { runs: trsm, indices: ['k', 'i'] },
    update: { runs: gemm, indices: ['k', 'i', 'j'] },
  });
  const { n, steps, behind, ...local } = layoutOf(A);
  /** A tile before step k. */
  const before = (k: number, i: number, j: number) =>
    k === 0 ? A.at(i, j) : update.c({ k: k - 1, i, j });

  // L_kk U_kk = A_kk
  graph.define(factor, {
    ranges: { k: steps },
    starts: { k: () => range(0, 1) },
    ...local.factor,
    on: ({ k }) => A.rankOf(k, k),
    flows: {
      a: {
        datum: ({ k }) => A.at(k, k),
        from: ({ k }) => before(k, k, k),
        to: ({ k }) => [
          behind({ k }).map((j) => row.a({ k, j })),
          behind({ k }).map((i) => column.a({ k, i })),
          A.at(k, k),
        ],
      },
    },
    params: ({ k }) => ({ n: n(k), lda: n(k) }),
    priority: ({ k }) => 3 * (nt - k) + 2,
  });

  // U_kj = L_kk^-1 A_kj
  graph.define(row, {
    ranges: { k: steps, j: behind },
    starts: { k: () => range(0, 0) },
    ...local.row,
    on: ({ k, j }) => A.rankOf(k, j),
    flows: {
      a: { from: ({ k }) => factor.a({ k }) },
      b: {
        datum: ({ k, j }) => A.at(k, j),
        from: ({ k, j }) => before(k, k, j),
        to: ({ k, j }) => [behind({ k }).map((i) => update.b({ k, i, j })), A.at(k, j)],
      },
    },
    params: ({ k, j }) => solvedRow(n(k), n(j)),
    priority: ({ k }) => 3 * (nt - k) + 1,
  });

  // L_ik = A_ik U_kk^-1
  graph.define(column, {
    ranges: { k: steps, i: behind },
    starts: { k: () => range(0, 0) },
    ...local.column,
    on: ({ k, i }) => A.rankOf(i, k),
    flows: {
      a: { from: ({ k }) => factor.a({ k }) },
      b: {
        datum: ({ k, i }) => A.at(i, k),
        from: ({ k, i }) => before(k, i, k),
        to: ({ k, i }) => [behind({ k }).map((j) => update.a({ k, i, j })), A.at(i, k)],
      },
    },
    params: ({ k, i }) => solvedColumn(n(i), n(k)),
    priority: ({ k }) => 3 * (nt - k) + 1,
  });

  // A_ij -= L_ik U_kj
  graph.define(update, {
    ranges: { k: steps, i: behind, j: behind },
    starts: { k: () => range(0, 0) },
    ...local.update,
    on: ({ i, j }) => A.rankOf(i, j),
    flows: {
      a: { from: ({ k, i }) => column.b({ k, i }) },
      b: { from: ({ k, j }) => row.b({ k, j }) },
      c: {
        datum: ({ i, j }) => A.at(i, j),
        from: ({ k, i, j }) => before(k, i, j),
        to: ({ k, i, j }) => {
          if (Math.min(i, j) > k + 1) return update.c({ k: k + 1, i, j });
          if (i === j) return factor.a({ k: i });
          return i < j ? row.b({ k: i, j }) : column.b({ k: j, i });
        },
      },
    },
    params: ({ k, i, j }) => updated(n(i), n(j), n(k)),
    // Tiles that are final earlier come first.
    priority: ({ i, j }) => 3 * (nt - Math.min(i, j)),
  });
});

function checkArguments(A: TiledMatrix<Real>): void {
  checkMatrix('luGraph', 'A', A);
  checkSquare('luGraph', 'A', A);
  checkFull('luGraph', { A });
}
