// Plans with bodies on script workers: they give what insertion gives; parameters, conditions, failures, ends of threads, files,
// and runs that are recognised.
import '../support/removable-guards.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import type * as Guards from '../../devices/simulated/cases/set-guard.js';
import { Random } from '../../devices/simulated/machine/random.js';
import type * as Headrace from '../../index.js';
import { TaskFlag } from '../../trace/format.js';
import { loadTrace } from '../../trace/load.js';
import { nothingLeft, soon } from '../support/machines.js';
import {
  type AnyClass,
  add,
  built,
  on,
  RANDOM_MACHINES,
  type RandomStep,
  randomSizes,
  randomSteps,
} from './script-machines.js';

type Datum = Headrace.Datum<'f64'>;
type Runtime = Headrace.Runtime;
type AnyGraph = Pick<Headrace.PlanGraph, 'insert'>;

const builtModule = (file: string): Promise<unknown> =>
  import(new URL(`../../dist/${file}`, import.meta.url).href);
// As in the classes, the slots are those of the built package.
const { slot } = (await builtModule('index.js')) as Pick<typeof Headrace, 'slot'>;
// What ../support/patient-holds.ts does, in the built package.
const { setGuard } = (await builtModule('devices/simulated/cases/set-guard.js')) as typeof Guards;
setGuard('heldSoon', false);

const folder = mkdtempSync(path.join(tmpdir(), 'script-plans-'));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.restoreAllMocks());

async function errorOf(failed: PromiseLike<unknown>): Promise<Headrace.HeadraceError> {
  const error = await failed.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error('nothing has failed');
  return error as Headrace.HeadraceError;
}

const valuesOf = (data: readonly Datum[]): Promise<number[][]> =>
  Promise.all(data.map(async (x) => [...(await x.read())]));

