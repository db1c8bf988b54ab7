// What parts of data cost on insertion when a datum has many of them: a task on one of many parts that overlap, the same task on a
// datum of its own, and the end of a part.
import { type Datum, Runtime, readWrite, task } from '../index.js';
import { type BenchEntry, log, median } from './harness.js';

const PARTS = 10_000;
const LENGTH = 16;
const STEP = 12;
const TASKS = 1_000;
const REPEATS = 3;

const touch = task({ name: 'touch', flows: { of: readWrite('f64') }, kernel: 'empty' });

/** Microseconds per call of a function, over `count` calls. */
function perCall(count: number, call: (i: number) => void): number {
  const begin = performance.now();
  for (let i = 0; i < count; i++) call(i);
  return ((performance.now() - begin) / count) * 1e3;
}

/** Microseconds per task that changes one of these data, each another one. Those of neighbours have elements in common. */
async function insertion(runtime: Runtime, data: readonly Datum<'f64'>[]): Promise<number> {
  let time = 0;
  await runtime.run((graph) => {
    time = perCall(TASKS, (i) => {
      graph.insert(touch, { of: data[i] });
    });
  });
  return time;
}

export async function partsBenchmarks(): Promise<BenchEntry[]> {
  await using runtime = await Runtime.create({ workers: 1, hostMemory: '256MiB', plans: 'off' });
  const x = runtime.data(new Float64Array(PARTS * STEP + LENGTH));
  const blocks = runtime.data(new Float64Array(4 * STEP * STEP * (PARTS / 4)), {
    rows: 100 * STEP,
  });
  const vectors = Array.from({ length: PARTS }, (_, i) => x.part(i * STEP, LENGTH));
  const tiles = Array.from({ length: PARTS }, (_, i) => {
    const [row, column] = [(i % 100) * STEP, Math.floor(i / 100) * STEP];
    return blocks.block({
      ...{ row, column, rows: Math.min(LENGTH, blocks.rows - row) },
      columns: Math.min(LENGTH, blocks.columns - column),
    });
  });
  const alone = Array.from({ length: PARTS }, () => runtime.data(new Float64Array(LENGTH)));
  const times: Record<string, number[]> = { alone: [], vector: [], blocks: [], close: [] };
  for (let i = 0; i < REPEATS + 1; i++) {
    const now = {
      alone: await insertion(runtime, alone),
      vector: await insertion(runtime, vectors),
      blocks: await insertion(runtime, tiles),
      close: perCall(100, (k) => vectors[100 * i + 5000 + k].close()),
    };
    for (let k = 0; k < 100; k++) {
      const at = 100 * i + 5000 + k;
      vectors[at] = x.part(at * STEP, LENGTH);
    }
    // The first one compiles.
    if (i > 0) for (const [name, time] of Object.entries(now)) times[name].push(time);
  }
  const params = {
    parts: PARTS,
    elements: LENGTH,
    common: LENGTH - STEP,
    tasks: TASKS,
    repeats: REPEATS,
  };
  return Object.entries(times).map(([name, all]) => {
    log(`parts: ${name} ${median(all).toFixed(1)} us`);
    const value = median(all);
    return { name: `parts/${name}`, value, unit: name === 'close' ? 'us/part' : 'us/task', params };
  });
}
