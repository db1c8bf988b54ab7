// Reductions on several ranks: every rank runs this program. Argument: what to do, as JSON.
import { Runtime, read, readWrite, reduce, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const given = JSON.parse(process.argv[2]);
const runtime = await Runtime.create({
  workers: 1,
  hostMemory: '64MiB',
  checked: true,
  ...given.options,
});
const { rank, ranks } = runtime;
const add = task({
  name: 'add',
  flows: { total: reduce('f64', 'sum'), from: read('f64') },
  params: { count: 'f64', factor: 'f64' },
  kernel: 'add_f64',
});
const largest = task({
  name: 'largest',
  flows: { most: reduce('i32', 'max') },
  params: { value: 'i32' },
  body: ({ most, value }) => {
    most[0] = Math.max(most[0], value);
  },
});
const double = task({
  name: 'double',
  flows: { x: readWrite('f64') },
  body: ({ x }) => {
    for (let i = 0; i < x.length; i++) x[i] *= 2;
  },
});
const clear = task({ name: 'clear', flows: { x: write('f64') }, body: ({ x }) => void x.fill(0) });
const fail = task({
  name: 'fail',
  flows: { total: reduce('f64', 'sum') },
  body: () => {
    throw new Error('no contribution');
  },
});
const codeOf = (promise) =>
  promise.then(
    () => 'none',
    (error) => error.code,
  );

/** The sum of values, each on the rank with the number beside it, in the documented order. */
function sumInOrder(first, home, values) {
  const sums = new Map([[home, [first]]]);
  const used = new Map();
  for (const [value, on] of values) {
    const at = used.get(on) ?? 0;
    used.set(on, at + 1);
    const list = sums.get(on) ?? [];
    sums.set(on, list);
    list[at % 8] = (list[at % 8] ?? -0) + value;
  }
  const tree = (list) => {
    for (let step = 1; step < list.length; step *= 2)
      for (let i = 0; i + step < list.length; i += 2 * step) list[i] += list[i + step];
    return list[0];
  };
  const others = [...sums.keys()].filter((r) => r !== home).sort((a, b) => a - b);
  return tree([home, ...others].map((r) => tree(sums.get(r))));
}

const length = given.length ?? 1;
const programs = {
  /** Sums whose operands lie on all ranks: one partial result of each rank travels. */
  async sums() {
    const home = ranks - 1;
    const inputs = Array.from({ length: 40 }, (_, i) =>
      runtime.data(new Float64Array(length).fill(Math.sin(i) * 10 ** (i % 7)), {
        rank: (3 * i + (i >> 3)) % ranks,
      }),
    );
    const total = runtime.data(new Float64Array(length), { rank: home, name: 'total' });
    const results = [];
    let traffic = 0;
    for (let round = 0; round < 3; round++) {
      const result = await runtime.run(async (graph) => {
        graph.insert(clear, { x: total });
        for (const from of inputs) graph.insert(add, { total, from, count: length, factor: 1 });
        if (round === 1) await graph.value(total);
        graph.insert(double, { x: total });
        for (const from of inputs) graph.insert(add, { total, from, count: length, factor: 1 });
      });
      if (round === 0) traffic = result.network.sends;
      results.push((await total.read())[length - 1]);
    }
    const values = inputs.map((_, i) => [Math.sin(i) * 10 ** (i % 7), (3 * i + (i >> 3)) % ranks]);
    const once = 2 * sumInOrder(0, home, values);
    return { results, expected: sumInOrder(once, home, values), traffic };
  },
  /** A task names its rank; the datum's rank has none. */
  async elsewhere() {
    const most = runtime.data(Int32Array.of(-1), { rank: 0, name: 'most' });
    await runtime.run((graph) => {
      for (let value = 0; value < 50; value++)
        graph.insert(largest, { most, value }, { rank: 1 + (value % (ranks - 1)) });
    });
    return { results: [(await most.read())[0]], expected: 49 };
  },
  /** Runs that fail on one rank, at another task on every rank; then a reduction that succeeds. */
  async failing() {
    const total = runtime.data(new Float64Array(1), { rank: 0, name: 'total' });
    const one = Array.from({ length: ranks }, (_, r) =>
      runtime.data(Float64Array.of(1), { rank: r }),
    );
    const codes = [];
    for (let round = 0; round < 5; round++) {
      const run = runtime.run(async (graph) => {
        for (let i = 0; i < 200; i++) {
          if (i === 40 + 20 * round) graph.insert(fail, { total }, { rank: round % ranks });
          graph.insert(add, { total, from: one[i % ranks], count: 1, factor: 1 });
          if (i % 50 === 49) await graph.space();
        }
      });
      codes.push(await codeOf(run.done));
      // A rank that learned of the failure before its run began has inserted nothing: the datum is as it was.
      const value = await total.read().catch((error) => error.code);
      codes.push(value[0] === round ? 'unchanged' : String(value));
      await total.set(Float64Array.of(round + 1));
    }
    // The ranks agree on the names of data that are made now.
    const later = runtime.data(Float64Array.of(1), { rank: ranks - 1 });
    await runtime.run((graph) => {
      for (let i = 0; i < 100; i++)
        graph.insert(add, { total, from: one[i % ranks], count: 1, factor: 1 });
      graph.insert(add, { total: later, from: total, count: 1, factor: 1 });
    });
    return {
      results: [(await total.read())[0], (await later.read())[0] - 1],
      expected: 105,
      codes,
    };
  },
  /** What several ranks refuse. */
  async refused() {
    const total = runtime.data(Float64Array.of(1), { rank: 0, name: 'total' });
    const one = runtime.data(Float64Array.of(1), { rank: 0 });
    const pruned = runtime.run(
      (graph) => {
        if (!graph.skips(total)) graph.insert(add, { total, from: one, count: 1, factor: 1 });
      },
      { pruned: true },
    );
    const codes = [await codeOf(pruned.done)];
    return { results: [(await total.read())[0]], expected: 1, codes };
  },
};
const outcome = await programs[given.what]();
await runtime.engine.quiet();
report(rank, { ...outcome, pinned: runtime.memory().map(({ pinned }) => pinned) });
await runtime.close();