describe('a play', () => {
  interface Step extends RandomStep {
    /** The seed is open. */
    readonly open: boolean;
  }

  const kinds = ['mixes', 'mixes', 'mixes', 'mixesLater', 'adds', 'sums'];

  const steps = (random: Random, data: number, gpus: number): Step[] =>
    randomSteps(random, 40, kinds, { data, gpus }).map((step) => ({
      ...step,
      open: step.cls.startsWith('mixes') && random.chance(0.3),
    }));

  function insertAll(
    graph: AnyGraph,
    program: readonly Step[],
    data: readonly Datum[],
    parameter: (seed: number) => unknown,
  ): void {
    for (const { cls, data: of, seed, open, device } of program) {
      const [to, from] = of.map((d) => data[d]);
      const n = Math.min(to.length, from.length);
      const where = device === undefined ? {} : { device };
      if (cls === 'adds') add(graph, built[cls], { to, x: from, n }, where);
      else if (cls === 'sums') add(graph, built[cls], { parts: [from], to, factor: 0.5 });
      else add(graph, built[cls], { x: to, seed: open ? parameter(seed) : seed });
    }
  }

  it.each(RANDOM_MACHINES)(
    '%i script workers and %i GPUs, checked: %s: random programs give what insertion gives',
    async (scriptWorkers, gpus, checked) => {
      for (let seed = 1; seed <= 3; seed++) {
        const random = new Random(seed * 100 + scriptWorkers);
        const sizes = randomSizes(random);
        const program = steps(random, sizes.length, gpus);
        const times = 1 + random.below(5);
        const seedOf = (open: number, iteration: number): number => (open * 7 + iteration) % 1000;
        const options = { scriptWorkers, gpus, checked, gpuMemory: '1MiB' };
        await on(options, async (runtime) => {
          const make = (): Datum[] =>
            sizes.map((n, d) => runtime.data(Float64Array.from({ length: n }, (_, i) => d + i)));
          const [inserted, played] = [make(), make()];
          const opened = new Set(program.flatMap((step) => (step.open ? [step.seed] : [])));
          const plan = await runtime.plan((graph) =>
            insertAll(graph, program, played, (open) => slot(`s${open}`)),
          );
          const values = Object.fromEntries(
            [...opened].map((open) => [`s${open}`, (i: number) => seedOf(open, i)] as const),
          );
          for (let round = 0; round < 2; round++) {
            await soon(runtime, plan.run({ times, values }));
            for (let i = 0; i < times; i++)
              await soon(
                runtime,
                runtime.run((graph) =>
                  insertAll(graph, program, inserted, (open) => seedOf(open, i)),
                ),
              );
            expect(await valuesOf(played), `seed ${seed}`).toEqual(await valuesOf(inserted));
          }
          plan.close();
          await nothingLeft(runtime, [...inserted, ...played]);
        });
      }
    },
    60_000,
  );

  it('has bodies with values that steer, lists and many arguments', async () => {
    await on({ scriptWorkers: 2, checked: true }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1, 2));
      const by = runtime.data(Float64Array.of(2));
      const many = Array.from({ length: 12 }, (_, i) => runtime.data(new Float64Array(i + 1)));
      const plan = await runtime.plan((graph) => {
        add(graph, built.mixes, { x: by, seed: 1 });
        add(graph, built.scales, { x, by, plus: slot('t') });
        add(graph, built.sums, { parts: [x, by], to: many[3], factor: 1 });
        const args = Object.fromEntries(many.map((datum, i) => [`x${i}`, datum]));
        add(graph, built.many, { ...args, a: slot('a'), b: 0.5 });
      });
      await soon(runtime, plan.run({ times: 2, values: { a: (i) => 10 + i } }));
      // `by` is 7 and 22.
      expect(await valuesOf([by, x])).toEqual([[22], [155, 309]]);
      const sum = 2 * 155 + 22;
      expect(await valuesOf([many[3], many[0]])).toEqual([[sum, 0, 0, 0], [4 * sum + 11 * 0.5]]);
    });
  });

  it('ends when a condition fails, all queues together', async () => {
    await on({ scriptWorkers: 2 }, async (runtime) => {
      const [x, y, z] = [0, 0, 0].map((v) => runtime.data(Float64Array.of(v)));
      const one = runtime.data(Float64Array.of(1));
      const plan = await runtime.plan((graph) => {
        add(graph, built.mayThrow, { x, code: 0 });
        add(graph, built.mayThrow, { x: y, code: 0 });
        add(graph, built.adds, { to: z, x: one, n: 1 });
        add(graph, built.adds, { to: z, x, n: 1 });
      });
      for (let round = 1; round <= 20; round++) {
        const wish = { while: { datum: x, below: 10 * round, every: 1 + (round % 3) } };
        const { iterations } = await soon(runtime, plan.run(wish));
        const [[counted], [other]] = await valuesOf([x, y]);
        expect(counted).toBeGreaterThanOrEqual(10 * round);
        expect(other).toBe(counted);
        expect(iterations).toBeGreaterThan(0);
      }
    });
  });

  it('uses all script workers, also if its tasks have unlike lengths', async () => {
    await on({ scriptWorkers: 2 }, async (runtime) => {
      const data = Array.from({ length: 5 }, () => runtime.data(new Float64Array(3)));
      // Times are taken of a class when it is used first.
      await runtime.run((graph) => {
        for (const x of data) add(graph, built.spins, { x, ms: 1 });
      });
      const plan = await runtime.plan((graph) => {
        for (let i = 0; i < 2; i++) for (const x of data) add(graph, built.spins, { x, ms: 0.1 });
      });
      expect(plan.report.commands).toEqual({ 'script worker 0': 5, 'script worker 1': 5 });
      await soon(runtime, plan.run({ times: 3 }));
      expect((await valuesOf(data)).map(([n]) => n)).toEqual([7, 7, 7, 7, 7]);
    });
  });

  it('is aborted between two bodies', async () => {
    await on({ scriptWorkers: 2 }, async (runtime) => {
      const x = runtime.data(Float64Array.of(0));
      const plan = await runtime.plan((graph) => add(graph, built.spins, { x, ms: 0.2 }));
      const abort = new AbortController();
      const play = plan.run({ times: 1e9, signal: abort.signal });
      setTimeout(() => abort.abort(), 30);
      expect(await errorOf(soon(runtime, play))).toMatchObject({ code: 'ERR_ABORTED' });
      await x.set(Float64Array.of(0));
      await soon(runtime, plan.run({ times: 3 }));
      expect(await valuesOf([x])).toEqual([[3]]);
    });
  });

  it('has its bodies in a trace, on the lanes of their workers', async () => {
    const trace = path.join(folder, 'a.hrtrace');
    await on({ scriptWorkers: 2, trace }, async (runtime) => {
      const data = [1, 2].map(() => runtime.data(Float64Array.of(0)));
      const plan = await runtime.plan((graph) => {
        for (const x of data) add(graph, built.spins, { x, ms: 0.5 });
      });
      await soon(runtime, plan.run({ times: 10 }));
    });
    const { lanes, tasks } = loadTrace([trace]);
    const kinds = Array.from({ length: tasks.count }, (_, row) => lanes[tasks.lane[row]]?.kind);
    expect(kinds.filter((kind) => kind === 'script-worker')).toHaveLength(20);
    expect(tasks.flags.every((flag) => (flag & TaskFlag.failed) === 0)).toBe(true);
  });
});

