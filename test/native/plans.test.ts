// Plans on real threads, with emulated GPUs: random programs give what insertion gives; conditions, open parameters,
// failures, and every mistake of a program.
import { describe, expect, test } from 'vitest';
import { axpy, copy, failing, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import {
  computed,
  differenceOf,
  inserted,
  loaded,
  played,
  type Readings,
} from '../../devices/simulated/cases/plan-ways.js';
import {
  type Datum,
  Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  slot,
  type TaskHandle,
  task,
  write,
} from '../../index.js';

const options: RuntimeOptions = { workers: 2, hostMemory: '64MiB', checked: true };
const N = 8;

async function opened(more: RuntimeOptions = {}): Promise<{
  runtime: Runtime;
  x: Datum<'f64'>;
  y: Datum<'f64'>;
}> {
  const runtime = await Runtime.create({ ...options, ...more });
  const x = runtime.data(new Float64Array(N).fill(1), { name: 'x' });
  const y = runtime.data(new Float64Array(N).fill(0), { name: 'y' });
  return { runtime, x, y };
}

const first = async (d: Datum<'f64'>): Promise<number> => (await d.read())[0];
const codeOf = async (failed: () => unknown): Promise<string> => {
  try {
    await failed();
    return '';
  } catch (error) {
    return (error as { code: string }).code;
  }
};

/** Some turns of the event loop later, which no kernel waits for. */
const later = (turns: number, then: () => void): void => {
  if (turns === 0) then();
  else setImmediate(() => later(turns - 1, then));
};

test('random programs give what insertion gives', async () => {
  for (let seed = 1001; seed <= 1060; seed++) {
    const program = new PlanProgram(seed);
    const { gpus, workers, computeStreams, gpuMemory, window } = program;
    const { rounds } = await computed(program);
    const results: Readings[] = [];
    const opened = (): Promise<Runtime> =>
      Runtime.create({
        gpus,
        workers,
        computeStreams,
        gpuMemory,
        window,
        checked: seed % 2 === 0,
      });
    const kinds = ['inserted', 'played', ...(seed % 3 === 0 ? ['loaded'] : [])];
    for (const kind of kinds) {
      const runtime = await opened();
      if (kind === 'inserted') results.push(await inserted(program, rounds, runtime));
      else if (kind === 'played') results.push(await played(program, rounds, runtime, later));
      else results.push(await (await loaded(program, rounds, runtime, later, await opened()))());
      await runtime.close();
    }
    expect(differenceOf(results[0], results[1]), `seed ${seed}`).toBe('');
    if (results.length > 2)
      expect(differenceOf(results[0], results[2]), `seed ${seed}, from a file`).toBe('');
  }
}, 120_000);

test('data that stay on a GPU need no host memory', async () => {
  const fill = task({
    name: 'fill',
    flows: { to: write('f64') },
    params: { count: 'i32', value: 'f64' },
    kernel: 'fill_f64',
  });
  const n = 16384;
  const runtime = await Runtime.create({ gpus: 1, gpuMemory: '2MiB', hostMemory: '300KiB' });
  const data = Array.from({ length: 6 }, (_, i) => runtime.data('f64', n, { name: `d${i}` }));
  await runtime.run((graph) => {
    for (const to of data) graph.insert(fill, { to, count: n, value: 1 }, { device: 0 });
  });
  const plan = await runtime.plan((graph) => {
    for (let i = 1; i < data.length; i++)
      graph.insert(axpy, { y: data[i], x: data[i - 1], n, a: 1 }, { device: 0 });
  });
  await plan.run({ times: 2 });
  // Twice the sums of 1, ..., 1.
  expect((await data[5].read())[n - 1]).toBe(21);
  expect(
    await codeOf(() =>
      runtime.plan((graph) => {
        for (let i = 1; i < data.length; i++)
          graph.insert(axpy, { y: data[i], x: data[i - 1], n, a: 1 }, { device: 'host' });
      }),
    ),
  ).toBe('ERR_OUT_OF_HOST_MEMORY');
  await runtime.close();
});

describe('a play', () => {
  test('takes open parameters as numbers and as functions of the iteration', async () => {
    const { runtime, x, y } = await opened();
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y, x, n: N, a: slot('a') });
      graph.insert(axpy, { y, x, n: N, a: slot('t') });
    });
    expect(await plan.run({ times: 4, values: { a: 10 } })).toMatchObject({
      iterations: 4,
      tasks: 8,
    });
    expect(await first(y)).toBe(46);
    await plan.run({ times: 3, values: { a: (i) => i * 100, t: 0 } });
    expect(await first(y)).toBe(346);
    await runtime.close();
  });

  test('ends when its condition no longer holds, on the host and on a GPU', async () => {
    for (const gpus of [0, 1]) {
      const { runtime, x, y } = await opened({ gpus });
      const plan = await runtime.plan((graph) => {
        graph.insert(axpy, { y, x, n: N, a: 1 });
      });
      const every = await plan.run({ while: { datum: y, below: 99.5 } });
      expect(every.iterations).toBe(100);
      const seventh = await plan.run({ while: { datum: y, below: 150, every: 7 } });
      expect(seventh.iterations).toBe(56);
      const limited = await plan.run({ times: 5, while: { datum: y, above: 0, every: 2 } });
      expect(limited.iterations).toBe(5);
      expect(await first(y)).toBe(161);
      await runtime.close();
    }
  });

  test('waits for what was inserted before it, and what is inserted after it waits', async () => {
    const { runtime, x, y } = await opened();
    const seen: number[] = [];
    const look = task({
      name: 'look',
      flows: { y: read('f64') },
      body: ({ y: values }) => void seen.push(values[0]),
    });
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y, x, n: N, a: 1 });
    });
    const run = (): PromiseLike<unknown> =>
      runtime.run((graph) => {
        graph.insert(axpy, { y, x, n: N, a: 100 });
        graph.insert(look, { y });
      });
    run();
    const one = plan.run({ times: 10 });
    run();
    const two = plan.run({ times: 5 });
    const last = run();
    await Promise.all([one, two, last]);
    expect(seen).toEqual([100, 210, 315]);
    await runtime.close();
  });

  test('lets asynchronous bodies that began before it insert tasks and await them', async () => {
    const { runtime, x, y } = await opened();
    const parent = task({
      name: 'parent',
      flows: { y: readWrite('f64') },
      body: async () => {
        for (let i = 0; i < 3; i++)
          await runtime.run((graph) => {
            graph.insert(axpy, { y: z, x, n: N, a: 1 });
          });
      },
    });
    const z = runtime.data(new Float64Array(N), { name: 'z' });
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y, x: z, n: N, a: 1 });
    });
    const run = runtime.run((graph) => {
      graph.insert(parent, { y });
    });
    await plan.run({ times: 2 });
    await run;
    expect(await first(y)).toBe(6);
    await runtime.close();
  });

  test('survives other data that need the memory in between', async () => {
    const { runtime, x, y } = await opened({ gpus: 1, gpuMemory: '8KiB' });
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y, x, n: N, a: 1 });
    });
    await plan.run({ times: 3 });
    const large = runtime.data(new Float64Array(900).fill(2), { name: 'large' });
    const other = runtime.data(new Float64Array(64), { name: 'other' });
    await runtime.run((graph) => {
      graph.insert(axpy, { y: large, x: other, n: 1, a: 1 });
    });
    await plan.run({ times: 3 });
    expect(await first(y)).toBe(6);
    await runtime.close();
  });

  test('says what it does, what waits for it, and that it moves', async () => {
    const { runtime, x, y } = await opened({ watchdog: 0.5 });
    const warnings: string[] = [];
    const heard = (warning: Error): void => void warnings.push(warning.name);
    process.on('warning', heard);
    const plan = await runtime.plan(
      (graph) => {
        graph.insert(axpy, { y, x, n: N, a: 1 });
      },
      { name: 'long' },
    );
    const z = runtime.data(new Float64Array(N), { name: 'z' });
    const controller = new AbortController();
    const play = plan.run({ times: 1e12, signal: controller.signal });
    const other = plan.run({ times: 2 });
    const run = runtime.run((graph) => {
      graph.insert(axpy, { y: z, x, n: N, a: 1 });
    });
    run.done.catch(() => {});
    // More than twice the patience of the watchdog. A worker that has no core for a while is within it.
    const until = performance.now() + 1200;
    while (performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
    const text = runtime.explain();
    controller.abort();
    expect(await codeOf(() => play)).toBe('ERR_ABORTED');
    expect(await codeOf(() => other)).toBe('ERR_DATUM_POISONED');
    process.off('warning', heard);
    expect(text).toMatch(
      /the play of plan 'long' is under way\n {4}worker \d: iteration \d+, before axpy/,
    );
    expect(text).toContain("the play of plan 'long' waits until everything before it is over");
    expect(text).toMatch(/axpy #\d+: pending for .*, waits for the play of plan 'long'/);
    expect(warnings).toEqual([]);
    await run;
    expect(await first(z)).toBe(1);
    await runtime.close();
  });

  test('of no iteration, and of a plan without tasks, changes nothing', async () => {
    const { runtime, x, y } = await opened();
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y, x, n: N, a: 1 });
    });
    expect((await plan.run({ times: 0 })).iterations).toBe(0);
    // Nothing is read, so a datum may lack its value.
    expect(
      await codeOf(() => runtime.run((graph) => void graph.insert(failing, { y: x, code: 1 }))),
    ).toBe('ERR_TASK_FAILED');
    expect((await plan.run({ times: 0 })).iterations).toBe(0);
    expect(await codeOf(() => plan.run({ times: 0, signal: AbortSignal.abort() }))).toBe(
      'ERR_ABORTED',
    );
    await y.restore();
    const empty = await runtime.plan(() => {});
    await empty.run({ times: 3 });
    expect(await first(y)).toBe(0);
    await runtime.close();
  });
});

