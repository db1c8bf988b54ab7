// Plans: the time of an empty task that is played, METG(50 %) of a played stencil, and the planner's time per task. Each
// figure has the same program inserted beside it, measured in turn. Then the same for runs that are recognised, for one run that repeats
// its steps, and for runs that are watched in vain.
//
// The stencil is planned as two steps, from the even columns to the odd ones and back, and played half as often.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
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
const MANY_TASKS = 1_000_000;
const RECOGNISED_TASKS = 20_000;
const RECOGNISED_RUNS = 40;
const REPEATING_TASKS = 320_000;
const REPEATING_RUNS = 9;
const UNLIKE_TASKS = 10_000;
const UNLIKE_RUNS = 80;

async function planned(rt: Runtime, columns: Columns, iterations?: number): Promise<Plan> {
  return rt.plan((graph) => insertShape(graph, columns, 'stencil', 2, iterations), {
    name: 'stencil',
  });
}

/** ns per empty task, played and inserted. */
async function emptyTasks(cores: number, width: number): Promise<BenchEntry[]> {
  await using rt = await Runtime.create({ workers: cores, plans: 'off' });
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

/**
 * Runs that insert the same tasks again, with `plans: 'auto'` and without: ns per task of the thread that inserts, and of the run as
 * a whole. Runs with and without are measured in turn.
 */
async function recognisedTasks(cores: number, width: number): Promise<BenchEntry[]> {
  const steps = Math.ceil(RECOGNISED_TASKS / width);
  const figures = await Promise.all(
    (['auto', 'off'] as const).map(async (plans) => {
      const rt = await Runtime.create({ workers: cores, plans });
      return {
        rt,
        columns: makeColumns(rt, width, 0),
        inserting: [] as number[],
        whole: [] as number[],
      };
    }),
  );
  let played = 0;
  for (let i = 0; i < RECOGNISED_RUNS; i++)
    for (const { rt, columns, inserting, whole } of figures) {
      const start = performance.now();
      let inserted = start;
      const { recognition } = await rt.run((graph) => {
        insertShape(graph, columns, 'stencil', steps);
        inserted = performance.now();
      });
      if (recognition === 'played') played++;
      inserting.push(((inserted - start) * 1e6) / (steps * width));
      whole.push(((performance.now() - start) * 1e6) / (steps * width));
    }
  for (const { rt } of figures) await rt.close();
  const params = { workers: cores, tasks: steps * width, runs: RECOGNISED_RUNS, played };
  const entry = (name: string, values: readonly number[]): BenchEntry => {
    // The first runs are inserted, and compile all code on the way.
    const value = median(values.slice(RECOGNISED_RUNS >> 1));
    log(`${name}: ${value.toFixed(0)} ns per task`);
    return { name, value, unit: 'ns/task', params };
  };
  const [auto, off] = figures;
  return [
    entry('plan/recognised', auto.inserting),
    entry('plan/recognised/whole', auto.whole),
    entry('plan/recognised/inserted', off.whole),
  ];
}

/**
 * One run that repeats its steps, with `plans: 'auto'` and without, in turn, each time on a new runtime: ns per task of the run, and the
 * median of the ratios of neighbours.
 */
async function repeatingRuns(cores: number, width: number): Promise<BenchEntry[]> {
  const steps = Math.ceil(REPEATING_TASKS / width);
  const times: Record<'auto' | 'off', number[]> = { auto: [], off: [] };
  let played = '';
  for (let i = 0; i < REPEATING_RUNS; i++)
    for (const plans of ['off', 'auto'] as const) {
      await using rt = await Runtime.create({ workers: cores, plans });
      const columns = makeColumns(rt, width, 0);
      const start = performance.now();
      const report = await rt.run((graph) => insertShape(graph, columns, 'stencil', steps));
      times[plans].push(((performance.now() - start) * 1e6) / (steps * width));
      played = report.recognition ?? played;
    }
  const { auto, off } = times;
  const params = { workers: cores, tasks: steps * width, runs: REPEATING_RUNS, played };
  const ratio = median(auto.map((time, i) => time / off[i]));
  log(
    `plan/recognised/within-run: ${median(auto).toFixed(0)} ns per task, ${ratio.toFixed(3)} times that of inserted ones (${played})`,
  );
  return [
    { name: 'plan/recognised/within-run', value: median(auto), unit: 'ns/task', params },
    { name: 'plan/recognised/within-run/ratio', value: ratio, unit: 'ratio', params },
  ];
}

/**
 * Runs that begin as an earlier one, and have more tasks in the end, with `plans: 'auto'` and without, in turn: ns per task
 * without, and the median of the ratios of neighbours.
 */
async function unlikeRuns(cores: number, width: number): Promise<BenchEntry[]> {
  const steps = Math.ceil(UNLIKE_TASKS / width);
  const runtimes = await Promise.all(
    (['off', 'auto'] as const).map(async (plans) => {
      const rt = await Runtime.create({ workers: cores, plans });
      return { rt, columns: makeColumns(rt, width, 0) };
    }),
  );
  const times: number[] = [];
  const ratios: number[] = [];
  for (let i = 0; i < UNLIKE_RUNS; i++) {
    const pair: number[] = [];
    for (const { rt, columns } of runtimes) {
      const turned = (all: Columns['even']): Columns['even'] => [
        ...all.slice(i % width),
        ...all.slice(0, i % width),
      ];
      const these = { even: turned(columns.even), odd: turned(columns.odd) };
      pair.push(((await runShape(rt, these, 'stencil', steps + i)) / ((steps + i) * width)) * 1e9);
    }
    times.push(pair[0]);
    ratios.push(pair[1] / pair[0]);
  }
  for (const { rt } of runtimes) await rt.close();
  const params = { workers: cores, tasks: steps * width, runs: UNLIKE_RUNS };
  const [time, ratio] = [times, ratios].map((all) => median(all.slice(UNLIKE_RUNS >> 2)));
  log(
    `plan/unlike: ${time.toFixed(0)} ns per task, with recognition ${ratio.toFixed(3)} times that`,
  );
  return [
    { name: 'plan/unlike', value: time, unit: 'ns/task', params },
    { name: 'plan/unlike/ratio', value: ratio, unit: 'ratio', params },
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

/** A plan of a million tasks: us per task of planning, bytes per task that the plan keeps, and ns per task of a play. */
async function manyTasks(cores: number): Promise<BenchEntry[]> {
  const width = 8 * cores;
  await using rt = await Runtime.create({ workers: cores });
  const columns = makeColumns(rt, width, 0);
  const steps = Math.ceil(MANY_TASKS / width);
  const tasks = steps * width;
  await runShape(rt, columns, 'stencil', 5000);
  const before = await memoryInUse();
  const start = performance.now();
  const plan = await rt.plan((graph) => insertShape(graph, columns, 'stencil', steps));
  const planned = ((performance.now() - start) * 1e3) / tasks;
  const kept = ((await memoryInUse()) - before) / tasks;
  await plan.run();
  const { seconds } = await plan.run({ times: REPEATS });
  const params = { tasks, width };
  const entry = (name: string, value: number, unit: string): BenchEntry => {
    log(`${name}: ${value.toFixed(2)} ${unit}`);
    return { name, value, unit, params };
  };
  return [
    entry('plan/planning/million', planned, 'us/task'),
    entry('plan/planning/million/size', kept, 'B/task'),
    entry('plan/planning/million/played', (seconds * 1e9) / (REPEATS * tasks), 'ns/task'),
  ];
}

/** Bytes of objects and buffers that are in use. */
async function memoryInUse(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // Buffers are given back in a turn after the collection that finds them unused.
  for (let i = 0; i < 3; i++) {
    collect();
    await setImmediate();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export async function planBenchmarks(): Promise<BenchEntry[]> {
  const cores = availableParallelism();
  return [
    ...(await emptyTasks(cores, 8 * cores)),
    ...(await tracedTasks(cores, 8 * cores)),
    ...(await granularity(cores, 8 * cores, 'plan/metg/stencil')),
    ...(await granularity(cores, 2, 'plan/metg/stencil/width-2')),
    ...(await planning(cores)),
    ...(await manyTasks(cores)),
    ...(await recognisedTasks(cores, 8 * cores)),
    ...(await repeatingRuns(cores, 8 * cores)),
    ...(await unlikeRuns(cores, 8 * cores)),
  ];
}