describe('failures', () => {
  /** Plays the plan to its failure; afterwards `x` has no value, and runtime and plan go on. */
  async function failureOf(
    code: number,
    more: Headrace.RuntimeOptions = {},
  ): Promise<Headrace.HeadraceError> {
    return on({ scriptWorkers: 2, ...more }, async (runtime) => {
      const [x, y, z] = ['x', 'y', 'z'].map((name) => runtime.data(Float64Array.of(0), { name }));
      const plan = await runtime.plan(
        (graph) => {
          add(graph, built.mixes, { x: z, seed: 1 });
          add(graph, built.mayThrow, { x, code: slot('code') });
          add(graph, built.adds, { to: y, x, n: 1 });
        },
        { name: 'step' },
      );
      const values = { code: (i: number) => (i === 3 ? code : 0) };
      const error = await errorOf(soon(runtime, plan.run({ times: 1e6, values })));
      for (const datum of [x, y])
        expect(await errorOf(soon(runtime, datum.read()))).toMatchObject({
          code: 'ERR_DATUM_POISONED',
        });
      for (const datum of [x, y, z]) await datum.set(Float64Array.of(0));
      await soon(runtime, plan.run({ times: 5, values: { code: 0 } }));
      expect(await valuesOf([x, y])).toEqual([[5], [15]]);
      await soon(
        runtime,
        runtime.run((graph) => add(graph, built.mayThrow, { x, code: 0 })),
      );
      expect(await valuesOf([x])).toEqual([[6]]);
      plan.close();
      await nothingLeft(runtime, [x, y, z]);
      return error;
    });
  }

  it('a body that throws: the error names the task, the iteration and the reason', async () => {
    const error = await failureOf(1, { checked: true });
    expect(error).toMatchObject({
      code: 'ERR_TASK_FAILED',
      message: "task mayThrow(code = 1) in iteration 3 of plan 'step' failed: too far",
      details: { plan: 'step', iteration: 3, stage: 'exec' },
      cause: { name: 'RangeError', message: 'too far', code: 'E7' },
    });
  });

  it('a worker that ends: the play fails, and a new worker takes its place', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const error = await failureOf(2);
    expect(error).toMatchObject({
      code: 'ERR_SCRIPT_WORKER',
      message:
        "task mayThrow(code = 2) in iteration 3 of plan 'step' failed: the script worker that ran its body has ended: process.exit(3) was called",
      details: { plan: 'step', iteration: 3 },
    });
    expect(warned).toHaveBeenCalledTimes(1);
  });

  it.each([
    [
      'asksForGraph',
      'ERR_TASK_FAILED',
      "task class 'asksForGraph': its body runs on a script worker",
    ],
    ['rejects', 'ERR_TASK_FAILED', 'later'],
    ['missing', 'ERR_SCRIPT_MODULE', 'cannot load the module'],
  ])('%s: %s', async (name, code, words) => {
    await on({ scriptWorkers: 1 }, async (runtime) => {
      const x = runtime.data(Float64Array.of(0));
      const plan = await runtime.plan((graph) => add(graph, built[name], { x }));
      const error = await errorOf(soon(runtime, plan.run({ times: 2 })));
      expect(error).toMatchObject({ code, details: { plan: 'plan', iteration: 0 } });
      expect(error.message).toContain(`task ${name} in iteration 0 of plan 'plan' failed: `);
      expect(error.message).toContain(words);
    });
  });

  it('several bodies throw in one iteration: the first in program order counts, and none is left', async () => {
    await on({ scriptWorkers: 2 }, async (runtime) => {
      const data = [0, 1].map(() => runtime.data(Float64Array.of(0)));
      const plan = await runtime.plan((graph) => {
        for (const x of data) add(graph, built.mayThrow, { x, code: slot('code') });
      });
      for (let round = 0; round < 20; round++) {
        const error = await errorOf(soon(runtime, plan.run({ values: { code: 1 } })));
        expect(error).toMatchObject({ cause: { message: 'too far' } });
        for (const x of data) await x.set(Float64Array.of(0));
      }
    });
  });

  it('checked: an array is dead when its body has ended', async () => {
    await on({ scriptWorkers: 1, checked: true }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1, 2, 3));
      const plan = await runtime.plan((graph) => {
        add(graph, built.keeps, { x });
        add(graph, built.usesKept, { x, how: 1 });
      });
      const error = await errorOf(soon(runtime, plan.run({ times: 3 })));
      expect(error).toMatchObject({ code: 'ERR_VIEW_OVER', details: { iteration: 0 } });
    });
  });

  it('checked: a body that writes what it only reads fails', async () => {
    await on({ scriptWorkers: 1, checked: true }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1, 2, 3));
      const to = runtime.data('f64', 1);
      const plan = await runtime.plan((graph) => add(graph, built.writesInput, { x, to }));
      const error = await errorOf(soon(runtime, plan.run()));
      expect(error).toMatchObject({ code: 'ERR_READ_FLOW_WRITTEN' });
      expect(await valuesOf([x])).toEqual([[1, 2, 3]]);
    });
  });
});

