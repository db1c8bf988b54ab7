// The cost of an empty kernel on one NVIDIA GPU: inserted, played from lists, and played as a CUDA graph. The programs are a
// chain and the stencil of Task Bench with three dependencies per task.
import { type Graph, Runtime, readWrite, task } from '../index.js';
import { commandLine, positive } from './command-line.js';
import { type BenchEntry, insertShape, log, makeColumns, median } from './harness.js';

const usage = `usage: node dist/bench/gpu-plan.js [options]

Microseconds per empty kernel on one NVIDIA GPU: inserted, played from lists, and played as a CUDA graph.

  --streams N     streams of the GPU (4)
  --steps N       steps of an iteration (100)
  --times N       iterations of a play (50)
  --repeats N     times under the clock (5)
  --json          one JSON array
  --help          this text
`;
const values = commandLine(usage, {
  streams: { type: 'string', default: '4' },
  steps: { type: 'string', default: '100' },
  times: { type: 'string', default: '50' },
  repeats: { type: 'string', default: '5' },
  json: { type: 'boolean' },
});
const streams = positive(usage, 'streams', values.streams);
const steps = positive(usage, 'steps', values.steps);
const times = positive(usage, 'times', values.times);
const repeats = positive(usage, 'repeats', values.repeats);
const WIDTH = 16;

const link = task({ name: 'link', flows: { x: readWrite('f64') }, kernel: 'empty' });

await using runtime = await Runtime.create({
  driver: 'cuda',
  gpus: 1,
  gpuMemory: '64MiB',
  computeStreams: streams,
  workers: 1,
});
const columns = makeColumns(runtime, WIDTH, 1);
const x = runtime.data(new Float64Array(2), { name: 'x' });
const programs = {
  chain: {
    tasks: steps,
    insert: (graph: Graph): void => {
      for (let i = 0; i < steps; i++) graph.insert(link, { x });
    },
  },
  stencil: {
    tasks: steps * WIDTH,
    insert: (graph: Graph): void => insertShape(graph, columns, 'stencil', steps),
  },
};

const entries: BenchEntry[] = [];
for (const [name, { tasks, insert }] of Object.entries(programs)) {
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
    const params = { streams, steps, times, width: name === 'chain' ? 1 : WIDTH };
    const entry = { name: `gpu/${name}/${way}`, value: median(list), unit: 'us/task', params };
    entries.push(entry);
    log(`${entry.name}: ${entry.value.toFixed(2)} us per task`);
  }
}
if (values.json === true) process.stdout.write(`${JSON.stringify(entries)}\n`);
