// The cost of an empty kernel on NVIDIA GPUs: inserted, played from lists, and played as a CUDA graph. The programs are a chain,
// which goes from GPU to GPU if there are several, the stencil of Task Bench with three dependencies per task, its columns dealt
// to the GPUs in blocks, and on several GPUs independent kernels on all of them.
import { type Graph, Runtime, readWrite, task } from '../index.js';
import { commandLine, positive } from './command-line.js';
import { type BenchEntry, type Columns, insertShape, log, median } from './harness.js';

const usage = `usage: node dist/bench/gpu-plan.js [options]

Microseconds per empty kernel on NVIDIA GPUs: inserted, played from lists, and played as a CUDA graph. On several GPUs the figures of
the stencil and of independent kernels are per kernel and GPU: the time, divided by the kernels of one GPU.

  --gpus N        GPUs (1)
  --streams N     streams of each GPU (4)
  --steps N       steps of an iteration (100)
  --times N       iterations of a play (50)
  --repeats N     times under the clock (5)
  --json          one JSON array
  --help          this text
`;
const values = commandLine(usage, {
  gpus: { type: 'string', default: '1' },
  streams: { type: 'string', default: '4' },
  steps: { type: 'string', default: '100' },
  times: { type: 'string', default: '50' },
  repeats: { type: 'string', default: '5' },
  json: { type: 'boolean' },
});
const gpus = positive(usage, 'gpus', values.gpus);
const streams = positive(usage, 'streams', values.streams);
const steps = positive(usage, 'steps', values.steps);
const times = positive(usage, 'times', values.times);
const repeats = positive(usage, 'repeats', values.repeats);
/** Columns of one GPU. */
const WIDTH = 16;

const link = task({ name: 'link', flows: { x: readWrite('f64') }, kernel: 'empty' });

await using runtime = await Runtime.create({
  driver: 'cuda',
  gpus,
  gpuMemory: '64MiB',
  computeStreams: streams,
  workers: 1,
  plans: 'off',
});
const row = (parity: string): Columns['even'] =>
  Array.from({ length: WIDTH * gpus }, (_, p) =>
    runtime.data(new Float64Array(2), {
      name: `${parity}(${p})`,
      device: Math.floor(p / WIDTH),
    }),
  );
const columns = { even: row('even'), odd: row('odd') };
const x = runtime.data(new Float64Array(2), { name: 'x' });
interface Program {
  /** Tasks by which the time is divided. */
  readonly tasks: number;
  readonly width: number;
  insert(graph: Graph): void;
}
const programs: Record<string, Program> = {
  chain: {
    tasks: steps,
    width: 1,
    insert: (graph) => {
      for (let i = 0; i < steps; i++) graph.insert(link, { x }, { device: i % gpus });
    },
  },
  stencil: {
    tasks: steps * WIDTH,
    width: WIDTH * gpus,
    insert: (graph) => insertShape(graph, columns, 'stencil', steps),
  },
};
if (gpus > 1)
  programs['independent'] = {
    tasks: steps * WIDTH,
    width: WIDTH * gpus,
    insert: (graph) => insertShape(graph, columns, 'independent', steps),
  };

const entries: BenchEntry[] = [];
for (const [name, { tasks, width, insert }] of Object.entries(programs)) {
  const lists = await runtime.plan(insert, { name, graph: 'never' });
  const graph = await runtime.plan(insert, { name, graph: 'always' });
  const ways: Record<string, () => Promise<unknown>> = {
    inserted: async () => {
      const runs: PromiseLike<unknown>[] = [];
      for (let i = 0; i < times; i++) runs.push(runtime.run(insert));
      await Promise.all(runs);
    },
    lists: () => lists.run({ times }),
    graph: () => graph.run({ times }),
  };
  const costs = Object.fromEntries(Object.keys(ways).map((way) => [way, [] as number[]]));
  for (let i = 0; i <= repeats; i++)
    for (const [way, run] of Object.entries(ways)) {
      const start = performance.now();
      await run();
      if (i > 0) costs[way].push(((performance.now() - start) * 1e3) / (times * tasks));
    }
  if (graph.report.graph !== 'captured') throw new Error(`no graph: ${graph.report.graph}`);
  for (const [way, list] of Object.entries(costs)) {
    const params = { gpus, streams, steps, times, width };
    const entry = { name: `gpu/${name}/${way}`, value: median(list), unit: 'us/task', params };
    entries.push(entry);
    log(`${entry.name}: ${entry.value.toFixed(2)} us per task, GPUs: ${gpus}`);
  }
}
if (values.json === true) process.stdout.write(`${JSON.stringify(entries)}\n`);
