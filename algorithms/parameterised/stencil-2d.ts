// A five-point stencil in two dimensions (Jacobi iteration) as a parameterised graph. In every step each element becomes
//
//   u'(r, c) = ((((w_middle u(r, c) + w_up u(r - 1, c)) + w_down u(r + 1, c)) + w_left u(r, c - 1)) + w_right u(r, c + 1)
//
// A tile reads its own old values, and the lines of its four neighbours that touch it. Two matrices take turns: a tile of step t overwrites
// that of step t - 2, which the five tasks of step t - 1 have read.
// Invariant: the order of the additions is that of the formula, so results equal those of a serial loop bit for bit.
import {
  type Datum,
  type Flow,
  HeadraceError,
  type ParameterisedGraph,
  parameterised,
  range,
  read,
  type TaskClass,
  type TiledMatrix,
  task,
  write,
} from '../../scheduler/index.js';
import { checkCount, checkDistinct, checkFull, checkMatrices, shapes } from '../arguments.js';

type Read = Flow<'f64', 'read'>;

/** Weights of an element and of its neighbours: up and down in its column, left and right in its row. */
export interface Weights2d {
  readonly middle: number;
  readonly up: number;
  readonly down: number;
  readonly left: number;
  readonly right: number;
}

/** Arguments of `stencil2dGraph`. */
export interface Stencil2dArguments {
  /** The values, m x n of f64. */
  readonly U: TiledMatrix<'f64'>;
  /** As U, with the same tiles; needs no values. The steps write V and U in turn. */
  readonly V: TiledMatrix<'f64'>;
  readonly weights: Weights2d;
  /** The elements beyond the edges of the matrix, along a tile: at least as many f64 as a tile has rows or columns. */
  readonly beyond: Datum<'f64'>;
  /** The result is in U if it is even, else in V. */
  readonly steps: number;
}

/** One tile and one step. A neighbour beyond the edge has one line: `upRows` is 1, or `leftColumns`. */
const fivePoint: TaskClass<
  {
    readonly to: Flow<'f64', 'write'>;
    readonly middle: Read;
    readonly up: Read;
    readonly down: Read;
    readonly left: Read;
    readonly right: Read;
  },
  {
    readonly rows: 'i32';
    readonly columns: 'i32';
    readonly upRows: 'i32';
    readonly downRows: 'i32';
    readonly leftColumns: 'i32';
    readonly wMiddle: 'f64';
    readonly wUp: 'f64';
    readonly wDown: 'f64';
    readonly wLeft: 'f64';
    readonly wRight: 'f64';
  }
> = task({
  name: 'stencil 2d',
  flows: {
    to: write('f64'),
    middle: read('f64'),
    up: read('f64'),
    down: read('f64'),
    left: read('f64'),
    right: read('f64'),
  },
  params: {
    ...{ rows: 'i32', columns: 'i32', upRows: 'i32', downRows: 'i32', leftColumns: 'i32' },
    ...{ wMiddle: 'f64', wUp: 'f64', wDown: 'f64', wLeft: 'f64', wRight: 'f64' },
  },
  body: ({ to, middle, up, down, left, right, rows, columns, ...of }) => {
    const { upRows, downRows, leftColumns, wMiddle, wUp, wDown, wLeft, wRight } = of;
    for (let c = 0, at = 0; c < columns; c++) {
      for (let r = 0; r < rows; r++, at++) {
        const above = r > 0 ? middle[at - 1] : up[(c + 1) * upRows - 1];
        const below = r + 1 < rows ? middle[at + 1] : down[c * downRows];
        const before = c > 0 ? middle[at - rows] : left[(leftColumns - 1) * rows + r];
        const behind = c + 1 < columns ? middle[at + rows] : right[r];
        to[at] =
          wMiddle * middle[at] + wUp * above + wDown * below + wLeft * before + wRight * behind;
      }
    }
  },
});

/**
 * `steps` steps of the five-point stencil. The bodies are JavaScript and run on the hosts of the ranks.
 *
 * An instance throws `ERR_SHAPE` when U and V differ in shape or tiles, one of them is a triangle, or `beyond` is shorter than a side of a tile,
 * `ERR_DUPLICATE_DATUM` when U is V, and `ERR_ARGUMENT_TYPE`.
 */
