// Task classes of LU factorisation by tiles, one set per element type, over LAPACK's GETRF (native/kernels/tile_factors.cpp). Pivots are
// 32-bit integers from 1.
//
// They run on hosts and emulated GPUs. Where GPUs are CUDA GPUs they run on the host: cuSOLVER has no factorisation and no exchange of rows of two
// tiles one above the other.
import { type Flow, read, readWrite, type TaskClass, task, write } from '../scheduler/index.js';
import type { Real } from './tile-classes.js';

const GETRF = { m: 'i32', n: 'i32', last: 'bool', lda: 'i32' } as const;
const UNPIVOTED = { n: 'i32', lda: 'i32' } as const;
const TSTRF = { m: 'i32', n: 'i32', last: 'bool', ldu: 'i32', lda: 'i32', ldl: 'i32' } as const;
const SWAP_ROWS = { k: 'i32', m: 'i32', n: 'i32', lda: 'i32' } as const;
const SWAP_PAIRS = { k: 'i32', m: 'i32', n: 'i32', lda: 'i32', ldb: 'i32' } as const;

type Update<E extends Real> = Flow<E, 'readWrite'>;
type Pivots = Flow<'i32', 'read'>;

interface LuClasses<E extends Real> {
  /** P A = L U for one tile. */
  readonly getrf: TaskClass<
    { readonly a: Update<E>; readonly pivots: Flow<'i32', 'write'> },
    typeof GETRF
  >;
  /** A = L U for one square tile, without exchanges of rows. */
  readonly unpivoted: TaskClass<{ readonly a: Update<E> }, typeof UNPIVOTED>;
  /** P A = L U for an upper triangle above a tile; the upper part of L has a datum of its own. */
  readonly tstrf: TaskClass<
    {
      readonly u: Update<E>;
      readonly a: Update<E>;
      readonly l: Flow<E, 'write'>;
      readonly pivots: Flow<'i32', 'write'>;
    },
    typeof TSTRF
  >;
  /** A := P A. */
  readonly swapRows: TaskClass<
    { readonly a: Update<E>; readonly pivots: Pivots },
    typeof SWAP_ROWS
  >;
  /** [A; B] := P [A; B]. */
  readonly swapPairs: TaskClass<
    { readonly a: Update<E>; readonly b: Update<E>; readonly pivots: Pivots },
    typeof SWAP_PAIRS
  >;
}

const singular = {
  failureCode: 'ERR_SINGULAR',
  explain: (pivot: number, { data }: { readonly data: { readonly a: string } }): string =>
    `the matrix is singular: pivot ${pivot} is 0 after the elimination with tile ${data.a}`,
};

function classesFor<E extends Real>(e: E): LuClasses<E> {
  return {
    getrf: task({
      name: 'getrf',
      flows: { a: readWrite(e), pivots: write('i32') },
      params: GETRF,
      kernel: `getrf_${e}`,
      ...singular,
    }),
    unpivoted: task({
      name: 'getrf',
      flows: { a: readWrite(e) },
      params: UNPIVOTED,
      kernel: `getrf_unpivoted_${e}`,
      failureCode: 'ERR_SINGULAR',
      explain: (pivot, { data }) =>
        `the rows and columns of the matrix up to pivot ${pivot} of tile ${data.a} form a singular matrix; \`lu\` exchanges rows`,
    }),
    tstrf: task({
      name: 'tstrf',
      flows: { u: readWrite(e), a: readWrite(e), l: write(e), pivots: write('i32') },
      params: TSTRF,
      kernel: `tstrf_${e}`,
      ...singular,
    }),
    swapRows: task({
      name: 'swap rows',
      flows: { a: readWrite(e), pivots: read('i32') },
      params: SWAP_ROWS,
      kernel: `swap_rows_${e}`,
    }),
    swapPairs: task({
      name: 'swap pairs',
      flows: { a: readWrite(e), b: readWrite(e), pivots: read('i32') },
      params: SWAP_PAIRS,
      kernel: `swap_pairs_${e}`,
    }),
  };
}

const CLASSES: { readonly f64: LuClasses<'f64'>; readonly f32: LuClasses<'f32'> } = {
  f64: classesFor('f64'),
  f32: classesFor('f32'),
};

/** The task classes for an element type. */
export function luClasses<E extends Real>(element: E): LuClasses<E> {
  return CLASSES[element] as unknown as LuClasses<E>;
}
