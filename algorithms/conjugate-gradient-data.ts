// The system of equations of the method of conjugate gradients: its matrix, given by tiles or by a stencil, its vectors in blocks, and the data that the
// method keeps beside them.
import { type Datum, type Graph, HeadraceError, Runtime, TiledMatrix } from '../scheduler/index.js';
import {
  checkCount,
  checkDistinct,
  checkFull,
  checkList,
  checkMatrices,
  checkNames,
  checkScalar,
  checkSquare,
  checkTile,
  checkTileSizes,
  checkTiles,
  checkTypes,
  shapes,
  wrongType,
} from './arguments.js';
import type { Real } from './tile-classes.js';

/**
 * The matrix of a five-point stencil on a grid, which is stored nowhere: (A u)(i, j) = centre u(i, j) + horizontal (u(i, j-1) + u(i, j+1)) +
 * vertical (u(i-1, j) + u(i+1, j)), with zeros beyond the grid. The default weights are those of -h^2 times the Laplace operator on a
 * grid of width h. A is positive definite if centre >= 2 (|horizontal| + |vertical|) and centre > 0.
 */
export interface FivePoint {
  /** Elements of a row of the grid. */
  readonly columns: number;
  /** Default 4. */
  readonly centre?: number;
  /** Default -1. */
  readonly horizontal?: number;
  /** Default -1. */
  readonly vertical?: number;
}
const FIVE_POINT: readonly string[] = ['columns', 'centre', 'horizontal', 'vertical'];

/** A vector: a matrix of one column, or the blocks of a grid from top to bottom, each of whole rows, row by row. */
export type Vector<E extends Real> = TiledMatrix<E> | readonly Datum<E>[];

/** The blocks of a vector. */
export function blocksOf<E extends Real>(vector: Vector<E>): Datum<E>[] {
  if (!(vector instanceof TiledMatrix)) return [...vector];
  return Array.from({ length: vector.tileRows }, (_, i) => vector.at(i, 0));
}

/** Copies of the first and the last row of a block. */
export interface Edges<E extends Real> {
  readonly first: Datum<E>;
  readonly last: Datum<E>;
}

/** Options of `conjugateGradientData`. */
export interface ConjugateGradientDataOptions {
  /** Device of a block of a grid, as `DatumOptions.device`. Default: the runtime's choice. Vectors of tiles have the devices of X. */
  readonly device?: (block: number) => number | 'host';
}

/** What the method keeps beside A, B and X: three vectors like X, edge rows of a grid's blocks, and a few numbers. */
export class ConjugateGradientData<E extends Real = Real> {
  readonly element: E;
  /** Elements of each block of X. */
  readonly lengths: readonly number[];
  /** Columns of the grid; 0 for a matrix of tiles. */
  readonly columns: number;
  /** The residual, the direction, and A times the direction. @internal */
  readonly r: readonly Datum<E>[];
  /** @internal */
  readonly p: readonly Datum<E>[];
  /** @internal */
  readonly q: readonly Datum<E>[];
  /** Of the direction's blocks. @internal */
  readonly edges: readonly Edges<E>[];
  /** Dot products of the blocks. @internal */
  readonly parts: readonly Datum<'f64'>[];
  /** @internal */
  readonly numbers: Readonly<
    Record<'alpha' | 'minus' | 'beta' | 'rr' | 'bb' | 'iterations', Datum<'f64'>>
  >;
  private readonly owned: readonly { close(): void }[];

