// Common parts of the oracles of the grid: task classes whose kernels run on host workers and GPUs alike, and places for
// data. An oracle is an async function of a world that returns { problems, report, ... }; every rank calls it.
import { read, readWrite, task, write } from '../../../../dist/index.js';

/** When inputs of other ranks are asked for. */
export const { fetch = 'push' } = JSON.parse(process.argv[2] ?? '{}');
/** Elements of a tile: more than travels in an announcement when little does, less than when much does. */
export const COUNT = 256;

export const fill = task({
  name: 'fill',
  fetch,
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
export const add = task({
  name: 'add',
  fetch,
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32' },
  kernel: 'add_f64',
});
export const copy = task({
  name: 'copy',
  fetch,
  flows: { to: write('f64'), from: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
export const copyWords = task({
  name: 'copy words',
  fetch,
  flows: { to: write('i32'), from: read('i32') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});

/** A world: the runtime, this rank, and the devices of each rank. */
export function worldOf(runtime) {
  const { rank, ranks } = runtime;
  const gpus = runtime.gpus.length;
  return {
    runtime,
    rank,
    ranks,
    gpus,
    /** The host, then the GPUs, by the names that `device` takes. */
    places: ['host', ...Array.from({ length: gpus }, (_, g) => g)],
    /** Where the i-th piece of data lives: ranks in turn, their devices in turn. */
    home: (i) => ({
      rank: i % ranks,
      ...(gpus > 0 ? { device: Math.floor(i / ranks) % gpus } : {}),
    }),
    tile: (name, rank, options = {}) => runtime.data('f64', COUNT, { name, rank, ...options }),
  };
}

export const allEqual = (values, expected) => values.every((v) => v === expected);

/** Deterministic numbers from 0 to 1: a 32-bit linear congruential generator. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Collects problems, at most a few. */
export function collector() {
  const problems = [];
  return {
    problems,
    check(isRight, say) {
      if (!isRight && problems.length < 5) problems.push(say());
    },
  };
}

/** Closes data on all ranks. */
export function closeAll(...lists) {
  for (const datum of lists.flat(2)) datum.close();
}
