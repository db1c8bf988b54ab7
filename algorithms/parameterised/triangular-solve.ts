// Forward substitution by blocks as a parameterised graph: `triangularSolve` of ../triangular-solve.ts without options.
import {
  HeadraceError,
  type ParameterisedGraph,
  parameterised,
  range,
  type TiledMatrix,
} from '../../scheduler/index.js';
import {
  checkDistinct,
  checkFull,
  checkMatrices,
  checkSquare,
  checkTileSizes,
  shapes,
} from '../arguments.js';
import { type Real, tileClasses } from '../tile-classes.js';

/** Arguments of `triangularSolveGraph`: matrices of the same elements and tile size. */
export interface TriangularSolveArguments {
  /** Lower triangular, n x n. */
  readonly A: TiledMatrix<Real>;
  /** n x m; becomes the solution. */
  readonly B: TiledMatrix<Real>;
}

/**
 * B := A^-1 B with a lower triangle A.
 *
 * An instance throws `ERR_SHAPE` when A is not square, B does not fit or the tile sizes differ, `ERR_DUPLICATE_DATUM` when A
 * is B, and `ERR_ARGUMENT_TYPE`.
 */
export const triangularSolveGraph: ParameterisedGraph<TriangularSolveArguments> = parameterised(
  'triangularSolve',
  (graph, { A, B }) => {
    checkArguments({ A, B });
    const nt = A.tileRows;
    const classes = tileClasses(B.element);
    const { solve, update } = graph.declare({
      solve: { runs: classes.trsm, indices: ['k', 'j'] },
      update: { runs: classes.gemm, indices: ['k', 'i', 'j'] },
    });
    const rows = () => range(0, nt);
    const columns = () => range(0, B.tileColumns);
    const position = (k: number, i: number, j: number) => (k * nt + i) * B.tileColumns + j;
    const ownColumns = (_: object, rank: number) => B.ownColumns(rank, columns());

    // A_ik goes to the tasks on row i of B.
    graph.inputs({
      indices: ['k', 'i'],
      ranges: { k: rows, i: ({ k }) => range(k, nt) },
      own: {
        k: (_, rank) => A.ownColumns(rank, rows()),
        i: ({ k }, rank) => A.ownRows(rank, range(k, nt)),
      },
      on: ({ k, i }) => A.rankOf(i, k),
      datum: ({ k, i }) => A.at(i, k),
      to: ({ k, i }) => columns().map((j) => (i === k ? solve.a({ k, j }) : update.a({ k, i, j }))),
    });

    // X_kj = A_kk^-1 B_kj
    graph.define(solve, {
      ranges: { k: rows, j: columns },
      starts: { k: () => range(0, 1) },
      order: ({ k, j }) => position(k, k, j),
      own: { k: (_, rank) => B.ownRows(rank, rows()), j: ownColumns },
      on: ({ k, j }) => B.rankOf(k, j),
      flows: {
        a: { from: ({ k }) => A.at(k, k) },
        b: {
          datum: ({ k, j }) => B.at(k, j),
          from: ({ k, j }) => (k === 0 ? B.at(0, j) : update.c({ k: k - 1, i: k, j })),
          to: ({ k, j }) => [range(k + 1, nt).map((i) => update.b({ k, i, j })), B.at(k, j)],
        },
      },
      params: ({ k, j }) => ({
        ...{ m: B.rowsOf(k), n: B.columnsOf(j), lda: A.rowsOf(k), ldb: B.rowsOf(k), alpha: 1 },
        ...{ right: false, upper: false, trans: false, unit: false },
      }),
    });

    // B_ij -= A_ik X_kj
    graph.define(update, {
      ranges: { k: rows, i: ({ k }) => range(k + 1, nt), j: columns },
      starts: { k: () => range(0, 0) },
      order: ({ k, i, j }) => position(k, i, j),
      own: { i: ({ k }, rank) => B.ownRows(rank, range(k + 1, nt)), j: ownColumns },
      on: ({ i, j }) => B.rankOf(i, j),
      flows: {
        a: { from: ({ k, i }) => A.at(i, k) },
        b: { from: ({ k, j }) => solve.b({ k, j }) },
        c: {
          datum: ({ i, j }) => B.at(i, j),
          from: ({ k, i, j }) => (k === 0 ? B.at(i, j) : update.c({ k: k - 1, i, j })),
          to: ({ k, i, j }) => (i === k + 1 ? solve.b({ k: i, j }) : update.c({ k: k + 1, i, j })),
        },
      },
      params: ({ k, i, j }) => ({
        ...{ m: B.rowsOf(i), n: B.columnsOf(j), k: A.columnsOf(k), alpha: -1, beta: 1 },
        ...{ lda: A.rowsOf(i), ldb: B.rowsOf(k), ldc: B.rowsOf(i), transA: false, transB: false },
      }),
    });
  },
);

function checkArguments({ A, B }: TriangularSolveArguments): void {
  const operation = 'triangularSolveGraph';
  checkMatrices(operation, { A, B });
  checkSquare(operation, 'A', A);
  if (A.rows !== B.rows)
    throw new HeadraceError('ERR_SHAPE', `${operation}: the shapes of ${shapes(A, B)} do not fit`);
  checkTileSizes(operation, { A, B });
  checkDistinct(operation, { A, B }, 'B');
  checkFull(operation, { B });
}