describe('what is refused', () => {
  it.each([
    ['mixesHere', 1],
    ['mixes', 0],
  ])(
    '%s with %i script workers: its body runs on the JavaScript thread',
    async (name, scriptWorkers) => {
      await on({ scriptWorkers }, async (runtime) => {
        const x = runtime.data(Float64Array.of(0));
        const error = await errorOf(
          runtime.plan((graph) => add(graph, built[name], { x, seed: 1 })),
        );
        expect(error).toMatchObject({ code: 'ERR_PLAN_BODY', details: { task: name } });
      });
    },
  );
});

describe('a saved plan', () => {
  const file = path.join(folder, 'step.plan');
  const machine = { scriptWorkers: 2, workers: 2 };

  async function saved(): Promise<void> {
    await on(machine, async (runtime) => {
      const [x, y] = ['x', 'y'].map((name) => runtime.data(Float64Array.of(1), { name }));
      const plan = await runtime.plan(
        (graph) => {
          add(graph, built.mixes, { x, seed: slot('seed') });
          add(graph, built.adds, { to: y, x, n: 1 });
        },
        { name: 'step' },
      );
      await plan.save(file);
    });
  }

  async function loaded<T>(
    classes: readonly AnyClass[],
    then: (plan: Headrace.Plan, data: readonly Datum[], runtime: Runtime) => Promise<T>,
    more: Headrace.RuntimeOptions = {},
  ): Promise<T> {
    return on({ ...machine, ...more }, async (runtime) => {
      const data = ['y', 'x'].map((name) => runtime.data(Float64Array.of(1), { name }));
      // Other numbers of bodies.
      await runtime.run((graph) => add(graph, built.mayThrow, { x: data[0], code: 0 }));
      return then(await runtime.loadPlan(file, { data, classes }), data, runtime);
    });
  }

  it('plays as the one that was saved', async () => {
    await saved();
    await loaded([built.adds, built.mixes], async (plan, [y, x], runtime) => {
      await soon(runtime, plan.run({ times: 3, values: { seed: (i) => i } }));
      // x: 3, 10, 32; y begins with 2.
      expect(await valuesOf([x, y])).toEqual([[32], [47]]);
    });
  });

  it('is refused with a class of another module, on another machine, or without script workers', async () => {
    await saved();
    const none = (): Promise<never> => Promise.reject(new Error('the plan was loaded'));
    const { definition } = built.mixes;
    const make = built['again'] as unknown as (definition: object) => AnyClass;
    const other = make({ ...definition, module: new URL('other.mjs', import.meta.url).href });
    expect(await errorOf(loaded([built.adds, other], none))).toMatchObject({
      code: 'ERR_PLAN_MISMATCH',
      message: expect.stringContaining(
        "task class 'mixes' differs: its module is other.mjs, and the plan was made with script-classes.mjs",
      ),
    });
    expect(
      await errorOf(loaded([built.adds, built.mixes], none, { scriptWorkers: 1 })),
    ).toMatchObject({
      code: 'ERR_PLAN_MISMATCH',
      message: expect.stringContaining(
        'it was made for 2 workers, 2 script workers and no GPU, and this runtime has 2 workers, 1 script worker and no GPU',
      ),
    });
  });
});

