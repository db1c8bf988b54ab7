// Families of spawned tasks on several ranks: every rank runs this program. Argument: options of the runtime, as JSON.
import { Runtime, read, readWrite, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const given = JSON.parse(process.argv[2]);
const runtime = await Runtime.create({
  workers: 1,
  hostMemory: '64MiB',
  checked: true,
  ...given.options,
});
const { rank, ranks } = runtime;
const length = given.length ?? 1;
const sum = task({
  name: 'sum',
  flows: { to: write('f64'), a: read('f64'), b: read('f64') },
  body: ({ to, a, b }) => to.set(a.map((x, i) => x + b[i])),
});
const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'f64', factor: 'f64' },
  kernel: 'add_f64',
});
/** Counts to n by halves, on temporaries. */
const count = task({
  name: 'count',
  flows: { to: write('f64') },
  params: { n: 'i32', bad: 'i32' },
  body: async ({ to, n, bad }, { data, spawn, temporary }) => {
    to.fill(1);
    if (n === bad) throw new Error('as asked for');
    if (n <= 1) return;
    const into = data.to;
    // Some bodies spawn behind an await: it is known late that they are asynchronous.
    if (n % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    const [a, b] = [temporary('f64', length), temporary('f64', length)];
    spawn(count, { to: a, n: n >> 1, bad });
    spawn(count, { to: b, n: n - (n >> 1), bad });
    spawn(sum, { to: into, a, b });
  },
});
const codeOf = (promise) =>
  promise.then(
    () => 'none',
    (error) => error.code,
  );

const data = Array.from({ length: ranks }, (_, r) => runtime.data('f64', length, { rank: r }));
const total = runtime.data(new Float64Array(length), { rank: ranks - 1, name: 'total' });
const results = [];
const codes = [];
let middle = 0;
for (let round = 0; round < 4; round++) {
  const bad = round === 2 ? 3 : -1;
  const run = runtime.run(async (graph) => {
    for (const [r, to] of data.entries()) graph.insert(count, { to, n: 30 + r, bad });
    for (const from of data) graph.insert(add, { to: total, from, count: length, factor: 1 });
    middle = await graph.value(data[0]).catch(() => -1);
  });
  codes.push(await codeOf(run.done));
  if (round === 2) {
    // A rank that learned of the failure before its run began has inserted nothing: the datum is as it was.
    const before = await data[0].read().catch((error) => error.code);
    codes.push(before[0] === 30 ? 'unchanged' : String(before));
    await total.set(new Float64Array(length));
  } else results.push((await total.read())[length - 1]);
}
// The ranks agree on the names of data that are made now.
const later = runtime.data(Float64Array.of(rank), { rank: ranks - 1 });
results.push((await later.read())[0]);
await runtime.engine.quiet();
report(rank, { results, codes, middle, pinned: runtime.memory().map(({ pinned }) => pinned) });
await runtime.close();
