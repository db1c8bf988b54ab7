// Measured times of kernels: the planner deals tasks by them, and takes an estimate where there are none.
import { expect, test } from 'vitest';
import { planKernels, planMachine } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, copy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { type Datum, type Graph, Runtime } from '../../index.js';

const FAST = 10;

/** A runtime with two workers, on which axpy takes 100 times as long as copy. */
function opened(): { runtime: Runtime; blocks: Datum<'f64'>[] } {
  const machine = { ...planMachine(new PlanProgram(1)), gpus: 0, workers: 2 };
  const backend = new SimulatedBackend({
    machine: { ...machine, kernels: { '*': 1e-5, add_f64: 1e-3 } },
    ringRecords: 128,
    kernels: planKernels,
  });
  const runtime = Runtime.over(backend, { checked: true });
  const blocks = Array.from({ length: FAST + 2 }, (_, b) =>
    runtime.data(new Float64Array(8).fill(b), { name: `block ${b}` }),
  );
  return { runtime, blocks };
}

/** One slow task and several fast ones, all independent. */
function insertStep(graph: Pick<Graph, 'insert'>, [x, ...to]: readonly Datum<'f64'>[]): void {
  graph.insert(axpy, { y: to[0], x, n: 8, a: 1 });
  for (let b = 1; b <= FAST; b++) graph.insert(copy, { y: to[b], x, bytes: 64 });
}

test('a class that was measured as slow has a worker of its own', async () => {
  const { runtime, blocks } = opened();
  const step = (graph: Pick<Graph, 'insert'>): void => insertStep(graph, blocks);
  const before = await runtime.plan(step);
  for (let i = 0; i < 4; i++) await runtime.run(step);
  const after = await runtime.plan(step);
  const counts = ({ report }: typeof after): number[] =>
    Object.values(report.commands).sort((a, b) => a - b);
  expect(counts(before)[0]).toBeGreaterThan(3);
  expect(counts(after)).toEqual([1, FAST]);
  expect(before.report.makespan).toBeLessThan(2e-4);
  expect(after.report.makespan).toBeGreaterThan(9e-4);
  expect(after.report.makespan).toBeLessThan(1.2e-3);
  // The results are those of the tasks.
  await after.run({ times: 2 });
  expect((await blocks[1].read())[0]).toBe(1);
  expect((await blocks[2].read())[0]).toBe(0);
  await runtime.close();
});

/** Counts the kernels whose times are asked for. */
class TimedBackend extends SimulatedBackend {
  asked = 0;

  override keepTimes(): void {
    this.asked++;
  }
}

test('times are taken of the kernels of classes that are not known yet', async () => {
  const backend = new TimedBackend({
    machine: { ...planMachine(new PlanProgram(1)), gpus: 0, workers: 1 },
    ringRecords: 128,
    kernels: planKernels,
  });
  const runtime = Runtime.over(backend, { checked: true });
  const [x, y, z] = [1, 2, 3].map((value) => runtime.data(new Float64Array(8).fill(value)));
  const adds = (n: number): PromiseLike<unknown> =>
    runtime.run((graph) => {
      for (let i = 0; i < n; i++) graph.insert(axpy, { y, x, n: 8, a: 1 });
    });
  for (let i = 0; i < 10; i++) await adds(10);
  // The first 65, and those that came with the last of these.
  expect(backend.asked).toBe(70);
  await runtime.run((graph) => void graph.insert(copy, { y: z, x, bytes: 64 }));
  for (let i = 0; i < 10; i++) await adds(10);
  expect(backend.asked).toBe(71);
  await runtime.close();
});

test('times are kept until enough tasks have ended, and again for a new class', async () => {
  const { runtime, blocks } = opened();
  const { kernelTimes } = runtime.engine;
  const [x, y, z] = blocks;
  expect(kernelTimes.isOpen).toBe(false);
  const adds = (n: number): PromiseLike<unknown> =>
    runtime.run((graph) => {
      for (let i = 0; i < n; i++) graph.insert(axpy, { y, x, n: 8, a: 1 });
    });
  await adds(10);
  expect(kernelTimes.isOpen).toBe(true);
  await adds(60);
  expect(kernelTimes.isOpen).toBe(false);
  await runtime.run((graph) => void graph.insert(copy, { y: z, x, bytes: 64 }));
  expect(kernelTimes.isOpen).toBe(true);
  // Tasks of other classes end it, too: the class may not come again.
  for (let i = 0; i < 20; i++) await adds(1000);
  expect(kernelTimes.isOpen).toBe(false);
  const row = runtime.classes.bind(axpy as never).row;
  expect(kernelTimes.mean(row, row.kernels[0], 0 as never)).toBeCloseTo(1e-3, 5);
  const other = runtime.classes.bind(copy as never).row;
  expect(kernelTimes.mean(other, other.kernels[0], 0 as never)).toBeUndefined();
  await runtime.close();
});
