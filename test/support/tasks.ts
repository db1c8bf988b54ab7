// Small task classes that many tests use. Native ones run on host workers and emulated GPUs alike.
import { type Flow, read, readWrite, type TaskClass, task, write } from '../../index.js';

type Read = Flow<'f64', 'read'>;
type Write = Flow<'f64', 'write'>;
type Update = Flow<'f64', 'readWrite'>;

/** to[i] = value. */
export const fill: TaskClass<
  { readonly to: Write },
  { readonly count: 'i32'; readonly value: 'f64' }
> = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
/** to[i] += from[i]. */
export const add: TaskClass<
  { readonly to: Update; readonly from: Read },
  { readonly count: 'i32' }
> = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32' },
  kernel: 'add_f64',
});
/** The first `bytes` bytes of `from`, which are all of `to`. */
export const copy: TaskClass<
  { readonly to: Write; readonly from: Read },
  { readonly bytes: 'i32' }
> = task({
  name: 'copy',
  flows: { to: write('f64'), from: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
/** Keeps an executor busy with a datum that it leaves as it is, but might have changed. */
export const delay: TaskClass<{ readonly of: Update }, { readonly microseconds: 'f64' }> = task({
  name: 'delay',
  flows: { of: readWrite('f64') },
  params: { microseconds: 'f64' },
  kernel: 'spin',
});
/** Reads a datum for a while. */
export const look: TaskClass<{ readonly at: Read }, { readonly microseconds: 'f64' }> = task({
  name: 'look',
  flows: { at: read('f64') },
  params: { microseconds: 'f64' },
  kernel: 'spin',
});
/** Keeps an executor busy, without data. */
export const spin: TaskClass<Record<never, never>, { readonly microseconds: 'f64' }> = task({
  name: 'spin',
  flows: {},
  params: { microseconds: 'f64' },
  kernel: 'spin',
});
/** Returns a failure code. */
export const fail: TaskClass<{ readonly of: Update }, { readonly code: 'i32' }> = task({
  name: 'fail',
  flows: { of: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});

/** A task class with a JavaScript body and one datum that it changes. */
export function script(
  name: string,
  body: (values: Float64Array) => void | PromiseLike<void>,
): TaskClass<{ readonly of: Update }, Record<never, never>> {
  return task({ name, flows: { of: readWrite('f64') }, body: ({ of }) => body(of) });
}

/** Deterministic numbers from 0 to 1: a 32-bit linear congruential generator. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The numbers 0..n-1 in random order. */
export function permutation(n: number, seed: number): number[] {
  const next = random(seed);
  const order = Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** Adds a times the first n elements of x to those of y. */
export const axpy: TaskClass<
  { readonly y: Update; readonly x: Read },
  { readonly n: 'i32'; readonly a: 'f64' }
> = task({
  name: 'axpy',
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});
