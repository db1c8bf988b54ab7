// Data beside the tiles of a matrix: what a factorisation keeps for each tile on or below the diagonal.
import {
  type Datum,
  type ElementType,
  HeadraceError,
  Runtime,
  type TiledMatrix,
} from '../scheduler/index.js';
import { checkFull, checkMatrix, wrongType } from './arguments.js';

/** A datum per tile on or below the diagonal of a matrix, or below it, each on the rank of its tile. */
export class TileData<E extends ElementType> {
  private readonly data: Map<number, Datum<E>> = new Map();
  private readonly tileRows: number;

  /** `make` gives elements and rows of the datum of tile (i, j). The first tile of column j is (j + below, j). */
  constructor(
    runtime: Runtime,
    A: TiledMatrix,
    name: string,
    element: E,
    below: 0 | 1,
    make: (i: number, j: number) => { readonly length: number; readonly rows: number },
  ) {
    this.tileRows = A.tileRows;
    for (let j = 0; j < A.tileColumns; j++) {
      for (let i = j + below; i < A.tileRows; i++) {
        const { length, rows } = make(i, j);
        const options = { name: `${name} of ${A.name}(${i}, ${j})`, rows, rank: A.rankOf(i, j) };
        this.data.set(j * this.tileRows + i, runtime.data(element, length, options) as Datum<E>);
      }
    }
  }

  at(i: number, j: number): Datum<E> {
    return this.data.get(j * this.tileRows + i) as Datum<E>;
  }

  [Symbol.iterator](): Iterator<Datum<E>> {
    return this.data.values();
  }

  close(): void {
    for (const datum of this.data.values()) datum.close();
  }
}

/** The shape of the matrix that factors were made for. */
interface FactorShape {
  readonly element: 'f64' | 'f32';
  readonly rows: number;
  readonly columns: number;
  readonly tile: number;
}

/** @throws HeadraceError `ERR_ARGUMENT_TYPE`, `ERR_SHAPE` for a lower triangle and for more columns than rows */
export function checkFactorsOf(operation: string, runtime: Runtime, A: TiledMatrix): void {
  if (!(runtime instanceof Runtime)) throw wrongType(operation, 'runtime', 'a Runtime', runtime);
  checkMatrix(operation, 'A', A);
  checkFull(operation, { A });
  if (A.columns <= A.rows) return;
  throw new HeadraceError(
    'ERR_SHAPE',
    `${operation}: '${A.name}' is ${A.rows} x ${A.columns}, and has more columns than rows`,
  );
}

/** @throws HeadraceError `ERR_SHAPE` unless the factors were made for a matrix like A */
export function checkFactors(
  operation: string,
  A: TiledMatrix,
  factors: FactorShape,
  maker: string,
): void {
  const words = ({ element, rows, columns, tile }: FactorShape): string =>
    `${rows} x ${columns} of ${element} in tiles of ${tile}`;
  if (words(factors) === words(A)) return;
  throw new HeadraceError(
    'ERR_SHAPE',
    `${operation}: the factors are for ${words(factors)}, but '${A.name}' is ${words(A)}`,
    { remedy: `make them with ${maker}` },
  );
}
