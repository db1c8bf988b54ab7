// Merge sort: a task that sorts a long list spawns the tasks that sort its halves and merge them. Bodies that compute run on all cores
// (merge-sort-classes.ts); only the body that spawns runs here.
import { Runtime, readWrite, task } from 'headrace';
import { merge, sortLeaf, split } from './support/merge-sort-classes.js';

const [LENGTH, LEAF] = [1_000_000, 50_000];

const sort = task({
  name: 'sort',
  flows: { x: readWrite('f64') },
  body: ({ x }, { data, spawn, temporary }) => {
    if (x.length <= LEAF) {
      spawn(sortLeaf, { x: data.x });
      return;
    }
    const half = x.length >> 1;
    const [left, right] = [temporary('f64', half), temporary('f64', x.length - half)];
    spawn(split, { from: data.x, left, right });
    spawn(sort, { x: left });
    spawn(sort, { x: right });
    spawn(merge, { left, right, to: data.x });
  },
});

const values = Float64Array.from({ length: LENGTH }, (_, i) => Math.sin(i * i));
await using runtime = await Runtime.create({ scriptWorkers: 2, hostMemory: '256MiB' });
const x = runtime.data(values, { name: 'x' });
const report = await runtime.run((graph) => {
  graph.insert(sort, { x });
});
const sorted = await x.read();

const start = performance.now();
const plain = values.slice().sort();
const milliseconds = performance.now() - start;
console.log(`${report.tasks} tasks, ${(report.seconds * 1000).toFixed(0)} ms`);
console.log(`the sort of typed arrays takes ${milliseconds.toFixed(0)} ms`);
console.log(sorted.every((value, i) => value === plain[i]) ? 'the same order' : 'another order');
