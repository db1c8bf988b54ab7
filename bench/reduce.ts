// Reductions: what a reducing task costs beside the same task without the reduction, and the dot product of two tiled vectors
// beside the bandwidth at which the workers read them.
import { type Datum, Runtime, read, readWrite, reduce, task } from '../index.js';
import { type BenchEntry, log, median } from './harness.js';

const WORKERS = 2;
const TASKS = 100_000;
/** The same number of data as a reduction has partial results. */
const COLUMNS = 8;
const LENGTH = 10_000_000;
const TILE = 250_000;
const REPEATS = 9;

const ONE = { count: 1, factor: 1 };
const reducing = task({
  name: 'reducing',
  flows: { to: reduce('f64', 'sum'), from: read('f64') },
  params: { count: 'f64', factor: 'f64' },
  kernel: 'add_f64',
});
const plain = task({
  name: 'plain',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'f64', factor: 'f64' },
  kernel: 'add_f64',
});
const dot = task({
  name: 'dot',
  flows: { to: reduce('f64', 'sum'), x: read('f64'), y: read('f64') },
  params: { count: 'f64' },
  kernel: 'dot_f64',
});
const dotOnce = task({
  name: 'dot once',
  flows: { to: readWrite('f64'), x: read('f64'), y: read('f64') },
  params: { count: 'f64' },
  kernel: 'dot_f64',
});

async function seconds(run: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await run();
  return (performance.now() - begin) / 1e3;
}

/** Time of `TASKS` tasks that add into one datum, divided by that of tasks that add into one of eight data each, in turn. */
async function overhead(): Promise<BenchEntry[]> {
  await using rt = await Runtime.create({ workers: WORKERS, plans: 'off' });
  const from = rt.data(Float64Array.of(1));
  const total = rt.data(Float64Array.of(0), { name: 'total' });
  const columns = Array.from({ length: COLUMNS }, () => rt.data(Float64Array.of(0)));
  const reduced = (): Promise<unknown> =>
    rt.run((graph) => {
      for (let i = 0; i < TASKS; i++) graph.insert(reducing, { to: total, from, ...ONE });
    }).done;
  const independent = (): Promise<unknown> =>
    rt.run((graph) => {
      for (let i = 0; i < TASKS; i++)
        graph.insert(plain, { to: columns[i % COLUMNS], from, ...ONE });
    }).done;
  const ratios: number[] = [];
  const times: number[] = [];
  for (let i = 0; i < REPEATS + 2; i++) {
    const [a, b] = [await seconds(independent), await seconds(reduced)];
    // The first two compile.
    if (i < 2) continue;
    ratios.push(b / a);
    times.push((b / TASKS) * 1e9);
  }
  const [sum] = await total.read();
  const expected = TASKS * (REPEATS + 2);
  if (sum !== expected) throw new Error(`the sum is ${sum}, not ${expected}`);
  const params = { tasks: TASKS, workers: WORKERS, partials: COLUMNS, repeats: REPEATS };
  log(`reduce: ${median(times).toFixed(0)} ns/task, ${median(ratios).toFixed(2)}x without`);
  return [
    { name: 'reduce/overhead', value: median(ratios), unit: 'ratio', params },
    { name: 'reduce/task', value: median(times), unit: 'ns/task', params },
  ];
}

/** Beside tiles that are reduced: the same tiles with a result of their own each, and halves that a worker reads as a whole. */
async function dotProduct(): Promise<BenchEntry[]> {
  await using rt = await Runtime.create({ workers: WORKERS, hostMemory: '512MiB', plans: 'off' });
  const vectors = (length: number): Datum<'f64'>[] =>
    Array.from({ length: LENGTH / length }, () => rt.data(new Float64Array(length).fill(1)));
  const total = rt.data(Float64Array.of(0), { name: 'total' });
  const plainDot = (length: number): (() => Promise<unknown>) => {
    const [x, y] = [vectors(length), vectors(length)];
    const sums = x.map(() => rt.data(Float64Array.of(0)));
    return () =>
      rt.run((graph) => {
        for (const [i, to] of sums.entries())
          graph.insert(dotOnce, { to, x: x[i], y: y[i], count: length });
      }).done;
  };
  const [halves, tiles] = [plainDot(LENGTH / WORKERS), plainDot(TILE)];
  const [x, y] = [vectors(TILE), vectors(TILE)];
  const reduced = (): Promise<unknown> =>
    rt.run((graph) => {
      for (const [i, tile] of x.entries())
        graph.insert(dot, { to: total, x: tile, y: y[i], count: TILE });
    }).done;
  const times: number[][] = [[], [], []];
  for (let i = 0; i < REPEATS + 2; i++)
    for (const [k, run] of [halves, tiles, reduced].entries()) {
      const time = await seconds(run);
      if (i >= 2) times[k].push((2 * 8 * LENGTH) / time / 1e9);
    }
  const [sum] = await total.read();
  const expected = LENGTH * (REPEATS + 2);
  if (sum !== expected) throw new Error(`the dot product is ${sum}, not ${expected}`);
  const [ofHalves, ofTiles, rate] = times.map(median);
  const bandwidth = Math.max(ofHalves, ofTiles);
  const params = { length: LENGTH, tile: TILE, workers: WORKERS, repeats: REPEATS };
  log(`dot: ${rate.toFixed(1)} GB/s, ${(rate / bandwidth).toFixed(2)} of the bandwidth`);
  return [
    { name: 'reduce/dot', value: rate / bandwidth, unit: 'share', params },
    { name: 'reduce/dot-rate', value: rate, unit: 'GB/s', params },
    { name: 'reduce/bandwidth', value: bandwidth, unit: 'GB/s', params },
  ];
}

export async function reduceBenchmarks(): Promise<BenchEntry[]> {
  return [...(await overhead()), ...(await dotProduct())];
}
