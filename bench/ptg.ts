// Parameterised graphs beside insertion: the cost of a task of a stencil (three inputs, an empty kernel, unrolling included), and
// METG(50 %) as in metg.ts; with the promise that its steps repeat, and without it: all functions are called, and what they return is compared.
import { availableParallelism } from 'node:os';
import {
  type Datum,
  type Flow,
  type FlowEdges,
  type FlowEnd,
  type ParameterisedGraph,
  parameterised,
  type Range,
  Runtime,
  range,
} from '../index.js';
import {
  type BenchEntry,
  type Columns,
  log,
  makeColumns,
  median,
  runShape,
  stencilEmpty,
  stencilWork,
} from './harness.js';
import { metg, sweep } from './metg.js';
import { parameterisedScale } from './ptg-scale.js';

const WIDTH = 16;
const STEPS = 20_000;
const REPEATS = 5;

interface Cell {
  readonly t: number;
  readonly p: number;
}
type CellFlow = (of: Cell) => FlowEnd<'f64'>;
type Ends = Readonly<Record<'out' | 'left' | 'mid' | 'right', CellFlow>>;
type Edges<M extends 'read' | 'write'> = FlowEdges<Flow<'f64', M>, Cell>;

interface StencilRun {
  readonly columns: Columns;
  readonly steps: number;
  /** The class promises that it repeats. */
  readonly promises: boolean;
}

/** Ranges and edges of a stencil in which every step writes the data of the step before the last. */
function stencilEdges(
  cell: Ends,
  { columns: { even, odd }, steps }: StencilRun,
): {
  readonly ranges: { readonly t: () => Range; readonly p: () => Range };
  readonly starts: { readonly t: () => Range };
  readonly flows: { readonly out: Edges<'write'> } & Readonly<
    Record<'left' | 'mid' | 'right', Edges<'read'>>
  >;
} {
  const last = even.length - 1;
  const written = (t: number): readonly Datum<'f64'>[] => (t % 2 === 0 ? odd : even);
  const old = (t: number, p: number) => (t === 0 ? even[p] : cell.out({ t: t - 1, p }));
  return {
    ranges: { t: () => range(0, steps), p: () => range(0, last + 1) },
    starts: { t: () => range(0, 1) },
    flows: {
      out: {
        from: ({ t, p }) => (t < 2 ? written(t)[p] : cell.out({ t: t - 2, p })),
        to: ({ t, p }) =>
          t + 1 === steps
            ? written(t)[p]
            : [
                p > 0 ? cell.right({ t: t + 1, p: p - 1 }) : cell.left({ t: t + 1, p }),
                cell.mid({ t: t + 1, p }),
                p < last ? cell.left({ t: t + 1, p: p + 1 }) : cell.right({ t: t + 1, p }),
                t + 2 < steps ? cell.out({ t: t + 2, p }) : written(t)[p],
              ],
      },
      left: { from: ({ t, p }) => old(t, Math.max(0, p - 1)) },
      mid: { from: ({ t, p }) => old(t, p) },
      right: { from: ({ t, p }) => old(t, Math.min(last, p + 1)) },
    },
  };
}

/** The first two steps read and overwrite the data, and the last two leave their results there. */
function promiseOf({ promises, steps }: StencilRun): { readonly repeats?: { t: () => Range } } {
  return promises ? { repeats: { t: () => range(2, steps - 2) } } : {};
}

const emptyStencil: ParameterisedGraph<StencilRun> = parameterised('stencil', (graph, given) => {
  const { cell } = graph.declare({ cell: { runs: stencilEmpty, indices: ['t', 'p'] } });
  graph.define(cell, { ...stencilEdges(cell, given), ...promiseOf(given) });
});

const workStencil: ParameterisedGraph<StencilRun & { readonly iterations: number }> = parameterised(
  'stencil',
  (graph, given) => {
    const { cell } = graph.declare({ cell: { runs: stencilWork, indices: ['t', 'p'] } });
    const { iterations } = given;
    graph.define(cell, {
      ...{ ...stencilEdges(cell, given), ...promiseOf(given) },
      params: { iterations },
    });
  },
);

async function seconds(run: () => PromiseLike<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return (performance.now() - start) / 1e3;
}

/** ns per task, in turn: inserted, and parameterised with and without the promise and recognition. */
async function emptyTasks(): Promise<BenchEntry[]> {
  await using off = await Runtime.create({ workers: 1, plans: 'off' });
  await using auto = await Runtime.create({ workers: 1 });
  const tasks = WIDTH * STEPS;
  const ways = [off, auto].map((rt) => {
    const columns = makeColumns(rt, WIDTH, 0);
    return {
      inserted: (steps: number): Promise<number> => runShape(rt, columns, 'stencil', steps),
      promised: (steps: number): Promise<number> =>
        seconds(() => rt.run(emptyStencil, { columns, steps, promises: true })),
      compared: (steps: number): Promise<number> =>
        seconds(() => rt.run(emptyStencil, { columns, steps, promises: false })),
    };
  });
  const measured = [
    { name: 'ptg/empty/stencil', run: ways[1].promised },
    { name: 'ptg/empty/stencil/compared', run: ways[1].compared },
    { name: 'ptg/empty/stencil/unrecognised', run: ways[0].promised },
    { name: 'ptg/empty/stencil/inserted', run: ways[0].inserted },
  ].map((one) => ({ ...one, times: [] as number[] }));
  for (const { run } of measured) await run(2000);
  for (let i = 0; i < REPEATS; i++)
    for (const { run, times } of measured) times.push(((await run(STEPS)) / tasks) * 1e9);
  const params = { tasks, width: WIDTH, workers: 1, repeats: REPEATS };
  return measured.map(({ name, times }) => {
    const value = median(times);
    log(`${name}: ${value.toFixed(0)} ns/task`);
    return { name, value, unit: 'ns/task', params };
  });
}

/** With default options the steps that a run repeats are recognised, as those of inserted tasks are (metg.ts). */
const SMALLEST = [
  { name: 'ptg/metg/stencil', plans: 'auto', promises: true },
  { name: 'ptg/metg/stencil/compared', plans: 'auto', promises: false },
  { name: 'ptg/metg/stencil/unrecognised', plans: 'off', promises: true },
] as const;

async function smallestTasks({
  name,
  plans,
  promises,
}: (typeof SMALLEST)[number]): Promise<BenchEntry> {
  const cores = availableParallelism();
  const width = 8 * cores;
  await using rt = await Runtime.create({ workers: cores, plans });
  const columns = makeColumns(rt, width, 0);
  const run = (steps: number, iterations: number): Promise<number> =>
    seconds(() => rt.run(workStencil, { columns, steps, iterations, promises }));
  await run(5000, 4);
  await runShape(rt, columns, 'independent', 400, 16384);
  const value = metg(await sweep(rt, columns, run, cores)) * 1e6;
  const params = { cores, width, efficiency: 0.5, repeats: REPEATS };
  log(`${name}: ${value.toFixed(2)} us`);
  return { name, value, unit: 'us', params };
}

export async function parameterisedBenchmarks(): Promise<BenchEntry[]> {
  const entries = await emptyTasks();
  for (const one of SMALLEST) entries.push(await smallestTasks(one));
  return [...entries, ...parameterisedScale()];
}