describe('recognised', () => {
  const machine = { scriptWorkers: 2, plans: 'auto' as const };

  it('runs are played, and give what inserted ones give', async () => {
    await on(machine, async (runtime) => {
      const data = Array.from({ length: 8 }, () => runtime.data(Float64Array.of(1)));
      const outcomes: (string | undefined)[] = [];
      let value = 1;
      for (let step = 0; step < 10; step++) {
        const run = runtime.run((graph) => {
          for (let i = 0; i < 10; i++)
            for (const x of data) add(graph, built.mixes, { x, seed: step });
        });
        outcomes.push((await soon(runtime, run)).recognition);
        for (let i = 0; i < 10; i++) value = (3 * value + step) % 1_000_003;
      }
      expect(outcomes.at(-1)).toBe('played');
      expect((await valuesOf(data)).flat()).toEqual(data.map(() => value));
    });
  });

  it('stretches of a run are played, and a body that throws fails the run as if it were inserted', async () => {
    await on(machine, async (runtime) => {
      const data = Array.from({ length: 16 }, () => runtime.data(Float64Array.of(0)));
      const program =
        (failing: number) =>
        (graph: Headrace.Graph): void => {
          for (let n = 0; n < 16 * 2000; n++)
            add(graph, built.mayThrow, { x: data[n % 16], code: n === failing ? 1 : 0 });
        };
      const { recognition } = await soon(runtime, runtime.run(program(-1)));
      expect(recognition).toMatch(/^played \d+ of 32000 tasks$/);
      expect((await valuesOf(data)).flat()).toEqual(data.map(() => 2000));
      const error = await errorOf(soon(runtime, runtime.run(program(20_003))));
      expect(error).toMatchObject({
        code: 'ERR_TASK_FAILED',
        message: expect.stringMatching(/^task mayThrow #\d+ failed: too far$/),
        cause: { message: 'too far', code: 'E7' },
      });
    });
  });
});
