// Task classes of the method of conjugate gradients, over native/kernels/gradients.cpp.
//
// Their kernels exist for hosts and emulated GPUs. A kernel of a CUDA GPU gets its parameters by value, and here they are data. So where GPUs are
// CUDA GPUs these tasks run on the host.
import {
  type Flow,
  list,
  read,
  readWrite,
  type TaskClass,
  task,
  write,
} from '../scheduler/index.js';
import type { Real } from './tile-classes.js';

type Read<E extends Real> = Flow<E, 'read'>;
type Write<E extends Real> = Flow<E, 'write'>;
type Rows<E extends Real> = Read<E> & { readonly list: true };

const AXPBY = { count: 'i32', alpha: 'f64', beta: 'f64' } as const;
const FIVE_POINT = {
  rows: 'i32',
  columns: 'i32',
  centre: 'f64',
  horizontal: 'f64',
  vertical: 'f64',
} as const;
const EDGES = { rows: 'i32', columns: 'i32' } as const;

interface VectorClasses<E extends Real> {
  /** y := alpha x + beta y. */
  readonly axpby: TaskClass<
    { readonly y: Flow<E, 'readWrite'>; readonly x: Read<E> },
    typeof AXPBY
  >;
  /** y := alpha x, with beta = 0. */
  readonly scaled: TaskClass<{ readonly y: Write<E>; readonly x: Read<E> }, typeof AXPBY>;
  /** A five-point stencil on a block of rows, with the row above and the row below if there are any. */
  readonly fivePoint: TaskClass<
    {
      readonly to: Write<E>;
      readonly from: Read<E>;
      readonly above: Rows<E>;
      readonly below: Rows<E>;
    },
    typeof FIVE_POINT
  >;
  /** Copies of the first and the last row of a block. */
  readonly edges: TaskClass<
    { readonly first: Write<E>; readonly last: Write<E>; readonly from: Read<E> },
    typeof EDGES
  >;
}

function classesFor<E extends Real>(e: E): VectorClasses<E> {
  const vectors = { x: read(e) };
  const [to, from, row] = [write(e), read(e), list(read(e)) as Rows<E>];
  return {
    axpby: task({
      name: 'axpby',
      flows: { y: readWrite(e), ...vectors },
      params: AXPBY,
      kernel: `axpby_${e}`,
    }),
    scaled: task({
      name: 'scaled',
      flows: { y: write(e), ...vectors },
      params: AXPBY,
      kernel: `axpby_${e}`,
    }),
    fivePoint: task({
      name: 'five points',
      flows: { to, from, above: row, below: row },
      params: FIVE_POINT,
      kernel: `five_point_${e}`,
    }),
    edges: task({
      name: 'edge rows',
      flows: { first: to, last: to, from },
      params: EDGES,
      kernel: `edge_rows_${e}`,
    }),
  };
}

const CLASSES: { readonly f64: VectorClasses<'f64'>; readonly f32: VectorClasses<'f32'> } = {
  f64: classesFor('f64'),
  f32: classesFor('f32'),
};

/** The task classes on vectors of an element type. */
export function vectorClasses<E extends Real>(element: E): VectorClasses<E> {
  return CLASSES[element] as unknown as VectorClasses<E>;
}

type Number = Flow<'f64', 'write'>;
type Update = Flow<'f64', 'readWrite'>;
type Parts = Flow<'f64', 'read'> & { readonly list: true };
const GOAL = { goal: 'f64' } as const;
const number: Number = write('f64');
const parts = list(read('f64')) as Parts;

/** The sum of a list of numbers, from left to right. */
export const sum: TaskClass<
  { readonly to: Number; readonly parts: Parts },
  Record<never, never>
> = task({ name: 'sum of parts', flows: { to: number, parts }, kernel: 'parts_sum' });

type StepFlows = {
  readonly alpha: Number;
  readonly minus: Number;
  readonly iterations: Update;
  readonly rr: Flow<'f64', 'read'>;
  readonly parts: Parts;
};

/** alpha := r^T r / p^T A p, from the parts of p^T A p; `minus` is -alpha. Both are 0 once r^T r is at most the goal. */
export const step: TaskClass<StepFlows, typeof GOAL> = task({
  name: 'step',
  flows: { alpha: number, minus: number, iterations: readWrite('f64'), rr: read('f64'), parts },
  params: GOAL,
  kernel: 'cg_step',
  failureCode: 'ERR_NOT_POSITIVE_DEFINITE',
  explain: (iteration, { data }) =>
    `the matrix is not positive definite: p^T A p is not positive in iteration ${iteration} ('${data.alpha}')`,
});

/** beta := the new r^T r, from its parts, / the old one, and keeps the new one. Once it is at most the goal, it stays and beta is 0. */
export const turn: TaskClass<
  { readonly beta: Number; readonly rr: Update; readonly parts: Parts },
  typeof GOAL
> = task({
  name: 'turn',
  flows: { beta: number, rr: readWrite('f64'), parts },
  params: GOAL,
  kernel: 'cg_turn',
});
