// Redistribution: a matrix in one set of tiles becomes the same matrix in another, whatever the tile sizes, process grids
// and origins of the two. Each target tile is assembled from the rectangles in which source tiles overlap it. A rectangle
// is one task on the rank of the target tile, so only source tiles travel, each once per rank that needs it.
import {
  type Flow,
  type Graph,
  HeadraceError,
  read,
  readWrite,
  type TaskClass,
  type TiledMatrix,
  task,
} from '../scheduler/index.js';
import { checkDistinct, checkGraph, checkMatrices, checkTiles } from './arguments.js';

type Element = 'f64' | 'f32';

/** Task class that copies a rectangle from one column-major tile into another. */
export type RectangleClass<E extends Element> = TaskClass<
  { readonly to: Flow<E, 'readWrite'>; readonly from: Flow<E, 'read'> },
  {
    readonly rows: 'i32';
    readonly columns: 'i32';
    /** First row and column in the target tile, and its leading dimension. */
    readonly toRow: 'i32';
    readonly toColumn: 'i32';
    readonly toStride: 'i32';
    readonly fromRow: 'i32';
    readonly fromColumn: 'i32';
    readonly fromStride: 'i32';
  }
>;

function rectangle<E extends Element>(element: E): RectangleClass<E> {
  return task({
    name: 'rectangle',
    flows: { to: readWrite(element), from: read(element) },
    params: {
      rows: 'i32',
      columns: 'i32',
      toRow: 'i32',
      toColumn: 'i32',
      toStride: 'i32',
      fromRow: 'i32',
      fromColumn: 'i32',
      fromStride: 'i32',
    },
    body: (args: Record<string, unknown>) => {
      const { to, from } = args as { to: Float64Array; from: Float64Array };
      const { rows, columns, toRow, toColumn, toStride, fromRow, fromColumn, fromStride } =
        args as Record<string, number>;
      for (let c = 0; c < columns; c++) {
        const source = (fromColumn + c) * fromStride + fromRow;
        to.set(from.subarray(source, source + rows), (toColumn + c) * toStride + toRow);
      }
    },
  } as never) as unknown as RectangleClass<E>;
}

const classes = { f64: rectangle('f64'), f32: rectangle('f32') };

/**
 * Inserts the tasks that copy matrix A into matrix B of the same size, tile by tile. Both keep their distributions. B's
 * tiles must have values (any): a tile is assembled in several steps.
 *
 * @throws HeadraceError `ERR_SIZE_MISMATCH` when the matrices differ in size or one of them is a triangle;
 *   `ERR_DUPLICATE_DATUM` when they are the same; `ERR_ARGUMENT_TYPE` and the errors of `Graph.check`, each before the first
 *   task is inserted
 */
export function redistribute<E extends Element>(
  graph: Graph,
  A: TiledMatrix<E>,
  B: TiledMatrix<E>,
): void {
  checkGraph('redistribute', graph);
  checkMatrices('redistribute', { A, B });
  checkDistinct('redistribute', { A, B }, 'B');
  if (A.rows !== B.rows || A.columns !== B.columns || A.lower || B.lower) {
    throw new HeadraceError(
      'ERR_SIZE_MISMATCH',
      `'${A.name}' (${A.rows} x ${A.columns}) cannot be copied into '${B.name}' (${B.rows} x ${B.columns})`,
    );
  }
  checkTiles('redistribute', 'A', graph, A, true);
  checkTiles('redistribute', 'B', graph, B, true);
  const copy = classes[A.element] as unknown as RectangleClass<E>;
  for (let j = 0; j < B.tileColumns; j++) {
    for (let i = 0; i < B.tileRows; i++) {
      const top = i * B.tile;
      const left = j * B.tile;
      const bottom = top + B.rowsOf(i);
      const right = left + B.columnsOf(j);
      for (let q = Math.floor(left / A.tile); q * A.tile < right; q++) {
        for (let p = Math.floor(top / A.tile); p * A.tile < bottom; p++) {
          const row = Math.max(top, p * A.tile);
          const column = Math.max(left, q * A.tile);
          graph.insert(copy, {
            to: B.at(i, j),
            from: A.at(p, q),
            rows: Math.min(bottom, p * A.tile + A.rowsOf(p)) - row,
            columns: Math.min(right, q * A.tile + A.columnsOf(q)) - column,
            toRow: row - top,
            toColumn: column - left,
            toStride: B.rowsOf(i),
            fromRow: row - p * A.tile,
            fromColumn: column - q * A.tile,
            fromStride: A.rowsOf(p),
          } as never);
        }
      }
    }
  }
}
