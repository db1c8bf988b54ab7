// Bodies on script workers on several ranks: a plan refuses them, on all ranks, and runs that repeat themselves are inserted.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { planKernels } from '../../devices/simulated/cases/plan-cases.js';
import { axpyBody } from '../../devices/simulated/cases/plan-programs.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { World } from '../../devices/simulated/machine/world.js';
import { type Graph, HeadraceError, type Runtime } from '../../scheduler/index.js';
import { joined, rankMachine } from '../support/simulated-ranks.js';

const RANKS = 2;
const TASKS = 64;
const RUNS = 6;
const TURNS = 20_000;

/** What a rank finds: the error of the plan, the outcome of the last run, and a value. */
async function found(runtime: Runtime): Promise<string[]> {
  const data = Array.from({ length: 4 }, (_, d) =>
    runtime.data(Float64Array.of(1), { name: `d${d}`, rank: d % RANKS }),
  );
  const insert = (graph: Pick<Graph, 'insert'>): void => {
    for (let i = 0; i < TASKS; i++)
      graph.insert(axpyBody, { y: data[i % 4], x: data[(i + 2) % 4], n: 1, a: 1 });
  };
  const error = await runtime.plan(insert).then(
    () => 'none',
    (thrown: unknown) => (thrown instanceof HeadraceError ? thrown.message : String(thrown)),
  );
  let outcome = '';
  for (let i = 0; i < RUNS; i++) outcome = (await runtime.run(insert)).recognition ?? '';
  const [value] = await data[0].read();
  await runtime.close();
  return [error, outcome, String(value > 1)];
}

test('a plan of several ranks refuses them, and runs of them are inserted', async () => {
  const world = new World();
  const machine = { ...rankMachine, workers: 1, scriptWorkers: 2, lanes: 8 };
  const kernels = { ...planKernels, empty: () => 0 };
  const backends = Array.from(
    { length: RANKS },
    () => new SimulatedBackend({ machine, world, kernels }),
  );
  const runtimes = joined(world, backends, { workers: 1, lanes: 8, plans: 'auto' });
  let all: string[][] | undefined;
  const over = Promise.all(runtimes.map(found)).then((results) => {
    all = results;
  });
  for (let i = 0; i < TURNS && all === undefined; i++) await setImmediate();
  if (all !== undefined) await over;
  expect(all).toHaveLength(RANKS);
  for (const [error, outcome, hasValue] of all ?? []) {
    expect(error).toContain(
      "a plan of several ranks cannot contain task class 'axpyBody': its body runs on script workers",
    );
    expect(outcome).not.toMatch(/played/);
    expect(hasValue).toBe('true');
  }
});
