// Small task classes with JavaScript bodies, which all machines can run, simulated ones included.
import {
  type Flow,
  type OwnOperator,
  read,
  readWrite,
  reduce,
  type TaskClass,
  task,
  write,
} from '../../index.js';

type NoParameters = Record<never, never>;

/** x[i] += 1. */
export const raise: TaskClass<{ readonly x: Flow<'f64', 'readWrite'> }, NoParameters> = task({
  name: 'raise',
  flows: { x: readWrite('f64') },
  body: ({ x }) => {
    for (let i = 0; i < x.length; i++) x[i] += 1;
  },
});
/** x[i] = 0. */
export const zero: TaskClass<{ readonly x: Flow<'f64', 'write'> }, NoParameters> = task({
  name: 'zero',
  flows: { x: write('f64') },
  body: ({ x }) => void x.fill(0),
});
/** to[i] = value. */
export const paint: TaskClass<{ readonly to: Flow<'f64', 'write'> }, { readonly value: 'f64' }> =
  task({
    name: 'paint',
    flows: { to: write('f64') },
    params: { value: 'f64' },
    body: ({ to, value }) => void to.fill(value),
  });
/** to[i] = from[i]. */
export const copyOf: TaskClass<
  { readonly to: Flow<'f64', 'write'>; readonly from: Flow<'f64', 'read'> },
  NoParameters
> = task({
  name: 'copyOf',
  flows: { to: write('f64'), from: read('f64') },
  body: ({ to, from }) => to.set(from),
});
/** The sum, on machines without the kernels of reductions. */
export const summing: OwnOperator = {
  identity: zero,
  combine: task({
    name: 'combine',
    flows: { to: readWrite('f64'), from: read('f64') },
    body: ({ to, from }) => {
      for (let i = 0; i < to.length; i++) to[i] += from[i];
    },
  }),
};
/** Reduces a one into each element of `total`. */
export const countOnRanks: TaskClass<{ readonly total: Flow<'f64', 'reduce'> }, NoParameters> =
  task({
    name: 'countOnRanks',
    flows: { total: reduce('f64', summing) },
    body: ({ total }) => {
      for (let i = 0; i < total.length; i++) total[i] += 1;
    },
  });
