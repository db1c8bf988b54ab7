// Random programs on several ranks that repeat their runs, against the same tasks in runs that are never recognised. Reports problems, and
// how many runs were played. Argument: JSON with `seeds`, `first`, and more options of the runtime.
import { setImmediate } from 'node:timers/promises';
import { Runtime, readWrite, task } from '../../../dist/index.js';
import { axpy, fill, random } from './random-tasks.mjs';
import { report } from './report.mjs';

const { seeds = 10, first = 1, ...more } = JSON.parse(process.argv[2] ?? '{}');
const check = task({
  name: 'check',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});
const ROUNDS = 14;

const problems = [];
let played = 0;
let [rank, ranks] = [0, 0];
for (let seed = first; seed < first + seeds; seed++) {
  // A runtime that has seen many runs that do not repeat looks at few of the next ones.
  const runtime = await Runtime.create({ workers: 2, gpus: 0, hostMemory: '64MiB', ...more });
  ({ rank, ranks } = runtime);
  const draw = random(seed);
  const count = 2 + draw(6);
  const lengths = Array.from({ length: count }, () => [1, 16, 700, 3000][draw(4)]);
  const owners = lengths.map(() => draw(ranks));
  const steps = Array.from({ length: 48 + draw(40) }, () => ({
    ...{ y: draw(count), x: draw(count), fills: draw(8) === 0, a: 0.25 + draw(8) / 16 },
    options: draw(4) === 0 ? { rank: draw(ranks) } : undefined,
  }));
  const failing = draw(steps.length);
  const make = () =>
    lengths.map((length, d) =>
      runtime.data(new Float64Array(length).fill(d + 1), { rank: owners[d] }),
    );
  const [data, expected] = [make(), make()];
  const insert = (graph, to, value, code) => {
    for (const [n, { y, x, fills, a, options }] of steps.entries()) {
      const length = Math.min(lengths[y], lengths[x]);
      if (fills || x === y) graph.insert(fill, { y: to[y], n: lengths[y], value }, options);
      else graph.insert(axpy, { y: to[y], x: to[x], n: length, a }, options);
      if (n === failing) graph.insert(check, { y: to[y], code });
    }
  };
  const compare = async (when) => {
    for (let d = 0; d < count; d++) {
      const [a, b] = await Promise.all([expected[d].read(), data[d].read()]);
      if (!a.every((value, i) => Object.is(value, b[i])))
        problems.push(`seed ${seed}, ${when}: datum ${d} is ${b[0]} instead of ${a[0]}`);
    }
  };
  for (let k = 0; k < ROUNDS; k++) {
    // What happens besides, and on which rank.
    const what = ['', '', '', '', '', 'waits', 'asks', 'again', 'fails'][draw(9)];
    const who = draw(ranks);
    const fails = what === 'fails' && k > 5;
    // The parameter of the first runs differs, so it is open.
    const code = fails ? 7 : -(k % 2);
    const program = async (graph) => {
      insert(graph, data, k + 0.5, code === -1 ? 0 : code);
      if (what === 'waits' && who === rank) for (let i = 0; i < 5; i++) await setImmediate();
    };
    const run = runtime.run(program);
    if (what === 'asks' && who === rank) runtime.memory();
    if (what === 'again') await runtime.run((graph) => insert(graph, data, k + 0.25, 0));
    const outcome = await run.then(
      ({ recognition }) => recognition,
      ({ code: of }) => of,
    );
    if (outcome === 'played') played++;
    if (fails) {
      if (outcome !== 'ERR_TASK_FAILED' && outcome !== 'ERR_PEER_FAILED')
        problems.push(`seed ${seed}, round ${k}: ${outcome} instead of a failure`);
      for (let d = 0; d < count; d++) {
        data[d].set(new Float64Array(lengths[d]).fill(k + d));
        expected[d].set(new Float64Array(lengths[d]).fill(k + d));
      }
      continue;
    }
    // A pruned run is not recognised.
    await runtime.run(
      (graph) => {
        insert(graph, expected, k + 0.5, 0);
        if (what === 'again') insert(graph, expected, k + 0.25, 0);
      },
      { pruned: true },
    );
    if (draw(4) === 0) await compare(`round ${k}`);
  }
  await compare('at the end');
  await runtime.close();
}
report(rank, { ranks, problems, played });
