// The operations of BLAS and LAPACK on tiles, as tasks: each function inserts one. A tile is a datum whose elements form a
// column-major matrix (`rows`); shapes and leading dimensions follow from it. Names and defaults are those of the BLAS:
// J. Dongarra, J. Du Croz, S. Hammarling, I. Duff, "A set of level 3 basic linear algebra subprograms", ACM TOMS 16 (1990).
//
// In a pruned run an operation on tiles of other ranks only inserts no task and returns undefined.
import type { Datum, Graph, TaskHandle, TaskOptions } from '../scheduler/index.js';
import { checkGraph, checkNames, checkTile, checkTypes } from './arguments.js';
import type { Real } from './tile-classes.js';
import * as tasks from './tile-tasks.js';

export type { Scalars, SyrkOptions, TileGemmOptions, TrsmOptions } from './tile-tasks.js';

const TRSM: readonly string[] = ['right', 'upper', 'trans', 'unit', 'alpha'];
const SYRK: readonly string[] = ['upper', 'trans', 'alpha', 'beta'];
const GEMM: readonly string[] = ['transA', 'transB', 'alpha', 'beta'];

/**
 * A := L with A = L L^T, in the lower triangle; the upper one is not read.
 * The task fails with `ERR_NOT_POSITIVE_DEFINITE`, which names the tile and the pivot.
 * @throws HeadraceError `ERR_SHAPE` when A is not square; `ERR_ARGUMENT_TYPE` and the other errors of `Graph.insert`
 */
export function potrf<E extends Real>(
  graph: Graph,
  a: Datum<E>,
  wishes?: TaskOptions,
): TaskHandle | undefined {
  checkAll('potrf', graph, { a });
  return tasks.potrf(graph, a, wishes);
}

/**
 * B := alpha op(A)^-1 B, or alpha B op(A)^-1 with `right`; A is triangular.
 * @throws HeadraceError `ERR_SHAPE` when A is not square or does not fit B; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the other
 *   errors of `Graph.insert`
 */
export function trsm<E extends Real>(
  graph: Graph,
  a: Datum<E>,
  b: Datum<E>,
  options: tasks.TrsmOptions = {},
  wishes?: TaskOptions,
): TaskHandle | undefined {
  checkAll('trsm', graph, { a, b });
  checkNames('trsm', options, TRSM);
  return tasks.trsm(graph, a, b, options, wishes);
}

/**
 * One triangle of C := alpha A A^T + beta C, or alpha A^T A + beta C with `trans`.
 * @throws HeadraceError `ERR_SHAPE` when C is not square or does not fit A; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the other
 *   errors of `Graph.insert`
 */
export function syrk<E extends Real>(
  graph: Graph,
  a: Datum<E>,
  c: Datum<E>,
  options: tasks.SyrkOptions = {},
  wishes?: TaskOptions,
): TaskHandle | undefined {
  checkAll('syrk', graph, { a, c });
  checkNames('syrk', options, SYRK);
  return tasks.syrk(graph, a, c, options, wishes);
}

/**
 * C := alpha op(A) op(B) + beta C.
 * @throws HeadraceError `ERR_SHAPE` when the tiles do not fit together; `ERR_ARGUMENT_TYPE`, `ERR_OPTION` and the other errors
 *   of `Graph.insert`
 */
export function gemm<E extends Real>(
  graph: Graph,
  a: Datum<E>,
  b: Datum<E>,
  c: Datum<E>,
  options: tasks.TileGemmOptions = {},
  wishes?: TaskOptions,
): TaskHandle | undefined {
  checkAll('gemm', graph, { a, b, c });
  checkNames('gemm', options, GEMM);
  return tasks.gemm(graph, a, b, c, options, wishes);
}

/** The graph can take tasks, and the tiles are open, real and of one element type. */
function checkAll(operation: string, graph: Graph, tiles: Readonly<Record<string, Datum>>): void {
  checkGraph(operation, graph);
  for (const name in tiles) checkTile(operation, name, tiles[name]);
  checkTypes(operation, tiles);
}
