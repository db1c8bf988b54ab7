// Programs that grow from bodies on every rank, in a small window: `{ what, overflow }`.
import { Runtime, read, readWrite, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const { what, overflow } = JSON.parse(process.argv[2]);
const runtime = await Runtime.create({ workers: 1, window: 16, overflow });
const { rank, ranks } = runtime;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const everyRank = Array.from({ length: ranks }, (_, r) => r);
const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32' },
  kernel: 'add_f64',
});

const programs = {
  /** A loop that does not await fills the window with asynchronous bodies of its own. */
  async full() {
    let ran = 0;
    // No timer fires while the loop inserts, so that no body ends within it.
    const slow = task({ name: 'slow', flows: {}, body: () => pause(1).then(() => void ran++) });
    await runtime.run((graph) => {
      for (let i = 0; i < 100; i++) for (const r of everyRank) graph.insert(slow, {}, { rank: r });
    });
    return { ran };
  },
  /** A loop fills the window with tasks that wait for asynchronous bodies of both ranks, in turn. */
  async turns() {
    const sum = (from, to) => {
      to[0] = (to[0] + from[0]) % 97;
    };
    const flows = { from: read('f64'), to: readWrite('f64') };
    const now = task({ name: 'now', flows, body: ({ from, to }) => sum(from, to) });
    const later = task({
      name: 'later',
      flows,
      body: async ({ from, to }) => {
        await null;
        sum(from, to);
      },
    });
    const data = [0, 1, 2, 3].map((i) => runtime.data(Float64Array.of(1), { rank: i % ranks }));
    const plain = data.map(() => [1]);
    await runtime.run((graph) => {
      for (let i = 0; i < 60; i++) {
        const [from, to] = [(3 * i + 1) % 4, (3 * i) % 4];
        graph.insert(i % 3 ? now : later, { from: data[from], to: data[to] });
        sum(plain[from], plain[to]);
      }
    });
    const values = await Promise.all(data.map((d) => d.read()));
    return { values: values.map(([value], i) => value === plain[i][0]) };
  },
  /** Each rank grows a tree, while data go to and fro between the ranks. */
  async tree() {
    let ran = 0;
    let graph;
    const node = task({
      name: 'node',
      flows: {},
      params: { left: 'i32' },
      body: ({ left }) => {
        ran++;
        for (let i = 0; i < 2 && left > 1; i++) graph.insert(node, { left: left - 1 }, { rank });
      },
    });
    const data = everyRank.map((r) => runtime.data(new Float64Array([1]), { rank: r }));
    await runtime.run((g) => {
      graph = g;
      for (const r of everyRank) graph.insert(node, { left: 12 }, { rank: r });
      for (let i = 0; i < 200; i++) {
        for (const r of everyRank)
          graph.insert(add, { to: data[r], from: data[(r + 1) % ranks], count: 1 });
      }
    });
    return { ran, values: await Promise.all(data.map(async (d) => (await d.read())[0] > 1)) };
  },
  /** Parents await tasks that they insert behind an `await`, while the program continues to insert on all ranks. */
  async parents() {
    let graph;
    const sum = task({
      name: 'sum',
      flows: { out: write('f64') },
      params: { left: 'i32' },
      body: async ({ out, left }) => {
        // It inserts behind its first await.
        await pause(0);
        out[0] = 1;
        if (left === 1) return;
        const children = [runtime.data('f64', 1), runtime.data('f64', 1)];
        for (const child of children) graph.insert(sum, { out: child, left: left - 1 });
        await graph.space();
        for (const child of children) out[0] += (await child.read())[0];
        for (const child of children) child.close();
      },
    });
    const roots = everyRank.map((r) => runtime.data('f64', 1, { rank: r }));
    const data = everyRank.map((r) => runtime.data(new Float64Array([1]), { rank: r }));
    await runtime.run(async (g) => {
      graph = g;
      for (const r of everyRank) graph.insert(sum, { out: roots[r], left: 8 });
      for (let i = 0; i < 100; i++) {
        for (const r of everyRank)
          graph.insert(add, { to: data[r], from: data[(r + 1) % ranks], count: 1 });
        if (i % 10 === 0) await graph.space();
      }
    });
    return { values: await Promise.all(roots.map(async (root) => (await root.read())[0])) };
  },
};

let result;
try {
  result = await programs[what]();
} catch (error) {
  result = { code: error.code, message: error.message };
}
report(rank, result);
await runtime.close();