  /** @internal */
  constructor(
    runtime: Runtime,
    columns: number,
    X: Vector<E>,
    device: ConjugateGradientDataOptions['device'],
  ) {
    const blocks = blocksOf(X);
    const [{ element, rank }] = blocks;
    const owned: { close(): void }[] = [];
    const own = <D extends { close(): void }>(each: D): D => {
      owned.push(each);
      return each;
    };
    const of = X instanceof TiledMatrix ? X.name : blocks[0].name;
    const like = (name: string, length?: number): Datum<E>[] =>
      blocks.map((block, i) => {
        const place = device === undefined ? {} : { device: device(i) };
        const options = { name: `${name}(${i}) of ${of}`, rank: block.rank, ...place };
        return own(runtime.data(element, length ?? block.length, options));
      });
    const vector = (name: string): Datum<E>[] => {
      if (!(X instanceof TiledMatrix)) return like(name);
      const { rows, tile, grid, rankGrid } = X;
      const options = { rows, columns: 1, tile, grid, rankGrid, name: `${name} of ${of}` };
      return blocksOf(own(new TiledMatrix(runtime, element, options)));
    };
    const number = (name: string, at = rank): Datum<'f64'> =>
      own(runtime.data('f64', 1, { name: `${name} of ${of}`, rank: at }));
    this.element = element;
    this.lengths = blocks.map(({ length }) => length);
    this.columns = columns;
    this.r = vector('r');
    this.p = vector('p');
    this.q = vector('A p');
    const [first, last] =
      columns === 0 ? [[], []] : [like('first', columns), like('last', columns)];
    this.edges = first.map((row, i) => ({ first: row, last: last[i] }));
    this.parts = blocks.map((block, i) => number(`part ${i}`, block.rank));
    this.numbers = {
      alpha: number('alpha'),
      minus: number('-alpha'),
      beta: number('beta'),
      rr: number('r^T r'),
      bb: number('b^T b'),
      iterations: number('iterations'),
    };
    this.owned = owned;
  }

  /** Closes the data, after the tasks that use them. Idempotent. */
  close(): void {
    for (const each of this.owned) each.close();
  }
}

/**
 * Makes the data that `conjugateGradient` keeps beside A, B and X: three vectors like X, each block on the rank of X's block, and numbers. They need no
 * values. Call it on every rank, as `Runtime.data`.
 *
 * @throws HeadraceError `ERR_SHAPE` when A is not square, X does not fit or has more than one column; `ERR_ARGUMENT_TYPE`,
 *   `ERR_DUPLICATE_DATUM`, `ERR_OPTION` and the errors of `Runtime.data`
 */
export function conjugateGradientData<E extends Real>(
  runtime: Runtime,
  A: TiledMatrix<NoInfer<E>> | FivePoint,
  X: Vector<E>,
  options: ConjugateGradientDataOptions = {},
): ConjugateGradientData<E> {
  const operation = 'conjugateGradientData';
  if (!(runtime instanceof Runtime)) throw wrongType(operation, 'runtime', 'a Runtime', runtime);
  checkNames(operation, options, ['device']);
  const { device } = options;
  if (device !== undefined && typeof device !== 'function')
    throw wrongType(operation, 'device', 'a function of the number of a block', device);
  const columns = checkMatrixAndVectors(operation, A, { X });
  return new ConjugateGradientData(runtime, columns, X, device);
}

/** Checks everything that an operation on A, B, X and the data beside them uses. @throws HeadraceError */
export function checkSystem<E extends Real>(
  operation: string,
  graph: Graph,
  A: TiledMatrix<E> | FivePoint,
  { B, X }: Readonly<Record<'B' | 'X', Vector<E>>>,
  data: ConjugateGradientData<E>,
): void {
  const columns = checkMatrixAndVectors(operation, A, { B, X });
  if (!(data instanceof ConjugateGradientData))
    throw wrongType(operation, 'data', 'what conjugateGradientData makes', data);
  if (A instanceof TiledMatrix) checkTiles(operation, 'A', graph, A, true);
  const vectors = { B: blocksOf(B), X: blocksOf(X) };
  const words = (element: Real, lengths: readonly number[], wide: number): string =>
    `blocks of ${lengths.join(', ')} ${element}${wide === 0 ? '' : ` in rows of ${wide}`}`;
  const wanted = words(vectors.X[0].element, lengthsOf(vectors.X), columns);
  const made = words(data.element, data.lengths, data.columns);
  if (wanted !== made) {
    throw new HeadraceError(
      'ERR_SHAPE',
      `${operation}: X has ${wanted}, but data are for ${made}`,
      {
        remedy: 'make them with conjugateGradientData',
      },
    );
  }
  for (const [name, blocks] of Object.entries(vectors))
    for (const block of blocks)
      graph.check(block, true, `${operation}: datum '${block.name}' of ${name}`);
  const { r, p, q, parts, edges, numbers } = data;
  const others = edges.flatMap(({ first, last }) => [first, last]);
  for (const datum of [...r, ...p, ...q, ...parts, ...others, ...Object.values(numbers)])
    graph.check(datum, false, `${operation}: datum '${datum.name}' of data`);
}