export const stencil2dGraph: ParameterisedGraph<Stencil2dArguments> = parameterised(
  'stencil2d',
  (graph, args) => {
    checkArguments(args);
    const { U, V, weights, beyond, steps } = args;
    const { step } = graph.declare({ step: { runs: fivePoint, indices: ['t', 'i', 'j'] } });
    /** The matrix of which step t makes the new values. */
    const written = (t: number) => (t % 2 === 0 ? V : U);
    const isTile = (i: number, j: number) =>
      i >= 0 && i < U.tileRows && j >= 0 && j < U.tileColumns;
    /** The value of tile (i, j) before step t. */
    const old = (t: number, i: number, j: number) => {
      if (!isTile(i, j)) return beyond;
      return t === 0 ? U.at(i, j) : step.to({ t: t - 1, i, j });
    };
    const rows = () => range(0, U.tileRows);
    const columns = () => range(0, U.tileColumns);
    /** The flows of step t that read the value of tile (i, j). */
    const readers = (t: number, i: number, j: number) =>
      t < steps && [
        step.middle({ t, i, j }),
        isTile(i + 1, j) && step.up({ t, i: i + 1, j }),
        isTile(i - 1, j) && step.down({ t, i: i - 1, j }),
        isTile(i, j + 1) && step.left({ t, i, j: j + 1 }),
        isTile(i, j - 1) && step.right({ t, i, j: j - 1 }),
      ];
    graph.share(beyond);
    graph.inputs({
      indices: ['i', 'j'],
      ranges: { i: rows, j: columns },
      own: {
        i: (_, rank) => U.ownRows(rank, rows()),
        j: (_, rank) => U.ownColumns(rank, columns()),
      },
      on: ({ i, j }) => U.rankOf(i, j),
      datum: ({ i, j }) => U.at(i, j),
      to: ({ i, j }) => readers(0, i, j),
    });

    // u'_ij = w_middle u_ij + w_up u_i-1,j + w_down u_i+1,j + w_left u_i,j-1 + w_right u_i,j+1, of the lines that touch
    graph.define(step, {
      ranges: {
        t: () => range(0, steps),
        i: rows,
        j: columns,
      },
      starts: { t: () => range(0, 1) },
      // The first two steps read and overwrite the data, and the last two leave their results there.
      repeats: { t: () => range(2, steps - 2) },
      order: ({ t, i, j }) => (t * U.tileRows + i) * U.tileColumns + j,
      own: {
        i: ({ t }, rank) => written(t).ownRows(rank, rows()),
        j: ({ t }, rank) => written(t).ownColumns(rank, columns()),
      },
      on: ({ t, i, j }) => written(t).rankOf(i, j),
      flows: {
        to: {
          datum: ({ t, i, j }) => written(t).at(i, j),
          from: ({ t, i, j }) => (t < 2 ? written(t).at(i, j) : step.to({ t: t - 2, i, j })),
          to: ({ t, i, j }) => [
            readers(t + 1, i, j),
            t + 2 < steps ? step.to({ t: t + 2, i, j }) : written(t).at(i, j),
          ],
        },
        middle: { from: ({ t, i, j }) => old(t, i, j) },
        up: { from: ({ t, i, j }) => old(t, i - 1, j) },
        down: { from: ({ t, i, j }) => old(t, i + 1, j) },
        left: { from: ({ t, i, j }) => old(t, i, j - 1) },
        right: { from: ({ t, i, j }) => old(t, i, j + 1) },
      },
      params: ({ i, j }) => ({
        ...{ rows: U.rowsOf(i), columns: U.columnsOf(j) },
        upRows: i > 0 ? U.rowsOf(i - 1) : 1,
        downRows: i + 1 < U.tileRows ? U.rowsOf(i + 1) : 1,
        leftColumns: j > 0 ? U.columnsOf(j - 1) : 1,
        ...{ wMiddle: weights.middle, wUp: weights.up, wDown: weights.down },
        ...{ wLeft: weights.left, wRight: weights.right },
      }),
    });
  },
);

function checkArguments({ U, V, beyond, steps }: Stencil2dArguments): void {
  const operation = 'stencil2dGraph';
  checkMatrices(operation, { U, V });
  checkCount(operation, 'steps', steps);
  checkDistinct(operation, { U, V }, 'V');
  checkFull(operation, { U, V });
  if (U.rows !== V.rows || U.columns !== V.columns || U.tile !== V.tile)
    throw new HeadraceError(
      'ERR_SHAPE',
      `${operation}: the shapes or tiles of ${shapes(U, V)} differ`,
    );
  const most = Math.min(U.tile, Math.max(U.rows, U.columns));
  if (beyond.length >= most) return;
  throw new HeadraceError(
    'ERR_SHAPE',
    `${operation}: datum '${beyond.name}' of beyond has ${beyond.length} elements; a side of a tile has ${most}`,
    { datum: beyond.name },
  );
}
