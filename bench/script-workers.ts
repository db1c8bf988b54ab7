// JavaScript bodies on two script workers: the share of two cores that bodies of 20 us use, insertion included, and the cost
// of an empty body. The cores are what two plain worker threads with the same work get of them, in turn with the runs.
import { type Datum, type Graph, Runtime } from '../index.js';
import { type BenchEntry, log, median } from './harness.js';
import { PlainWorkers } from './plain-workers.js';
import { computes, nothing, work } from './script-classes.js';

const WORKERS = 2;
const DATA = 64;
const BODY_US = 20;
const TASKS = 50_000;
const EMPTY_TASKS = 400_000;
const WARM_ROUNDS = 12;
const REPEATS = 7;

/** Iterations of `work` that take that long on a core, by the fastest of several trials. */
function iterationsFor(us: number): number {
  const trial = 200_000;
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 200; i++) {
    const start = performance.now();
    if (work(trial) === 0) throw new Error('the work was left out');
    best = Math.min(best, performance.now() - start);
  }
  return Math.round((us / 1e3 / best) * trial);
}

/** Seconds of a run of `tasks` tasks, dealt to the data in turn. */
async function seconds(
  runtime: Runtime,
  tasks: number,
  insert: (graph: Graph, x: Datum<'f64'>) => void,
): Promise<number> {
  const data = Array.from({ length: DATA }, () => runtime.data(new Float64Array(8)));
  const start = performance.now();
  await runtime.run((graph) => {
    for (let i = 0; i < tasks; i++) insert(graph, data[i % DATA]);
  });
  const all = (performance.now() - start) / 1e3;
  for (const x of data) x.close();
  return all;
}

export async function scriptWorkerBenchmarks(): Promise<BenchEntry[]> {
  const iterations = iterationsFor(BODY_US);
  const plain = new PlainWorkers(WORKERS);
  await using runtime = await Runtime.create({ workers: 1, scriptWorkers: WORKERS });
  const compute = (graph: Graph, x: Datum<'f64'>): void =>
    void graph.insert(computes, { x, iterations });
  const empty = (graph: Graph, x: Datum<'f64'>): void => void graph.insert(nothing, { x });
  const shares: number[] = [];
  const ofTrial: number[] = [];
  const costs: number[] = [];
  // The first rounds start the workers and compile, also what a run calls once. Threads of V8 take part of both cores for that.
  for (let i = -WARM_ROUNDS; i < REPEATS; i++) {
    const best = await plain.seconds(TASKS, iterations);
    const run = await seconds(runtime, TASKS, compute);
    if (i < 0) continue;
    shares.push(best / run);
    ofTrial.push((TASKS * BODY_US) / 1e6 / WORKERS / best);
  }
  await plain.close();
  // Apart from these: the garbage of one kind of round is collected in the next.
  for (let i = -1; i < REPEATS; i++) {
    const cost = ((await seconds(runtime, EMPTY_TASKS, empty)) * WORKERS * 1e6) / EMPTY_TASKS;
    if (i >= 0) costs.push(cost);
  }
  const params = { workers: WORKERS, data: DATA, repeats: REPEATS };
  log(
    `script workers: ${(100 * median(shares)).toFixed(1)} % of ${WORKERS} cores at ${BODY_US} us`,
  );
  return [
    {
      name: `script-workers/efficiency-at-${BODY_US}us`,
      value: median(shares),
      unit: 'share',
      // `plain`: the share of both cores that the plain threads use, by the fastest trial on one core.
      params: { ...params, tasks: TASKS, iterations, plain: median(ofTrial) },
    },
    {
      name: 'script-workers/empty',
      value: median(costs),
      unit: 'us/task',
      params: { ...params, tasks: EMPTY_TASKS },
    },
  ];
}
