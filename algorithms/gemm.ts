// Tiled matrix product: every tile of C is a chain of updates, one per tile of the inner dimension.
import type { Graph, TiledMatrix } from '../scheduler/index.js';
import { HeadraceError } from '../scheduler/index.js';
import { tileKernels } from './tile-kernels.js';

/** Scalars of C := alpha A B + beta C. */
export interface GemmOptions {
  /** Default 1. */
  readonly alpha?: number;
  /** Default 0: C need not have values. */
  readonly beta?: number;
}

/**
 * Inserts the tasks of C := alpha A B + beta C. A is m x k, B k x n, C m x n; all have the same tile size.
 * @throws HeadraceError `ERR_SHAPE` when the shapes or tile sizes do not fit together
 */
export function gemm<E extends 'f64' | 'f32'>(
  graph: Graph,
  A: TiledMatrix<E>,
  B: TiledMatrix<NoInfer<E>>,
  C: TiledMatrix<NoInfer<E>>,
  options: GemmOptions = {},
): void {
  const { alpha = 1, beta = 0 } = options;
  if (A.columns !== B.rows || A.rows !== C.rows || B.columns !== C.columns) {
    throw new HeadraceError(
      'ERR_SHAPE',
      `cannot multiply '${A.name}' (${A.rows} x ${A.columns}) by '${B.name}' (${B.rows} x ${B.columns}) into '${C.name}' (${C.rows} x ${C.columns})`,
    );
  }
  if (A.tile !== B.tile || A.tile !== C.tile) {
    throw new HeadraceError(
      'ERR_SHAPE',
      `'${A.name}', '${B.name}' and '${C.name}' have tiles of ${A.tile}, ${B.tile} and ${C.tile}`,
      { remedy: 'give them the same tile size' },
    );
  }
  const { gemm: multiply, multiplyInto } = tileKernels(A.element);
  const inner = A.tileColumns;
  for (const block of blocksOf(C)) {
    for (let l = 0; l < inner; l++) {
      for (const [i, j] of block) {
        const a = A.at(i, l);
        const b = B.at(l, j);
        const c = C.at(i, j);
        if (graph.skips(a, b, c)) continue;
        const update = {
          a,
          b,
          c,
          m: C.rowsOf(i),
          n: C.columnsOf(j),
          k: A.columnsOf(l),
          transA: false,
          transB: false,
          alpha,
          beta: l === 0 ? beta : 1,
          lda: C.rowsOf(i),
          ldb: B.rowsOf(l),
          ldc: C.rowsOf(i),
        } as const;
        // With beta = 0 the first update writes C without reading it.
        if (l === 0 && beta === 0) graph.insert(multiplyInto, update);
        else graph.insert(multiply, update);
      }
    }
  }
}

/** Side of the blocks of C, in tiles. */
const BLOCK = 4;

/**
 * The tiles of C in blocks of 4 x 4. A block reads 8 tiles of A and B per 16 products, where a row of C would read one
 * of B for each: it fits memories that hold a few dozen tiles, and four times fewer bytes come in.
 */
function* blocksOf(C: TiledMatrix<'f64' | 'f32'>): Generator<(readonly [number, number])[]> {
  for (let top = 0; top < C.tileRows; top += BLOCK) {
    for (let left = 0; left < C.tileColumns; left += BLOCK) {
      const block: (readonly [number, number])[] = [];
      for (let i = top; i < Math.min(top + BLOCK, C.tileRows); i++) {
        for (let j = left; j < Math.min(left + BLOCK, C.tileColumns); j++) block.push([i, j]);
      }
      yield block;
    }
  }
}

/** Floating-point operations of a product of an m x k and a k x n matrix. */
export function gemmFlops(m: number, n: number, k: number): number {
  return 2 * m * n * k;
}
