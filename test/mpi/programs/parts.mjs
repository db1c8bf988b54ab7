// Parts of data on several ranks: every rank runs this program. Argument: what to do, as JSON.
import { list, Runtime, read, reduce, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const given = JSON.parse(process.argv[2]);
const runtime = await Runtime.create({
  workers: 1,
  hostMemory: '64MiB',
  checked: true,
  ...given.options,
});
const { rank, ranks } = runtime;
const codeOf = (promise) =>
  promise.then(
    () => 'none',
    (error) => error.code,
  );
const fill = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const fail = task({
  name: 'fail',
  flows: { to: write('f64') },
  body: () => {
    throw new Error('no value');
  },
});

const programs = {
  /** The heat equation on blocks of rows, one per rank; only edge rows travel. */
  async heat() {
    const [rows, columns, steps] = [8, given.columns ?? 32, 20];
    const size = rows * columns;
    const row = list(read('f64'));
    const heat = task({
      name: 'heat',
      flows: { to: write('f64'), from: read('f64'), above: row, below: row },
      params: { rows: 'i32', columns: 'i32', centre: 'f64', horizontal: 'f64', vertical: 'f64' },
      kernel: 'five_point_f64',
    });
    const begin = Float64Array.from({ length: ranks * size }, (_, i) => (i * 37) % 101);
    const blocks = () =>
      Array.from({ length: ranks }, (_, r) =>
        runtime.data(begin.slice(r * size, (r + 1) * size), { rank: r }),
      );
    let [now, next] = [blocks(), blocks()];
    const share = 0.2;
    const numbers = { rows, columns, centre: 1 - 4 * share, horizontal: share, vertical: share };
    const result = await runtime.run((graph) => {
      for (let step = 0; step < steps; step++) {
        for (const [b, from] of now.entries()) {
          const above = now
            .slice(Math.max(0, b - 1), b)
            .map((block) => block.part(size - columns, columns));
          const below = now.slice(b + 1, b + 2).map((block) => block.part(0, columns));
          graph.insert(heat, { to: next[b], from, above, below, ...numbers });
        }
        [now, next] = [next, now];
      }
    });
    let plain = begin;
    for (let step = 0; step < steps; step++)
      plain = plain.map((value, i, old) => {
        const [left, right] = [i % columns && old[i - 1], (i + 1) % columns && old[i + 1]];
        const sum = left + right + (old[i - columns] ?? 0) + (old[i + columns] ?? 0);
        return value + share * (sum - 4 * value);
      });
    const values = (await Promise.all(now.map((block) => block.read()))).flatMap((v) => [...v]);
    const worst = Math.max(...values.map((value, i) => Math.abs(value - plain[i])));
    const neighbours = (rank > 0 ? 1 : 0) + (rank < ranks - 1 ? 1 : 0);
    return {
      worst,
      sent: result.network.sentBytes,
      edges: steps * neighbours * columns * 8,
    };
  },
  /** Sums into parts that overlap: half of them in runs, half in plays. */
  async sums() {
    const summed = task({
      name: 'summed',
      flows: { to: reduce('f64', 'sum'), from: read('f64') },
      params: { count: 'i32' },
      kernel: 'add_f64',
    });
    const [length, tasks, rounds] = [1000, 40, 5];
    const x = runtime.data(new Float64Array(length), { name: 'x', rank: ranks - 1 });
    const ones = Array.from({ length: ranks }, (_, r) =>
      runtime.data(new Float64Array(600).fill(1), { rank: r }),
    );
    const insert = (graph) => {
      for (const from of [0, 300])
        for (let i = 0; i < tasks; i++) {
          const args = { to: x.part(from, 600), from: ones[i % ranks], count: 600 };
          graph.insert(summed, args, { rank: i % ranks });
        }
    };
    const plan = await runtime.plan(insert);
    for (let round = 0; round < rounds; round++) {
      await runtime.run(insert);
      await plan.run();
    }
    plan.close();
    const each = 2 * rounds * tasks;
    const wrong = (value, i) =>
      value !== (i < 300 || (i >= 600 && i < 900) ? each : i < 600 ? 2 * each : 0);
    return { seen: [...(await x.read())].filter(wrong) };
  },
  /** Runs that fail at another task on every rank; then all ranks know the same. */
  async failing() {
    const x = runtime.data(new Float64Array(100), { name: 'x' });
    const parts = Array.from({ length: ranks }, (_, r) => x.part(10 * r, 15));
    const seen = [];
    for (let round = 0; round < 6; round++) {
      const run = runtime.run(async (graph) => {
        for (let i = 0; i < 100; i++) {
          const to = parts[i % ranks];
          if (i === 40 + 5 * round) graph.insert(fail, { to }, { rank: round % ranks });
          graph.insert(fill, { to, count: 15, value: i }, { rank: (i >> 2) % ranks });
          if (i % 20 === 19) await graph.space();
        }
      });
      const code = await codeOf(run.done);
      if (code !== 'ERR_TASK_FAILED' && code !== 'ERR_PEER_FAILED') seen.push(code);
      await x.set(new Float64Array(100).fill(round));
      await runtime.run((graph) => {
        for (const [r, to] of parts.entries())
          graph.insert(fill, { to, count: 15, value: round + r }, { rank: r });
      });
      const values = [...(await x.read())];
      const last = 10 * (ranks - 1);
      for (const [i, value] of values.entries()) {
        const r = i < last + 15 ? Math.min(ranks - 1, Math.floor(i / 10)) : 0;
        if (value !== round + r) seen.push(`${round}: x[${i}] = ${value}`);
      }
    }
    return { seen };
  },
};
const outcome = await programs[given.what]();
await runtime.engine.quiet();
report(rank, { ...outcome, pinned: runtime.memory().map(({ pinned }) => pinned) });
await runtime.close();
