// Redistribution: a matrix in one set of tiles becomes the same matrix in another, whatever the tile sizes, process grids
// and origins of the two. Each target tile is assembled from the rectangles in which source tiles overlap it. A rectangle
// is one task on the rank of the target tile, so only source tiles travel, each once per rank that needs it.
import {
  type Flow,
  type Graph,
  HeadraceError,
  type Range,
  range,
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

/** Its parameters. */
type Overlap = RectangleClass<Element> extends TaskClass<infer _F, infer P> ? P : never;

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

/** The class for an element type. */
export function rectangleOf<E extends Element>(element: E): RectangleClass<E> {
  return classes[element] as unknown as RectangleClass<E>;
}

/** The lines of tiles of `tile` elements that overlap `count` elements from `first` on. */
export function sourcesOf(first: number, count: number, tile: number): Range {
  return range(Math.floor(first / tile), Math.ceil((first + count) / tile));
}

/** Where tile (p, q) of A overlaps tile (i, j) of B, as parameters of the class. */
export function overlap(
  A: TiledMatrix,
  B: TiledMatrix,
  { i, j, p, q }: Readonly<Record<'i' | 'j' | 'p' | 'q', number>>,
): Readonly<Record<keyof Overlap, number>> {
  const [top, left] = [i * B.tile, j * B.tile];
  const row = Math.max(top, p * A.tile);
  const column = Math.max(left, q * A.tile);
  return {
    rows: Math.min(top + B.rowsOf(i), p * A.tile + A.rowsOf(p)) - row,
    columns: Math.min(left + B.columnsOf(j), q * A.tile + A.columnsOf(q)) - column,
    toRow: row - top,
    toColumn: column - left,
    toStride: B.rowsOf(i),
    fromRow: row - p * A.tile,
    fromColumn: column - q * A.tile,
    fromStride: A.rowsOf(p),
  };
}

/** @throws HeadraceError as `redistribute`, without the errors of `Graph.check` */
export function checkRedistribution(operation: string, A: TiledMatrix, B: TiledMatrix): void {
  checkMatrices(operation, { A, B });
  checkDistinct(operation, { A, B }, 'B');
  if (A.rows === B.rows && A.columns === B.columns && !A.lower && !B.lower) return;
  throw new HeadraceError(
    'ERR_SIZE_MISMATCH',
    `'${A.name}' (${A.rows} x ${A.columns}) cannot be copied into '${B.name}' (${B.rows} x ${B.columns})`,
  );
}

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
  checkRedistribution('redistribute', A, B);
  checkTiles('redistribute', 'A', graph, A, true);
  checkTiles('redistribute', 'B', graph, B, true);
  const copy = rectangleOf(A.element);
  for (let j = 0; j < B.tileColumns; j++) {
    for (let i = 0; i < B.tileRows; i++) {
      for (const q of sourcesOf(j * B.tile, B.columnsOf(j), A.tile))
        for (const p of sourcesOf(i * B.tile, B.rowsOf(i), A.tile))
          graph.insert(copy, {
            ...{ to: B.at(i, j), from: A.at(p, q) },
            ...overlap(A, B, { i, j, p, q }),
          } as never);
    }
  }
}
