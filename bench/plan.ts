// Plans: the time of an empty task that is played, METG(50 %) of a played stencil, and the planner's time per task. Each
// figure has the same program inserted beside it, measured in turn.
//
// The stencil is planned as two steps, from the even columns to the odd ones and back, and played half as often.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { type Plan, Runtime } from '../index.js';
import {
  type BenchEntry,
  type Columns,
  insertShape,
  log,
  makeColumns,
  median,
  runShape,
  stencilEmpty,
} from './harness.js';
import { efficiencyAt, metg, sweep } from './metg.js';

const REPEATS = 5;
const EMPTY_STEPS = 100_000;
const PLANNED_TASKS = 100_000;

async function planned(rt: Runtime, columns: Columns, iterations?: number): Promise<Plan> {
  return rt.plan((graph) => insertShape(graph, columns, 'stencil', 2, iterations), {
    name: 'stencil',
  });
}

/** ns per empty task, played and inserted. */
async function emptyTasks(cores: number, width: number): Promise<BenchEntry[]> {
  await using rt = await Runtime.create({ workers: cores });
  const columns = makeColumns(rt, width, 0);
  await runShape(rt, columns, 'stencil', 5000);
  const plan = await planned(rt, columns);
  await plan.run({ times: 1000 });
  const played: number[] = [];
  const inserted: number[] = [];
  for (let i = 0; i < REPEATS; i++) {
    const { seconds } = await plan.run({ times: EMPTY_STEPS / 2 });
    played.push((seconds / (EMPTY_STEPS * width)) * 1e9);
    const steps = EMPTY_STEPS / 10;
    inserted.push(((await runShape(rt, columns, 'stencil', steps)) / (steps * width)) * 1e9);
  }
  const params = { workers: cores, width, repeats: REPEATS };
  const entry = (name: string, values: number[]): BenchEntry => ({
    name,
    value: median(values),
    unit: 'ns/task',
    params,
  });
  const entries = [entry('plan/empty/stencil', played), entry('plan/empty/inserted', inserted)];
  for (const { name, value } of entries) log(`${name}: ${value.toFixed(0)} ns per task`);
  return entries;
}

/** ns per empty task that is played with the trace on, and bytes of the trace per task. */
async function tracedTasks(cores: number, width: number): Promise<BenchEntry[]> {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-bench-'));
  const trace = path.join(folder, 'plan.hrtrace');
  const played: number[] = [];
  const steps = EMPTY_STEPS / 10;
  try {
    const rt = await Runtime.create({ workers: cores, trace });
    const plan = await planned(rt, makeColumns(rt, width, 0));
    for (let i = 0; i < REPEATS; i++) {
      const { seconds } = await plan.run({ times: steps / 2 });
      played.push((seconds / (steps * width)) * 1e9);
    }
    await rt.close();
    const bytes = statSync(trace).size / (REPEATS * steps * width);
    const params = { workers: cores, width, repeats: REPEATS };
    const time = median(played);
    log(`plan/traced: ${time.toFixed(0)} ns and ${bytes.toFixed(0)} bytes per task`);
    return [
      { name: 'plan/traced', value: time, unit: 'ns/task', params },
      { name: 'plan/traced/size', value: bytes, unit: 'B/task', params },
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function granularity(cores: number, width: number, name: string): Promise<BenchEntry[]> {
  await using rt = await Runtime.create({ workers: cores });
  const columns = makeColumns(rt, width, 0);
  await runShape(rt, columns, 'stencil', 5000);
  await runShape(rt, columns, 'independent', 400, 16384);
  const plans = new Map<number, Plan>();
  const play = async (steps: number, iterations: number): Promise<number> => {
    const plan = plans.get(iterations) ?? (await planned(rt, columns, iterations));
    plans.set(iterations, plan);
    return (await plan.run({ times: Math.ceil(steps / 2) })).seconds;
  };
  const points = await sweep(rt, columns, play, cores);
  const params = { cores, width, efficiency: 0.5, repeats: REPEATS };
  const value = metg(points) * 1e6;
  const share = efficiencyAt(points, 10e-6);
  log(`${name}: ${value.toFixed(2)} us; ${(share * 100).toFixed(0)} % of all cores at 10 us tasks`);
  for (const p of points)
    log(`    ${(p.granularity * 1e6).toFixed(2)} us  ${(p.efficiency * 100).toFixed(1)} %`);
  return [
    { name, value, unit: 'us', params },
    { name: `${name}/efficiency-at-10us`, value: share, unit: 'share', params },
  ];
}

/** us per task of planning, and of loading the same plan from a file in its place; bytes of the file per task. */
async function planning(cores: number): Promise<BenchEntry[]> {
  const width = 8 * cores;
  await using rt = await Runtime.create({ workers: cores });
  const columns = makeColumns(rt, width, 0);
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-bench-'));
  const file = path.join(folder, 'stencil.plan');
  const [planned, loaded]: number[][] = [[], []];
  const steps = Math.ceil(PLANNED_TASKS / width);
  const given = { data: [columns.even, columns.odd], classes: stencilEmpty };
  try {
    for (let i = 0; i < REPEATS; i++) {
      const start = performance.now();
      const plan = await rt.plan((graph) => insertShape(graph, columns, 'stencil', steps));
      planned.push(((performance.now() - start) * 1e3) / (steps * width));
      await plan.save(file);
      plan.close();
      const restart = performance.now();
      const again = await rt.loadPlan(file, given);
      loaded.push(((performance.now() - restart) * 1e3) / (steps * width));
      again.close();
    }
    const params = { tasks: PLANNED_TASKS, width };
    const entry = (name: string, value: number, unit: string): BenchEntry => {
      log(`${name}: ${value.toFixed(2)} ${unit}`);
      return { name, value, unit, params };
    };
    return [
      entry('plan/planning', median(planned), 'us/task'),
      entry('plan/loading', median(loaded), 'us/task'),
      entry('plan/loading/size', statSync(file).size / (steps * width), 'B/task'),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export async function planBenchmarks(): Promise<BenchEntry[]> {
  const cores = availableParallelism();
  return [
    ...(await emptyTasks(cores, 8 * cores)),
    ...(await tracedTasks(cores, 8 * cores)),
    ...(await granularity(cores, 8 * cores, 'plan/metg/stencil')),
    ...(await granularity(cores, 2, 'plan/metg/stencil/width-2')),
    ...(await planning(cores)),
  ];
}