describe('a play that fails', () => {
  test('names the task and the iteration; later values are gone, others stay', async () => {
    const { runtime, x, y } = await opened();
    const z = runtime.data(new Float64Array(N), { name: 'z' });
    const plan = await runtime.plan(
      (graph) => {
        graph.insert(axpy, { y: z, x, n: N, a: 1 });
        graph.insert(failing, { y, code: slot('code') });
      },
      { name: 'step' },
    );
    const values = { code: (i: number) => (i === 2 ? 7 : 0) };
    const failed = await plan.run({ times: 5, values }).catch((e: Error) => e);
    expect((failed as Error).message).toBe(
      "task failing(code = 7) in iteration 2 of plan 'step' failed: its kernel returned 7",
    );
    expect(failed).toMatchObject({ details: { plan: 'step', iteration: 2, kernelCode: 7 } });
    expect(await codeOf(() => y.read())).toBe('ERR_DATUM_POISONED');
    expect(await first(x)).toBe(1);
    expect(await codeOf(() => plan.run({ values: { code: 0 } }))).toBe('ERR_DATUM_POISONED');
    await y.set(new Float64Array(N));
    await z.set(new Float64Array(N));
    await plan.run({ times: 4, values: { code: 0 } });
    expect(await first(z)).toBe(4);
    await runtime.close();
  });

  test('keeps the values whose last writers have run', async () => {
    const { runtime, x, y } = await opened({ workers: 1 });
    const z = runtime.data(new Float64Array(N), { name: 'z' });
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y: z, x, n: N, a: 1 });
      graph.insert(failing, { y, code: slot('code') });
    });
    const values = { code: (i: number) => (i === 4 ? 7 : 0) };
    expect(await codeOf(() => plan.run({ times: 5, values }))).toBe('ERR_TASK_FAILED');
    expect(await first(z)).toBe(5);
    await runtime.close();
  });

  test('in a plan that goes home, keeps values only where they have arrived', async () => {
    const { runtime, x } = await opened({ gpus: 1, gpuMemory: '2KiB' });
    const blocks = Array.from({ length: 6 }, (_, i) =>
      runtime.data(new Float64Array(64).fill(i), { name: `b${i}` }),
    );
    const plan = await runtime.plan((graph) => {
      for (const y of blocks) graph.insert(axpy, { y, x, n: N, a: 1 }, { device: 0 });
      graph.insert(failing, { y: blocks[0], code: slot('code') }, { device: 0 });
    });
    expect(plan.report.evictions).toBeGreaterThan(0);
    const values = { code: (i: number) => (i === 4 ? 7 : 0) };
    for (let round = 0; round < 5; round++) {
      expect(await codeOf(() => plan.run({ times: 5, values }))).toBe('ERR_TASK_FAILED');
      expect(await codeOf(() => blocks[0].read())).toBe('ERR_DATUM_POISONED');
      for (const [i, y] of blocks.entries()) {
        // A value that is there is that of all five iterations.
        const found = await first(y).catch(() => i + 5);
        expect(found, `round ${round}, block ${i}`).toBe(i + 5);
        await y.set(new Float64Array(64).fill(i));
      }
    }
    await runtime.close();
  });

  test('is aborted by a signal, before it begins or while it plays', async () => {
    const { runtime, x, y } = await opened();
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y, x, n: N, a: 1 });
    });
    const early = plan.run({ times: 3, signal: AbortSignal.abort() });
    expect(await codeOf(() => early)).toBe('ERR_ABORTED');
    await y.restore();
    expect(await first(y)).toBe(0);
    const controller = new AbortController();
    const play = plan.run({ times: 1e12, signal: controller.signal });
    setImmediate(() => controller.abort());
    expect(await codeOf(() => play)).toBe('ERR_ABORTED');
    await y.set(new Float64Array(N));
    await plan.run({ times: 2 });
    expect(await first(y)).toBe(2);
    await runtime.close();
  });
});

