// Task classes of the tile operations, one set per element type, over the kernels of a BLAS library.
// Tiles are column-major; leading dimensions are the tiles' own numbers of rows.
import { shown } from '../scheduler/checks.js';
import {
  type Flow,
  HeadraceError,
  read,
  readWrite,
  type TaskClass,
  task,
  write,
} from '../scheduler/index.js';

/** Element types of the tile operations. */
export type Real = 'f64' | 'f32';

const GEMM = {
  m: 'i32',
  n: 'i32',
  k: 'i32',
  transA: 'bool',
  transB: 'bool',
  alpha: 'f64',
  beta: 'f64',
  lda: 'i32',
  ldb: 'i32',
  ldc: 'i32',
} as const;
const SYRK = {
  n: 'i32',
  k: 'i32',
  upper: 'bool',
  trans: 'bool',
  alpha: 'f64',
  beta: 'f64',
  lda: 'i32',
  ldc: 'i32',
} as const;
const TRSM = {
  m: 'i32',
  n: 'i32',
  right: 'bool',
  upper: 'bool',
  trans: 'bool',
  unit: 'bool',
  alpha: 'f64',
  lda: 'i32',
  ldb: 'i32',
} as const;
const POTRF = { n: 'i32', upper: 'bool', lda: 'i32' } as const;

type Read<E extends Real> = Flow<E, 'read'>;
type Write<E extends Real> = Flow<E, 'write'>;
type Update<E extends Real> = Flow<E, 'readWrite'>;

/** The tile operations of one element type. */
export interface TileClasses<E extends Real> {
  /** C := alpha op(A) op(B) + beta C; op(A) is m x k, op(B) k x n. */
  readonly gemm: TaskClass<
    { readonly a: Read<E>; readonly b: Read<E>; readonly c: Update<E> },
    typeof GEMM
  >;
  /** The same with beta = 0, which does not read C. */
  readonly multiplyInto: TaskClass<
    { readonly a: Read<E>; readonly b: Read<E>; readonly c: Write<E> },
    typeof GEMM
  >;
  /** The lower triangle (or upper) of C := alpha A A^T + beta C; A is n x k. */
  readonly syrk: TaskClass<{ readonly a: Read<E>; readonly c: Update<E> }, typeof SYRK>;
  /** B := alpha op(A)^-1 B, or alpha B op(A)^-1 with `right`; A is triangular, B m x n. */
  readonly trsm: TaskClass<{ readonly a: Read<E>; readonly b: Update<E> }, typeof TRSM>;
  /** A := L with A = L L^T; fails with the pivot when A is not positive definite. */
  readonly potrf: TaskClass<{ readonly a: Update<E> }, typeof POTRF>;
}

function classesFor<E extends Real>(e: E): TileClasses<E> {
  return {
    gemm: task({
      name: 'gemm',
      flows: { a: read(e), b: read(e), c: readWrite(e) },
      params: GEMM,
      kernel: `gemm_${e}`,
    }),
    multiplyInto: task({
      name: 'gemm',
      flows: { a: read(e), b: read(e), c: write(e) },
      params: GEMM,
      kernel: `gemm_${e}`,
    }),
    syrk: task({
      name: 'syrk',
      flows: { a: read(e), c: readWrite(e) },
      params: SYRK,
      kernel: `syrk_${e}`,
    }),
    trsm: task({
      name: 'trsm',
      flows: { a: read(e), b: readWrite(e) },
      params: TRSM,
      kernel: `trsm_${e}`,
    }),
    potrf: task({
      name: 'potrf',
      flows: { a: readWrite(e) },
      params: POTRF,
      kernel: `potrf_${e}`,
      failureCode: 'ERR_NOT_POSITIVE_DEFINITE',
      explain: (pivot, { data }) =>
        `the matrix is not positive definite: pivot ${pivot} of tile ${data.a} is not positive`,
    }),
  };
}

const CLASSES: { readonly f64: TileClasses<'f64'>; readonly f32: TileClasses<'f32'> } = {
  f64: classesFor('f64'),
  f32: classesFor('f32'),
};

/**
 * The task classes of the tile operations for an element type.
 * @throws HeadraceError `ERR_ARGUMENT_TYPE` for any other element type
 */
export function tileClasses<E extends Real>(element: E): TileClasses<E> {
  if (element !== 'f64' && element !== 'f32') {
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `the tile operations take elements of f64 or f32, not ${shown(element)}`,
    );
  }
  return CLASSES[element] as unknown as TileClasses<E>;
}
