// Tiled matrix product: every tile of C is a chain of updates, one per tile of the inner dimension.
import type { Graph, TiledMatrix } from '../scheduler/index.js';
import { HeadraceError } from '../scheduler/index.js';
import {
  checkDistinct,
  checkFull,
  checkGraph,
  checkMatrices,
  checkNames,
  checkScalar,
  checkTiles,
  checkTilesPerGpu,
} from './arguments.js';
import { visitProducts } from './gemm-order.js';
import { MEMORY_OPTIONS, type MemoryOptions } from './panels.js';
import type { Real } from './tile-classes.js';
import { gemm as multiply } from './tile-tasks.js';

/** Scalars of C := alpha A B + beta C, and the memory on which its order depends. */
export interface GemmOptions extends MemoryOptions {
  /** Default 1. */
  readonly alpha?: number;
  /** Default 0: C need not have values. */
  readonly beta?: number;
}

/**
 * Inserts the tasks of C := alpha A B + beta C. A is m x k, B k x n, C m x n; all have the same tile size.
 * @throws HeadraceError `ERR_SHAPE` when the shapes or tile sizes do not fit together, or a matrix is a triangle;
 *   `ERR_DUPLICATE_DATUM` when C is A or B; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the errors of `Graph.check`, each before the
 *   first task is inserted
 */
export function gemm<E extends Real>(
  graph: Graph,
  A: TiledMatrix<E>,
  B: TiledMatrix<NoInfer<E>>,
  C: TiledMatrix<NoInfer<E>>,
  options: GemmOptions = {},
): void {
  checkGraph('gemm', graph);
  checkMatrices('gemm', { A, B, C });
  checkNames('gemm', options, ['alpha', 'beta', ...MEMORY_OPTIONS]);
  const { alpha = 1, beta = 0 } = options;
  checkScalar('gemm', 'alpha', alpha);
  checkScalar('gemm', 'beta', beta);
  const tilesPerGpu = checkTilesPerGpu('gemm', options, C);
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
  checkDistinct('gemm', { A, B, C }, 'C');
  checkFull('gemm', { A, B, C });
  checkTiles('gemm', 'A', graph, A, true);
  checkTiles('gemm', 'B', graph, B, true);
  checkTiles('gemm', 'C', graph, C, beta !== 0);
  const isPruned = graph.skips();
  visitProducts(C, A.tileColumns, tilesPerGpu, (i, j, l) => {
    if (isPruned && graph.skips(A.rankOf(i, l), B.rankOf(l, j), C.rankOf(i, j))) return;
    // C_ij := alpha A_il B_lj + beta C_ij in the first step, C_ij += alpha A_il B_lj in the others.
    multiply(graph, A.at(i, l), B.at(l, j), C.at(i, j), { alpha, beta: l === 0 ? beta : 1 });
  });
}

/** Floating-point operations of a product of an m x k and a k x n matrix. */
export function gemmFlops(m: number, n: number, k: number): number {
  return 2 * m * n * k;
}
