// Task classes of the benchmark of script workers. They load this module.
import { type Flow, readWrite, type TaskClass, task } from '../index.js';

/** Multiplications and additions that depend on each other. */
export function work(iterations: number): number {
  let x = 1;
  for (let i = 0; i < iterations; i++) x = x * 1.0000001 + 1e-9;
  return x;
}

type Changed = Flow<'f64', 'readWrite'>;

const { url } = import.meta;
export const computes: TaskClass<{ readonly x: Changed }, { readonly iterations: 'i32' }> = task({
  name: 'computes',
  module: url,
  flows: { x: readWrite('f64') },
  params: { iterations: 'i32' },
  body: ({ x, iterations }) => {
    x[0] = work(iterations);
  },
});
export const nothing: TaskClass<{ readonly x: Changed }, Record<never, never>> = task({
  name: 'nothing',
  module: url,
  flows: { x: readWrite('f64') },
  body: () => {},
});
