// The task classes of merge-sort.ts whose bodies run on all cores: script workers load this module.
import { type Flow, read, readWrite, type TaskClass, task, write } from 'headrace';

type Read = Flow<'f64', 'read'>;
type Write = Flow<'f64', 'write'>;
type None = Record<never, never>;

export const sortLeaf: TaskClass<{ x: Flow<'f64', 'readWrite'> }, None> = task({
  name: 'sortLeaf',
  module: import.meta.url,
  flows: { x: readWrite('f64') },
  body: ({ x }) => void x.sort(),
});

export const split: TaskClass<{ from: Read; left: Write; right: Write }, None> = task({
  name: 'split',
  module: import.meta.url,
  flows: { from: read('f64'), left: write('f64'), right: write('f64') },
  body: ({ from, left, right }) => {
    left.set(from.subarray(0, left.length));
    right.set(from.subarray(left.length));
  },
});

export const merge: TaskClass<{ left: Read; right: Read; to: Write }, None> = task({
  name: 'merge',
  module: import.meta.url,
  flows: { left: read('f64'), right: read('f64'), to: write('f64') },
  body: ({ left, right, to }) => {
    let [i, j] = [0, 0];
    for (let k = 0; k < to.length; k++)
      to[k] =
        j === right.length || (i < left.length && left[i] <= right[j]) ? left[i++] : right[j++];
  },
});
