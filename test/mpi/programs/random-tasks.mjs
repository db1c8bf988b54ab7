// What random programs on several ranks are made of.
import { read, readWrite, task, write } from '../../../dist/index.js';

/** y := y + a x. */
export const axpy = task({
  name: 'axpy',
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});
export const fill = task({
  name: 'fill',
  flows: { y: write('f64') },
  params: { n: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});

/** Draws integers from 0 to n - 1. */
export function random(seed) {
  let state = seed * 2654435761 + 12345;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return Math.floor(((state >>> 0) / 2 ** 32) * n);
  };
}
