// Plans of many tasks: the bytes that a plan keeps per task, and that it is played as a small one.
import { expect, test } from 'vitest';
import { planKernels, planMachine } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { type Datum, type Graph, type Plan, Runtime } from '../../index.js';
import type { Playables } from '../../scheduler/plans/playable.js';

const TASKS = 100_000;
const COLUMNS = 8;
/** Bytes per task that a plan may keep. */
const MOST_BYTES = 300;
/** Of an element of an array, and of an entry of a map with what V8 keeps around it. */
const ELEMENT = 8;
const ENTRY = 40;

function opened(): { runtime: Runtime; data: Datum<'f64'>[] } {
  const backend = new SimulatedBackend({
    machine: { ...planMachine(new PlanProgram(1)), gpus: 0, workers: 2 },
    ringRecords: 128,
    kernels: planKernels,
  });
  const runtime = Runtime.over(backend, { checked: false });
  const data = Array.from({ length: COLUMNS }, (_, i) =>
    runtime.data(Float64Array.of(i), { name: `d${i}` }),
  );
  return { runtime, data };
}

/** Each task adds a datum to its neighbour. */
function insert(graph: Pick<Graph, 'insert'>, data: readonly Datum<'f64'>[], tasks: number): void {
  for (let t = 0; t < tasks; t++)
    graph.insert(axpy, { y: data[t % COLUMNS], x: data[(t + 3) % COLUMNS], n: 1, a: 0.5 });
}

/** Bytes of all that can be reached from these objects: buffers, and the elements of arrays and maps. */
function bytesOf(...roots: readonly unknown[]): number {
  const seen = new Set<unknown>();
  const left = [...roots];
  let bytes = 0;
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    if (at === null || typeof at !== 'object' || seen.has(at)) continue;
    seen.add(at);
    if (ArrayBuffer.isView(at)) left.push(at.buffer);
    else if (at instanceof ArrayBuffer) bytes += at.byteLength;
    else if (at instanceof Map || at instanceof Set) {
      bytes += ENTRY * at.size;
      left.push(...[...at.entries()].flat().filter((value) => typeof value === 'object'));
    } else {
      if (Array.isArray(at)) bytes += ELEMENT * at.length;
      for (const value of Object.values(at)) if (typeof value === 'object') left.push(value ?? {});
    }
  }
  return bytes;
}

/** Bytes that a plan keeps. The rows of its classes belong to the engine. */
function keptBy(plan: Plan): number {
  const { queues, regions, addresses, entry, results, decisions } = (
    Reflect.get(plan, 'forms') as Playables
  ).plain.program;
  const { classes: _, ...insertions } = { ...decisions.insertions } as Record<string, unknown>;
  return bytesOf(queues, regions, addresses, entry, results, decisions.iteration, insertions);
}

test('a plan of many tasks keeps few bytes for each', async () => {
  const { runtime, data } = opened();
  const plan = await runtime.plan((graph) => insert(graph, data, TASKS));
  const kept = keptBy(plan);
  // The record of a task alone has 64 bytes, so less would mean that something was not counted.
  expect(kept / TASKS).toBeGreaterThan(64);
  expect(kept / TASKS).toBeLessThan(MOST_BYTES);
  const { tasks } = await plan.run();
  expect(tasks).toBe(TASKS);
  await runtime.close();
}, 60_000);

test('a plan of many tasks computes what insertion computes', async () => {
  const results = await Promise.all(
    ['played', 'inserted'].map(async (way) => {
      const { runtime, data } = opened();
      const step = (graph: Pick<Graph, 'insert'>): void => insert(graph, data, TASKS / 10);
      if (way === 'inserted') await runtime.run(step);
      else await (await runtime.plan(step)).run();
      const values = await Promise.all(data.map(async (datum) => (await datum.read())[0]));
      await runtime.close();
      return values;
    }),
  );
  expect(results[0]).toEqual(results[1]);
}, 60_000);