/** Checks A and the vectors, and returns the columns of the grid, or 0 for a matrix of tiles. */
function checkMatrixAndVectors(
  operation: string,
  A: TiledMatrix | FivePoint,
  vectors: Readonly<Record<string, Vector<Real>>>,
): number {
  if (A instanceof TiledMatrix) {
    const matrices = vectors as Readonly<Record<string, TiledMatrix>>;
    checkMatrices(operation, { A, ...matrices });
    checkSquare(operation, 'A', A);
    checkFull(operation, { A, ...matrices });
    for (const matrix of Object.values(matrices)) {
      if (matrix.rows === A.rows && matrix.columns === 1) continue;
      const both = shapes(A, matrix);
      throw new HeadraceError('ERR_SHAPE', `${operation}: the shapes of ${both} do not fit`);
    }
    checkTileSizes(operation, { A, ...matrices });
    checkDistinct(operation, { A, ...matrices }, 'X');
    return 0;
  }
  if (typeof A !== 'object' || A === null || Array.isArray(A))
    throw wrongType(operation, 'A', 'a TiledMatrix or a five-point stencil', A);
  checkNames(operation, A, FIVE_POINT, 'the parts of A');
  const { columns, centre = 4, horizontal = -1, vertical = -1 } = A;
  checkCount(operation, 'columns of A', columns, 1);
  for (const [name, weight] of Object.entries({ centre, horizontal, vertical }))
    checkScalar(operation, `${name} of A`, weight);
  checkGrid(operation, columns, vectors as Readonly<Record<string, readonly Datum<Real>[]>>);
  return columns;
}

/** The blocks of the vectors are alike, of whole rows, and X has each datum once. */
function checkGrid(
  operation: string,
  columns: number,
  vectors: Readonly<Record<string, readonly Datum<Real>[]>>,
): void {
  const seen: Map<Datum, string> = new Map();
  let like: readonly number[] | undefined;
  for (const [name, list] of Object.entries(vectors)) {
    const blocks = checkList(operation, name, list);
    if (blocks.length === 0) throw wrongType(operation, name, 'at least one block', blocks);
    for (const [i, block] of blocks.entries()) {
      const called = `${name}[${i}]`;
      checkTile(operation, called, block);
      checkTypes(operation, { [`${name}[0]`]: blocks[0], [called]: block });
      const before = seen.get(block);
      if (before !== undefined) {
        throw new HeadraceError(
          'ERR_DUPLICATE_DATUM',
          `${operation}: ${before} and ${called} are both datum '${block.name}'`,
          { datum: block.name },
        );
      }
      seen.set(block, called);
      if (block.length % columns === 0) continue;
      throw new HeadraceError(
        'ERR_SHAPE',
        `${operation}: ${called} ('${block.name}') has ${block.length} elements, which are not rows of ${columns}`,
        { datum: block.name },
      );
    }
    const lengths = lengthsOf(blocks);
    like ??= lengths;
    if (like.join() === lengths.join()) continue;
    throw new HeadraceError(
      'ERR_SHAPE',
      `${operation}: the blocks of B have ${like.join(', ')} elements, but those of ${name} ${lengths.join(', ')}`,
    );
  }
  checkTypes(
    operation,
    Object.fromEntries(Object.entries(vectors).map(([name, [one]]) => [name, one])),
  );
}

function lengthsOf(blocks: readonly Datum[]): number[] {
  return blocks.map(({ length }) => length);
}