describe('mistakes are refused', () => {
  test('in the plan', async () => {
    const { runtime, x, y } = await opened({ gpus: 1 });
    const body = task({ name: 'script', flows: { y: readWrite('f64') }, body: () => {} });
    expect(await codeOf(() => runtime.plan((graph) => void graph.insert(body, { y })))).toBe(
      'ERR_PLAN_BODY',
    );
    const both = task({
      name: 'both',
      flows: { y: readWrite('f64') },
      body: () => {},
      gpuKernel: 'empty',
    });
    const onHost = (): Promise<unknown> =>
      runtime.plan((graph) => void graph.insert(both, { y }, { device: 'host' }));
    expect(await codeOf(onHost)).toBe('ERR_PLAN_BODY');
    expect(await codeOf(() => runtime.plan(7 as never))).toBe('ERR_ARGUMENT_TYPE');
    expect(await codeOf(() => runtime.plan(() => {}, { nme: 'x' } as never))).toBe('ERR_OPTION');
    const never = runtime.data('f64', N, { name: 'never' });
    expect(
      await codeOf(() => runtime.plan((g) => void g.insert(axpy, { y, x: never, n: N, a: 1 }))),
    ).toBe('ERR_NEVER_WRITTEN');
    expect(
      await codeOf(() =>
        runtime.plan(() => {
          throw new Error('mine');
        }),
      ),
    ).toBe('ERR_PROGRAM');
    let late: unknown;
    await runtime.plan((graph) => {
      late = graph;
    });
    expect(
      await codeOf(() =>
        (late as { insert: (...a: unknown[]) => void }).insert(axpy, { y, x, n: 1, a: 1 }),
      ),
    ).toBe('ERR_RUN_OVER');
    expect(() => slot('')).toThrow(/a slot needs a name/);
    await runtime.close();
  });

  test.each([false, true])(
    'after its runtime was closed (a program that fails: %s)',
    async (fails) => {
      const { runtime, x, y } = await opened();
      let open = (): void => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      const planned = codeOf(() =>
        runtime.plan(async (graph) => {
          graph.insert(axpy, { y, x, n: N, a: 1 });
          await gate;
          if (fails) throw new Error('mine');
          graph.insert(axpy, { y, x, n: N, a: 1 });
        }),
      );
      await runtime.close();
      open();
      expect(await planned).toBe('ERR_RUNTIME_CLOSED');
    },
  );

  test('in a play', async () => {
    const { runtime, x, y } = await opened();
    const plan = await runtime.plan((graph) => {
      graph.insert(axpy, { y, x, n: slot('n'), a: 1 });
    });
    const codes: readonly (readonly [unknown, string])[] = [
      [{ times: -1, values: { n: 1 } }, 'ERR_OPTION'],
      [{ times: 1.5, values: { n: 1 } }, 'ERR_OPTION'],
      [{}, 'ERR_SLOT'],
      [{ values: { n: 1, m: 2 } }, 'ERR_OPTION'],
      [{ values: { n: 1.5 } }, 'ERR_ARGUMENT_TYPE'],
      [{ values: { n: 1 }, signal: 7 }, 'ERR_OPTION'],
      [{ values: { n: 1 }, while: { datum: x, above: 1 } }, 'ERR_OPTION'],
      [{ values: { n: 1 }, while: { datum: y } }, 'ERR_OPTION'],
      [{ values: { n: 1 }, while: { datum: y, above: 1, below: 2 } }, 'ERR_OPTION'],
      [{ values: { n: 1 }, while: { datum: y, above: 1, every: 0 } }, 'ERR_OPTION'],
    ];
    for (const [i, [given, code]] of codes.entries())
      expect(await codeOf(() => plan.run(given as never)), `case ${i}`).toBe(code);
    expect(await first(y)).toBe(0);
    const wrong = { n: () => 'one' } as never;
    expect(await codeOf(() => plan.run({ values: wrong }))).toBe('ERR_ARGUMENT_TYPE');
    // A play that has been accepted and fails leaves its results without a value, as a run does.
    await y.restore();
    const throwing = (): number => {
      throw new Error('mine');
    };
    expect(await codeOf(() => plan.run({ values: { n: throwing } }))).toBe('ERR_PROGRAM');
    await y.restore();
    expect(await first(y)).toBe(0);
    x.close();
    expect(await codeOf(() => plan.run({ values: { n: 1 } }))).toBe('ERR_DATUM_CLOSED');
    plan.close();
    expect(await codeOf(() => plan.run({ values: { n: 1 } }))).toBe('ERR_PLAN_CLOSED');
    await runtime.close();
    expect(await codeOf(() => plan.run())).toBe('ERR_RUNTIME_CLOSED');
  });

  test('a play in a body', async () => {
    const { runtime, x, y } = await opened();
    const plan = await runtime.plan((graph) => {
      graph.insert(copy, { y, x, bytes: 8 });
    });
    const inside = task({
      name: 'inside',
      flows: { y: readWrite('f64') },
      body: async () => void (await plan.run()),
    });
    expect(await codeOf(() => runtime.run((graph) => void graph.insert(inside, { y })).done)).toBe(
      'ERR_PLAN_IN_BODY',
    );
    await runtime.close();
  });
});

