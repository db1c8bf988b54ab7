// What `runtime.recognised()` says: plans that are kept, tasks that were played, and what was given up and why.
import { expect, test } from 'vitest';
import { planRuntime } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { Random } from '../../devices/simulated/machine/random.js';
import { type Graph, task, write } from '../../index.js';

const DATA = 8;
const body = task({ name: 'body', flows: { y: write('f64') }, body: () => undefined });

function small(plans: 'auto' | 'off' = 'auto') {
  const seed = Array.from({ length: 500 }, (_, i) => i).find(
    (s) => new PlanProgram(s).window >= 1024,
  );
  const runtime = planRuntime(new PlanProgram(seed ?? 0), { plans });
  const [x, ...ys] = Array.from({ length: DATA + 1 }, () =>
    runtime.data(new Float64Array(8).fill(1)),
  );
  const insert = (graph: Graph, i: number, priority = 0): void =>
    void graph.insert(axpy, { y: ys[i % DATA], x, n: 8, a: 1 }, priority === 0 ? {} : { priority });
  /** Runs of so many tasks. */
  const runs = async (count: number, tasks: number, name = 'again'): Promise<void> => {
    for (let k = 0; k < count; k++)
      await runtime.run(
        (graph) => {
          for (let i = 0; i < tasks; i++) insert(graph, i);
        },
        { name },
      );
  };
  return { runtime, ys, insert, runs };
}

test('a run that comes again: its plan, and its tasks that were played', async () => {
  const { runtime, runs } = small();
  await runs(6, 60);
  expect(runtime.recognised()).toEqual({
    tasks: 360,
    played: 120,
    isPaused: false,
    plans: [{ name: 'again', kind: 'run', tasks: 60, played: 120 }],
    givenUp: [],
  });
  await runtime.close();
});

test('a stretch that a run repeats', async () => {
  const { runtime, runs } = small();
  await runs(1, 4000, 'steps');
  const report = runtime.recognised();
  expect(report?.plans).toMatchObject([{ name: 'steps', kind: 'stretch' }]);
  expect(report?.plans[0].played).toBe(report?.played);
  expect(report?.played).toBeGreaterThan(2000);
  await runtime.close();
});

test('a plan is given up with its data', async () => {
  const { runtime, ys, runs } = small();
  await runs(6, 60);
  ys[0].close();
  expect(runtime.recognised()).toMatchObject({
    plans: [],
    givenUp: [{ played: 120, why: 'one of its data was closed, or was advised another device' }],
  });
  await runtime.close();
});

test('a plan that does not come for long is given up', async () => {
  const { runtime, insert, runs } = small();
  await runs(1, 4000);
  Reflect.get(Reflect.get(runtime, 'recognition'), 'account').idle = 8000;
  await runtime.run((graph) => {
    const r = new Random(1);
    for (let i = 0; i < 30_000; i++) insert(graph, r.below(DATA), 1 + r.below(7));
  });
  const [first] = runtime.recognised()?.givenUp ?? [];
  expect(first.why).toBe('its tasks have not come for long');
  await runtime.close();
});

test('runs that begin as a plan and then differ', async () => {
  const { runtime, runs } = small();
  await runs(5, 60);
  for (const tasks of [59, 58, 57, 56]) await runs(1, tasks);
  const [first] = runtime.recognised()?.givenUp ?? [];
  expect(first.why).toBe('its tasks were held back 4 times in a row and then inserted');
  await runtime.close();
});

test('tasks of which no plan can be made', async () => {
  const { runtime, ys, insert } = small();
  for (let k = 0; k < 5; k++)
    await runtime.run((graph) => {
      for (let i = 0; i < 60; i++) insert(graph, i);
      graph.insert(body, { y: ys[0] });
    });
  expect(runtime.recognised()).toMatchObject({ played: 0, plans: [], givenUp: [{ tasks: 61 }] });
  expect(runtime.recognised()?.givenUp[0].why).toContain("a plan cannot contain task class 'body'");
  await runtime.close();
});

test('nothing is said with plans: off', async () => {
  const { runtime, runs } = small('off');
  await runs(5, 60);
  expect(runtime.recognised()).toBeUndefined();
  await runtime.close();
});
