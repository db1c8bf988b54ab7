// A ring of tasks, planned and played on several ranks. Argument: JSON with the condition on tile 0, or nothing.
import { Runtime, read, readWrite, task } from '../../../dist/index.js';
import { report } from './report.mjs';

const axpy = task({
  name: 'axpy',
  flows: { y: readWrite('f64'), x: read('f64') },
  params: { n: 'i32', a: 'f64' },
  kernel: 'add_f64',
});
const runtime = await Runtime.create({ workers: 1 });
const { rank, ranks } = runtime;
const tiles = Array.from({ length: ranks }, (_, r) =>
  runtime.data(new Float64Array(8).fill(r), { name: `tile ${r}`, rank: r }),
);
const plan = await runtime.plan((graph) => {
  for (let r = 0; r < ranks; r++)
    graph.insert(axpy, { y: tiles[(r + 1) % ranks], x: tiles[r], n: 8, a: 0.5 });
});
const condition = JSON.parse(process.argv[2] ?? 'null');
const { iterations } = await plan.run({
  times: 40,
  ...(condition === null ? {} : { while: { datum: tiles[0], ...condition } }),
});
await runtime.close();
report(rank, { ...plan.report.messages, tasks: plan.report.tasks, iterations });
