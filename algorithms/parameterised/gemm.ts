// The tiled product of ../gemm.ts as a parameterised graph: every tile of C is a chain of updates.
import {
  HeadraceError,
  type ParameterisedGraph,
  parameterised,
  range,
  type TiledMatrix,
} from '../../scheduler/index.js';
import { checkDistinct, checkFull, checkMatrices, checkTileSizes } from '../arguments.js';
import { type Real, tileClasses } from '../tile-classes.js';

/** Arguments of `gemmGraph`: matrices of the same elements and tile size. */
export interface GemmArguments {
  readonly A: TiledMatrix<Real>;
  readonly B: TiledMatrix<Real>;
  /** Need not have values. */
  readonly C: TiledMatrix<Real>;
}

/**
 * C := A B; A is m x k, B k x n, C m x n.
 *
 * An instance throws `ERR_SHAPE` when the shapes or tile sizes do not fit together or a matrix is a triangle,
 * `ERR_DUPLICATE_DATUM` when C is A or B, and `ERR_ARGUMENT_TYPE`.
 */
export const gemmGraph: ParameterisedGraph<GemmArguments> = parameterised(
  'gemm',
  (graph, { A, B, C }) => {
    checkArguments({ A, B, C });
    const classes = tileClasses(C.element);
    const { first, update } = graph.declare({
      first: { runs: classes.multiplyInto, indices: ['i', 'j'] },
      update: { runs: classes.gemm, indices: ['l', 'i', 'j'] },
    });
    const last = A.tileColumns - 1;
    const rows = () => range(0, C.tileRows);
    const columns = () => range(0, C.tileColumns);
    const inner = () => range(0, last + 1);
    const position = (l: number, i: number, j: number) => (l * C.tileRows + i) * C.tileColumns + j;
    const own = {
      i: (_: object, rank: number) => C.ownRows(rank, rows()),
      j: (_: object, rank: number) => C.ownColumns(rank, columns()),
    };

    // A_il goes to row i of C, B_lj to column j.
    graph.inputs({
      indices: ['l', 'i'],
      ranges: { l: inner, i: rows },
      own: {
        l: (_, rank) => A.ownColumns(rank, inner()),
        i: (_, rank) => A.ownRows(rank, rows()),
      },
      on: ({ l, i }) => A.rankOf(i, l),
      datum: ({ l, i }) => A.at(i, l),
      to: ({ l, i }) => columns().map((j) => (l === 0 ? first.a({ i, j }) : update.a({ l, i, j }))),
    });
    graph.inputs({
      indices: ['l', 'j'],
      ranges: { l: inner, j: columns },
      own: {
        l: (_, rank) => B.ownRows(rank, inner()),
        j: (_, rank) => B.ownColumns(rank, columns()),
      },
      on: ({ l, j }) => B.rankOf(l, j),
      datum: ({ l, j }) => B.at(l, j),
      to: ({ l, j }) => rows().map((i) => (l === 0 ? first.b({ i, j }) : update.b({ l, i, j }))),
    });
    const shape = (i: number, j: number, l: number) => ({
      ...{ m: C.rowsOf(i), n: C.columnsOf(j), k: A.columnsOf(l) },
      ...{ lda: A.rowsOf(i), ldb: B.rowsOf(l), ldc: C.rowsOf(i) },
      ...{ alpha: 1, transA: false, transB: false },
    });

    // C_ij = A_i0 B_0j
    graph.define(first, {
      ranges: { i: rows, j: columns },
      order: ({ i, j }) => position(0, i, j),
      own,
      on: ({ i, j }) => C.rankOf(i, j),
      flows: {
        a: { from: ({ i }) => A.at(i, 0) },
        b: { from: ({ j }) => B.at(0, j) },
        c: {
          datum: ({ i, j }) => C.at(i, j),
          from: ({ i, j }) => C.at(i, j),
          to: ({ i, j }) => (last === 0 ? C.at(i, j) : update.c({ i, j, l: 1 })),
        },
      },
      params: ({ i, j }) => ({ ...shape(i, j, 0), beta: 0 }),
    });

    // C_ij += A_il B_lj
    graph.define(update, {
      ranges: { l: () => range(1, last + 1), i: rows, j: columns },
      starts: { l: () => range(0, 0) },
      order: ({ l, i, j }) => position(l, i, j),
      own,
      on: ({ i, j }) => C.rankOf(i, j),
      flows: {
        a: { from: ({ i, l }) => A.at(i, l) },
        b: { from: ({ j, l }) => B.at(l, j) },
        c: {
          datum: ({ i, j }) => C.at(i, j),
          from: ({ i, j, l }) => (l === 1 ? first.c({ i, j }) : update.c({ i, j, l: l - 1 })),
          to: ({ i, j, l }) => (l === last ? C.at(i, j) : update.c({ i, j, l: l + 1 })),
        },
      },
      params: ({ i, j, l }) => ({ ...shape(i, j, l), beta: 1 }),
    });
  },
);

function checkArguments({ A, B, C }: GemmArguments): void {
  checkMatrices('gemmGraph', { A, B, C });
  if (A.columns !== B.rows || A.rows !== C.rows || B.columns !== C.columns)
    throw new HeadraceError(
      'ERR_SHAPE',
      `cannot multiply '${A.name}' (${A.rows} x ${A.columns}) by '${B.name}' (${B.rows} x ${B.columns}) into '${C.name}' (${C.rows} x ${C.columns})`,
    );
  checkTileSizes('gemmGraph', { A, B, C });
  checkDistinct('gemmGraph', { A, B, C }, 'C');
  checkFull('gemmGraph', { A, B, C });
}