test('data that a program makes while it plans belong to the plan', async () => {
  const { runtime, x } = await opened();
  let made: Datum<'f64'> | undefined;
  const plan = await runtime.plan((graph) => {
    const z = runtime.data('f64', N, { name: 'z' });
    made = z;
    graph.insert(copy, { y: z, x, bytes: 8 * N });
    graph.insert(axpy, { y: z, x, n: N, a: 1 });
  });
  await plan.run({ times: 3 });
  expect(await first(made as Datum<'f64'>)).toBe(2);
  await runtime.close();
});

describe('while a play is under way', () => {
  const spin = task({
    name: 'spin',
    flows: { y: readWrite('f64') },
    params: { microseconds: 'f64' },
    kernel: 'spin',
  });

  test('reports name it as what tasks wait for and what holds the memory', async () => {
    const { runtime, x, y } = await opened();
    const plan = await runtime.plan(
      (graph) => {
        graph.insert(spin, { y, microseconds: 100 });
      },
      { name: 'spinning' },
    );
    const controller = new AbortController();
    const play = plan.run({ times: 1e9, signal: controller.signal });
    let handle: TaskHandle | undefined;
    const run = runtime.run((graph) => {
      handle = graph.insert(axpy, { y: x, x: y, n: N, a: 1 });
    });
    const held = (): string | undefined =>
      runtime.memory()[0].copies.find(({ datum }) => datum === 'y')?.holder;
    while (held() === undefined) await new Promise((resolve) => setImmediate(resolve));
    expect(held()).toBe("the play of plan 'spinning'");
    expect(run.explain(handle as TaskHandle).reason).toBe("waits for the play of plan 'spinning'");
    controller.abort();
    expect(await codeOf(() => play)).toBe('ERR_ABORTED');
    expect(await codeOf(() => run)).toBe('ERR_DATUM_POISONED');
    await runtime.close();
  });

  test('the watchdog sees that its commands complete', async () => {
    const { runtime, y } = await opened({ watchdog: 2 });
    const plan = await runtime.plan((graph) => {
      graph.insert(spin, { y, microseconds: 20_000 });
    });
    const warnings: string[] = [];
    const listen = (warning: Error): void => void warnings.push(warning.name);
    process.on('warning', listen);
    await plan.run({ times: 200 });
    process.off('warning', listen);
    expect(warnings).toEqual([]);
    await runtime.close();
  });
});
