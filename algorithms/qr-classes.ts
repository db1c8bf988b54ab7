// Task classes of QR factorisation by tiles, one set per element type, over LAPACK's GEQRT, GEMQRT, TPQRT and TPMQRT
// (native/kernels/tile_factors.cpp).
//
// They run on hosts and emulated GPUs. Where GPUs are CUDA GPUs they run on the host: cuSOLVER has no routine for two tiles one above the other.
import { type Flow, read, readWrite, type TaskClass, task, write } from '../scheduler/index.js';
import type { Real } from './tile-classes.js';

const GEQRT = { m: 'i32', n: 'i32', nb: 'i32', lda: 'i32' } as const;
const GEMQRT = {
  trans: 'bool',
  m: 'i32',
  n: 'i32',
  k: 'i32',
  nb: 'i32',
  ldv: 'i32',
  ldc: 'i32',
} as const;
const TPQRT = { m: 'i32', n: 'i32', nb: 'i32', lda: 'i32', ldb: 'i32' } as const;
const TPMQRT = {
  trans: 'bool',
  m: 'i32',
  n: 'i32',
  k: 'i32',
  nb: 'i32',
  ldv: 'i32',
  lda: 'i32',
  ldb: 'i32',
} as const;

type Input<E extends Real> = Flow<E, 'read'>;
type Update<E extends Real> = Flow<E, 'readWrite'>;
type Output<E extends Real> = Flow<E, 'write'>;

interface QrClasses<E extends Real> {
  /** A = Q R: R in the upper triangle, the reflectors below it. */
  readonly geqrt: TaskClass<{ readonly a: Update<E>; readonly t: Output<E> }, typeof GEQRT>;
  /** C := Q C, or Q^T C, with reflectors of geqrt. */
  readonly gemqrt: TaskClass<
    { readonly v: Input<E>; readonly t: Input<E>; readonly c: Update<E> },
    typeof GEMQRT
  >;
  /** [R; B] = Q [R'; 0] for the upper triangle R of A; B gets the reflectors. */
  readonly tpqrt: TaskClass<
    { readonly a: Update<E>; readonly b: Update<E>; readonly t: Output<E> },
    typeof TPQRT
  >;
  /** [A; B] := Q [A; B], or Q^T [A; B], with reflectors of tpqrt. */
  readonly tpmqrt: TaskClass<
    { readonly v: Input<E>; readonly t: Input<E>; readonly a: Update<E>; readonly b: Update<E> },
    typeof TPMQRT
  >;
}

function classesFor<E extends Real>(e: E): QrClasses<E> {
  return {
    geqrt: task({
      name: 'geqrt',
      flows: { a: readWrite(e), t: write(e) },
      params: GEQRT,
      kernel: `geqrt_${e}`,
    }),
    gemqrt: task({
      name: 'gemqrt',
      flows: { v: read(e), t: read(e), c: readWrite(e) },
      params: GEMQRT,
      kernel: `gemqrt_${e}`,
    }),
    tpqrt: task({
      name: 'tpqrt',
      flows: { a: readWrite(e), b: readWrite(e), t: write(e) },
      params: TPQRT,
      kernel: `tpqrt_${e}`,
    }),
    tpmqrt: task({
      name: 'tpmqrt',
      flows: { v: read(e), t: read(e), a: readWrite(e), b: readWrite(e) },
      params: TPMQRT,
      kernel: `tpmqrt_${e}`,
    }),
  };
}

const CLASSES: { readonly f64: QrClasses<'f64'>; readonly f32: QrClasses<'f32'> } = {
  f64: classesFor('f64'),
  f32: classesFor('f32'),
};

/** The task classes for an element type. */
export function qrClasses<E extends Real>(element: E): QrClasses<E> {
  return CLASSES[element] as unknown as QrClasses<E>;
}
