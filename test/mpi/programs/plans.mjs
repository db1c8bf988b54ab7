// Random programs on several ranks: planned and played, against the same tasks inserted as often. Reports problems.
// Argument: JSON with `seeds`, `first`, `gpus`, `folder`, and more options of the runtime. With `folder` the plans are saved there, and
// what is played are the loaded ones.
import path from 'node:path';
import { Runtime, slot } from '../../../dist/index.js';
import { axpy, fill, random } from './random-tasks.mjs';
import { report } from './report.mjs';

const { seeds = 10, first = 1, gpus = 0, folder, ...more } = JSON.parse(process.argv[2] ?? '{}');

/** The tasks of a seed, as functions of a graph and the data. */
function programOf(seed, ranks) {
  const draw = random(seed);
  const count = 2 + draw(6);
  const lengths = Array.from({ length: count }, () => [1, 16, 700, 3000][draw(4)]);
  const owners = lengths.map(() => draw(ranks));
  const steps = Array.from({ length: 3 + draw(20) }, () => ({
    y: draw(count),
    x: draw(count),
    fills: draw(8) === 0,
    a: 0.25 + draw(8) / 16,
    rank: draw(6) === 0 ? draw(ranks) : undefined,
    device: gpus > 0 ? [undefined, 'host', 0][draw(3)] : undefined,
  }));
  const insert = (graph, data, open) => {
    for (const { y, x, fills, a, rank, device } of steps) {
      const n = Math.min(lengths[y], lengths[x]);
      const options = { rank, device };
      if (fills || x === y)
        graph.insert(fill, { y: data[y], n: lengths[y], value: open ?? a }, options);
      else graph.insert(axpy, { y: data[y], x: data[x], n, a }, options);
    }
  };
  const make = (runtime) =>
    lengths.map((length, d) =>
      runtime.data(new Float64Array(length).fill(d + 1), { name: `d${d}`, rank: owners[d] }),
    );
  const repeats = [1 + draw(4), 1 + draw(4)];
  const isOpen = steps.some(({ y, x, fills }) => fills || x === y);
  return { insert, make, repeats, isOpen, steps };
}

const runtime = await Runtime.create({
  workers: 2,
  gpus,
  gpuMemory: '16MiB',
  hostMemory: '64MiB',
  checked: true,
  ...more,
});
const { rank, ranks } = runtime;
const problems = [];
const totals = { tasks: 0, messages: 0 };
for (let seed = first; seed < first + seeds; seed++) {
  const { insert, make, repeats, isOpen, steps } = programOf(seed, ranks);
  const expected = make(runtime);
  const data = make(runtime);
  const made = await runtime.plan((graph) => insert(graph, data, slot('value')), {
    name: `p${seed}`,
  });
  let plan = made;
  if (folder !== undefined) {
    const file = path.join(folder, `p${seed}.${rank}.plan`);
    await made.save(file);
    made.close();
    plan = await runtime.loadPlan(file, { data, classes: [axpy, fill] });
    const figures = ({ report }) => JSON.stringify({ ...report, planning: 0 });
    if (figures(made) !== figures(plan)) problems.push(`seed ${seed}: another report`);
  }
  totals.tasks += plan.report.tasks;
  totals.messages += plan.report.messages.sent;
  for (const times of repeats) {
    await runtime.run((graph) => {
      for (let k = 0; k < times; k++) insert(graph, expected, k + 0.5);
    });
    const values = isOpen ? { value: (k) => k + 0.5 } : {};
    const { iterations } = await plan.run({ times, values });
    if (iterations !== times) problems.push(`seed ${seed}: ${iterations} iterations of ${times}`);
    for (let d = 0; d < data.length; d++) {
      const [a, b] = await Promise.all([expected[d].read(), data[d].read()]);
      if (!a.every((value, i) => Object.is(value, b[i])))
        problems.push(`seed ${seed}: datum ${d} is ${b[0]} instead of ${a[0]}`);
    }
    // Tasks between plays.
    await runtime.run((graph) => {
      insert(graph, expected, 1);
      insert(graph, data, 1);
    });
  }
  // Until a condition no longer holds: what all ranks look at is what they would read.
  const { y } = steps[steps.length - 1];
  const every = 1 + (seed % 3);
  const limit = seed % 2 === 0 ? { below: 1e6 } : { above: 1e6 };
  const holds = (value) => (seed % 2 === 0 ? value < 1e6 : value > 1e6);
  let looked = 0;
  do {
    for (let k = 0; k < every; k++, looked++)
      await runtime.run((graph) => insert(graph, expected, looked + 0.5));
  } while (looked < 12 && holds((await expected[y].read())[0]));
  const { iterations } = await plan.run({
    times: 12,
    values: isOpen ? { value: (k) => k + 0.5 } : {},
    while: { datum: data[y], every, ...limit },
  });
  if (iterations !== looked) problems.push(`seed ${seed}: ${iterations} iterations, not ${looked}`);
  for (let d = 0; d < data.length; d++) {
    const [a, b] = await Promise.all([expected[d].read(), data[d].read()]);
    if (!a.every((value, i) => Object.is(value, b[i])))
      problems.push(`seed ${seed}: datum ${d} is ${b[0]} instead of ${a[0]} after while`);
  }
  plan.close();
  for (const datum of [...expected, ...data]) datum.close();
}
await runtime.close();
report(rank, { ranks, problems: problems.slice(0, 10), ...totals });
