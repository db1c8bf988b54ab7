// Plays that get more iterations while they are under way: those of stretches of a run, on a simulated machine. They give what
// insertion gives, with parameters of each iteration, and errors name the task that has failed.
import '../support/removable-guards.js';
import { afterEach, expect, test, vi } from 'vitest';
import { planRuntime } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import {
  type Datum,
  HeadraceError,
  type Runtime,
  readWrite,
  type TaskHandle,
  task,
} from '../../index.js';
import { PartValues } from '../../scheduler/plans/part-values.js';

const N = 8;
const COLUMNS = 8;
const STEPS = 1500;
const check = task({
  name: 'check',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});

afterEach(() => {
  vi.restoreAllMocks();
  setGuard('playRoom', true);
});

interface Grown {
  readonly runtime: Runtime;
  readonly x: Datum<'f64'>;
  readonly ys: readonly Datum<'f64'>[];
  readonly plays: () => number;
  readonly grown: () => number;
}

/** A runtime with a window of many rings, and counts of the plays and of the times that they grew. */
function opened(seed?: number): Grown {
  const begins = vi.spyOn(SimulatedBackend.prototype, 'play');
  const grows = vi.spyOn(SimulatedBackend.prototype, 'extendPlay');
  const p: PlanProgram = Object.create(new PlanProgram(3), { window: { value: 2048 } });
  const runtime = planRuntime(p, { plans: 'auto', ...(seed === undefined ? {} : { seed }) });
  const [x, ...ys] = Array.from({ length: COLUMNS + 1 }, () =>
    runtime.data(new Float64Array(N).fill(1)),
  );
  return {
    runtime,
    x,
    ys,
    plays: () => begins.mock.calls.length,
    grown: () => grows.mock.results.filter(({ value }) => value === true).length,
  };
}

test.each([undefined, 3, 4])(
  'tasks with parameters that count, with delays of seed %o',
  async (seed) => {
    const { runtime, x, ys, plays, grown } = opened(seed);
    const { recognition } = await runtime.run((graph) => {
      for (let t = 0; t < STEPS; t++) for (const y of ys) graph.insert(axpy, { y, x, n: N, a: t });
    });
    expect(recognition).toMatch(/^played \d+ of 12000 tasks$/);
    expect(grown()).toBeGreaterThan(10);
    expect(plays()).toBeLessThan(grown());
    const sum = 1 + (STEPS * (STEPS - 1)) / 2;
    for (const y of ys) expect((await y.read())[0]).toBe(sum);
    await runtime.close();
  },
);

test.each([undefined, 3, 4])(
  'a task that fails behind the end that a play had at first, with delays of seed %o',
  async (seed) => {
    const { runtime, x, ys, grown } = opened(seed);
    let failing: TaskHandle | undefined;
    const run = runtime.run((graph) => {
      for (let t = 0; t < STEPS; t++) {
        for (const y of ys) graph.insert(axpy, { y, x, n: N, a: 1 });
        const handle = graph.insert(check, { y: ys[0], code: t === 1100 ? 7 : 0 });
        if (t === 1100) failing = handle;
      }
    });
    const error = await run.done.catch((e: unknown) => e);
    expect(grown()).toBeGreaterThan(10);
    expect(error).toBeInstanceOf(HeadraceError);
    expect((error as HeadraceError).message).toBe(
      `task check #${failing} failed: its kernel returned 7`,
    );
    await runtime.close();
  },
);

test('parameters take the place of those of iterations that are over', () => {
  const values = new PartValues(2, 4, (slot, iteration) => 10 * iteration + slot);
  values.take(0, 4);
  expect(values.limit(0)).toBe(4);
  values.take(4, values.limit(3));
  expect([3, 4, 5, 6].map((i) => values.at(i, 1))).toEqual([31, 41, 51, 61]);
});

test('without playRoom: they take the place of others', () => {
  setGuard('playRoom', false);
  const values = new PartValues(1, 4, (_, iteration) => iteration);
  values.take(0, 4);
  values.take(4, Math.min(6, values.limit(0)));
  expect([0, 1, 2, 3].map((i) => values.at(i, 0))).not.toEqual([0, 1, 2, 3]);
});
