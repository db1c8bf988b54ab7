// The tasks of the tile operations (tile-operations.ts): shapes and leading dimensions follow from the tiles. Algorithms
// insert them as they are: they have checked their matrices, so only shapes are looked at.
//
// In a pruned run an operation on tiles of other ranks only inserts no task and returns undefined.
import {
  type Datum,
  type Graph,
  HeadraceError,
  type TaskHandle,
  type TaskOptions,
} from '../scheduler/index.js';
import { type Real, tileClasses } from './tile-classes.js';

/** Scalars of an update: C := alpha ... + beta C. */
export interface Scalars {
  /** Default 1. */
  readonly alpha?: number;
  /** Default 1. With 0 the operation does not read C, which need not have a value. */
  readonly beta?: number;
}

/** Options of `gemm`. */
export interface TileGemmOptions extends Scalars {
  /** Use the transpose of A; default false. */
  readonly transA?: boolean;
  /** Use the transpose of B; default false. */
  readonly transB?: boolean;
}

/** Options of `syrk`. */
export interface SyrkOptions extends Scalars {
  /** Update the upper triangle instead of the lower one; default false. */
  readonly upper?: boolean;
  /** C := alpha A^T A + beta C; default false. */
  readonly trans?: boolean;
}

/** Options of `trsm`. */
export interface TrsmOptions {
  /** B := alpha B op(A)^-1 instead of alpha op(A)^-1 B; default false. */
  readonly right?: boolean;
  /** A is an upper triangle; default false. */
  readonly upper?: boolean;
  /** Use the transpose of A; default false. */
  readonly trans?: boolean;
  /** The diagonal of A is 1 and is not read; default false. */
  readonly unit?: boolean;
  /** Default 1. */
  readonly alpha?: number;
}

/** @throws HeadraceError `ERR_SHAPE` when A is not square */
export function potrf<E extends Real>(
  graph: Graph,
  a: Datum<E>,
  wishes?: TaskOptions,
): TaskHandle | undefined {
  if (a.rows !== a.columns) throw misfit('potrf', a);
  if (graph.skips(a)) return undefined;
  return graph.insert(
    tileClasses(a.element).potrf,
    { a, n: a.rows, upper: false, lda: a.rows },
    wishes,
  );
}

/** @throws HeadraceError `ERR_SHAPE` when A is not square or does not fit B */
export function trsm<E extends Real>(
  graph: Graph,
  a: Datum<E>,
  b: Datum<E>,
  options: TrsmOptions = {},
  wishes?: TaskOptions,
): TaskHandle | undefined {
  const { right = false, upper = false, trans = false, unit = false, alpha = 1 } = options;
  if (a.rows !== a.columns || a.rows !== (right ? b.columns : b.rows)) throw misfit('trsm', a, b);
  if (graph.skips(a, b)) return undefined;
  const shape = { m: b.rows, n: b.columns, lda: a.rows, ldb: b.rows };
  return graph.insert(
    tileClasses(a.element).trsm,
    { a, b, right, upper, trans, unit, alpha, ...shape },
    wishes,
  );
}

/** @throws HeadraceError `ERR_SHAPE` when C is not square or does not fit A */
export function syrk<E extends Real>(
  graph: Graph,
  a: Datum<E>,
  c: Datum<E>,
  options: SyrkOptions = {},
  wishes?: TaskOptions,
): TaskHandle | undefined {
  const { upper = false, trans = false, alpha = 1, beta = 1 } = options;
  const n = trans ? a.columns : a.rows;
  if (c.rows !== c.columns || c.rows !== n) throw misfit('syrk', a, c);
  if (graph.skips(a, c)) return undefined;
  const shape = { n, k: trans ? a.rows : a.columns, lda: a.rows, ldc: c.rows };
  return graph.insert(
    tileClasses(a.element).syrk,
    { a, c, upper, trans, alpha, beta, ...shape },
    wishes,
  );
}

/** @throws HeadraceError `ERR_SHAPE` when the tiles do not fit together */
export function gemm<E extends Real>(
  graph: Graph,
  a: Datum<E>,
  b: Datum<E>,
  c: Datum<E>,
  options: TileGemmOptions = {},
  wishes?: TaskOptions,
): TaskHandle | undefined {
  const { transA = false, transB = false, alpha = 1, beta = 1 } = options;
  const m = transA ? a.columns : a.rows;
  const k = transA ? a.rows : a.columns;
  const n = transB ? b.rows : b.columns;
  if (k !== (transB ? b.columns : b.rows) || c.rows !== m || c.columns !== n)
    throw misfit('gemm', a, b, c);
  if (graph.skips(a, b, c)) return undefined;
  const classes = tileClasses(a.element);
  const scalars = { transA, transB, alpha, beta };
  const args = { a, b, c, m, n, k, ...scalars, lda: a.rows, ldb: b.rows, ldc: c.rows };
  // With beta = 0 the task writes C without reading it.
  return beta === 0
    ? graph.insert(classes.multiplyInto, args, wishes)
    : graph.insert(classes.gemm, args, wishes);
}

function misfit(operation: string, ...tiles: readonly Datum[]): HeadraceError {
  const shapes = tiles.map(({ name, rows, columns }) => `'${name}' (${rows} x ${columns})`);
  return new HeadraceError(
    'ERR_SHAPE',
    `${operation}: the shapes of ${shapes.join(', ')} do not fit`,
    {
      remedy: 'make data with { rows }, or use the tiles of a TiledMatrix',
    },
  );
}
