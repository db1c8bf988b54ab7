// Recognised runs on real threads, with emulated GPUs: they mean what inserted runs mean, whatever the program does in between.
import '../support/patient-holds.js';
import { execFileSync } from 'node:child_process';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Random } from '../../devices/simulated/machine/random.js';
import {
  type Datum,
  type Graph,
  list,
  Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  type TaskHandle,
  task,
  write,
} from '../../index.js';
import { playedIterations, tracedWith } from '../support/played-traces.js';
import { axpy } from '../support/tasks.js';

const N = 8;
const copy = task({
  name: 'copy',
  flows: { y: write('f64'), x: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
const check = task({
  name: 'check',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});
const gather = task({
  name: 'gather',
  flows: { to: write('f64'), of: list(read('f64')) },
  kernel: 'empty',
});
const COLUMNS = 10;
const STEPS = 6;

interface Opened {
  readonly runtime: Runtime;
  readonly x: Datum<'f64'>;
  readonly ys: Datum<'f64'>[];
}

async function opened(more: RuntimeOptions = {}): Promise<Opened> {
  const options = { workers: 2, hostMemory: '64MiB', checked: true, plans: 'auto' } as const;
  const runtime = await Runtime.create({ ...options, ...more });
  const x = runtime.data(new Float64Array(N).fill(1), { name: 'x' });
  const ys = Array.from({ length: COLUMNS }, (_, i) =>
    runtime.data(new Float64Array(N).fill(i), { name: `y${i}` }),
  );
  return { runtime, x, ys };
}

/** COLUMNS * STEPS tasks, with the parameter `a` in each. */
function insertAll(graph: Graph, { x, ys }: Opened, a = 1): TaskHandle[] {
  const handles: TaskHandle[] = [];
  for (let step = 0; step < STEPS; step++)
    for (const [i, y] of ys.entries())
      handles.push(
        graph.insert(axpy, { y, x: step % 2 === 0 ? x : ys[(i + 1) % COLUMNS], n: N, a }),
      );
  return handles;
}

const firsts = async ({ ys }: Opened): Promise<number[]> =>
  Promise.all(ys.map(async (y) => (await y.read())[0]));

async function outcome(
  o: Opened,
  program: (graph: Graph) => void | Promise<void>,
): Promise<string> {
  return (await o.runtime.run(program)).recognition ?? '';
}

/** Runs the same tasks until they are played. */
async function recognise(
  o: Opened,
  program = (graph: Graph): void => void insertAll(graph, o),
): Promise<void> {
  for (let i = 0; i < 4; i++)
    expect(await outcome(o, program)).toBe(`its tasks have come ${i + 1} of 4 times`);
  expect(await outcome(o, program)).toBe('played');
}

const machines = [{}, { gpus: 1 }, { gpus: 3, computeStreams: 2 }] as const;

test.each(machines)(
  'equal runs are played from the fifth on, with other parameters: %o',
  async (more) => {
    const values = [];
    for (const plans of ['auto', 'off'] as const) {
      const o = await opened({ ...more, plans });
      const outcomes: unknown[] = [];
      for (let k = 0; k < 8; k++) {
        const report = await o.runtime.run((graph) => void insertAll(graph, o, k / 64));
        expect(report.tasks).toBe(COLUMNS * STEPS);
        outcomes.push(report.recognition);
      }
      expect(outcomes.slice(4)).toEqual(new Array(4).fill(plans === 'auto' ? 'played' : undefined));
      values.push(await firsts(o));
      await o.runtime.close();
    }
    expect(values[0]).toEqual(values[1]);
  },
);

test('handles of a played run are numbers of tasks that are over, and the next run goes on counting', async () => {
  const o = await opened();
  const taken: TaskHandle[] = [];
  for (let k = 0; k < 6; k++)
    await o.runtime.run((graph) => void taken.push(...insertAll(graph, o)));
  expect(new Set(taken).size).toBe(taken.length);
  const run = o.runtime.run((graph) => {
    const last = taken.at(-1) as TaskHandle;
    graph.insert(axpy, { y: o.ys[0], x: o.x, n: N, a: 1 }, { after: [last, taken[0]] });
  });
  await run;
  expect(run.explain(taken.at(-1) as TaskHandle).reason).toBe('it is over');
  await o.runtime.close();
});

describe('a run that differs from the plan is inserted', () => {
  const differing: Record<
    string,
    (graph: Graph, o: Opened, n: number, last: TaskHandle) => unknown
  > = {
    'in a datum': (g, { x, ys }) => g.insert(axpy, { y: ys[1], x, n: N, a: 1 }),
    'in a flow': (g, { ys }) => g.insert(axpy, { y: ys[0], x: ys[1], n: N, a: 1 }),
    'in a parameter that was always the same': (g, { x, ys }) =>
      g.insert(axpy, { y: ys[0], x, n: N - 1, a: 1 }),
    'in the class': (g, { x, ys }) => g.insert(copy, { y: ys[0], x, bytes: 8 * N }),
    'in the device': (g, { x, ys }) =>
      g.insert(axpy, { y: ys[0], x, n: N, a: 1 }, { device: 'host' }),
    'in the priority': (g, { x, ys }) =>
      g.insert(axpy, { y: ys[0], x, n: N, a: 1 }, { priority: 1 }),
    'in the tasks before': (g, { x, ys }, _, last) =>
      g.insert(axpy, { y: ys[0], x, n: N, a: 1 }, { after: [last] }),
    'in its length': () => {},
  };
  test.each(Object.keys(differing))('%s', async (name) => {
    const values = [];
    for (const plans of ['auto', 'off'] as const) {
      const o = await opened({ plans, gpus: 1 });
      const program = (differs: boolean) => (graph: Graph) => {
        let last = 0 as TaskHandle;
        for (let n = 0; n < 80; n++) {
          const args = { y: o.ys[n % COLUMNS], x: o.x, n: N, a: 1 };
          if (differs && n === 50) differing[name](graph, o, n, last);
          else last = graph.insert(axpy, args);
        }
      };
      if (plans === 'auto') await recognise(o, program(false));
      else for (let i = 0; i < 5; i++) await o.runtime.run(program(false));
      const odd = await outcome(o, program(true));
      if (plans === 'auto') expect(odd).toBe('task 50 is not the expected one');
      const even = await outcome(o, program(false));
      if (plans === 'auto') expect(even).toBe('played');
      values.push(await firsts(o));
      await o.runtime.close();
    }
    expect(values[0]).toEqual(values[1]);
  });

  test('in that it ends early, or goes on', async () => {
    const o = await opened();
    const some = (count: number) => (graph: Graph) => {
      for (let n = 0; n < count; n++)
        graph.insert(axpy, { y: o.ys[n % COLUMNS], x: o.x, n: N, a: 1 });
    };
    await recognise(o, some(60));
    expect(await outcome(o, some(55))).toBe('it has 55 of 60 tasks');
    expect(await outcome(o, some(60))).toBe('played');
    expect(await outcome(o, some(61))).toBe('task 60 is not the expected one');
    expect((await firsts(o))[0]).toBe(5 * 6 + 6 + 6 + 7);
    await o.runtime.close();
  });
});

/** As the recognised run, and `more` tasks behind it. */
const longer = (o: Opened, more: number) => (graph: Graph) => {
  insertAll(graph, o);
  for (let i = 0; i < more; i++) graph.insert(axpy, { y: o.ys[0], x: o.x, n: N, a: 1 });
};

test('a run that begins as a plan is played in the end, too, and the plan stays', async () => {
  const o = await opened();
  await recognise(o);
  const other = longer(o, 1);
  const outcomes: (string | undefined)[] = [];
  for (let i = 0; i < 12; i++) outcomes.push(await outcome(o, other));
  expect(outcomes[0]).toBe('task 60 is not the expected one');
  expect(outcomes.at(-1)).toBe('played');
  expect(await outcome(o, longer(o, 0))).toBe('played');
  await o.runtime.close();
});

test('a plan as which four new runs in a row begin is given up, and needs twice as many runs', async () => {
  const o = await opened();
  await recognise(o);
  for (const more of [1, 2, 3, 4]) await outcome(o, longer(o, more));
  const outcomes: string[] = [];
  while (outcomes.length < 20 && outcomes.at(-1) !== 'played')
    outcomes.push(await outcome(o, longer(o, 0)));
  expect(outcomes[0]).toBe('its tasks have come 1 of 8 times');
  expect(outcomes.indexOf('played')).toBeGreaterThanOrEqual(8);
  await o.runtime.close();
});

describe('what a program does before its end', () => {
  const doing: Record<string, (graph: Graph, o: Opened, seen: number[]) => Promise<void> | void> = {
    'reads a datum': async (_, { ys }, seen) => void seen.push((await ys[0].read())[0]),
    'asks for a value': async (graph, { ys }, seen) => void seen.push(await graph.value(ys[0])),
    'asks for space': (graph) => graph.space(),
    'sets a datum': (_, { ys }) => void ys[1].set(new Float64Array(N).fill(7)),
    'runs another program': (_, o) => void o.runtime.run((graph) => void insertAll(graph, o, 0.5)),
    'awaits turns of the event loop': async () => {
      await setImmediate();
      await setImmediate();
    },
    'advises a device': (_, { ys }) => ys[0].advise('host'),
    'makes data': (graph, { runtime, x }) => {
      const y = runtime.data('f64', N);
      graph.insert(copy, { y, x, bytes: 8 * N });
      y.close();
    },
  };
  test.each(Object.keys(doing))('%s', async (name) => {
    const results = [];
    for (const plans of ['auto', 'off'] as const) {
      const o = await opened({ plans });
      const seen: number[] = [];
      const program = (acts: boolean) => async (graph: Graph) => {
        insertAll(graph, o);
        if (acts) await doing[name](graph, o, seen);
        insertAll(graph, o, 0.25);
      };
      for (let i = 0; i < 6; i++) await o.runtime.run(program(false));
      for (let i = 0; i < 3; i++) expect(await outcome(o, program(true))).not.toBe('played');
      results.push([seen, await firsts(o)]);
      await o.runtime.close();
    }
    expect(results[0]).toEqual(results[1]);
  });

  test('a program that awaits what is there already is played', async () => {
    const o = await opened();
    const program = async (graph: Graph): Promise<void> => {
      insertAll(graph, o);
      await Promise.resolve();
      insertAll(graph, o);
    };
    for (let i = 0; i < 4; i++) await o.runtime.run(program);
    expect(await outcome(o, program)).toBe('played');
    await o.runtime.close();
  });

  test('its progress and its tasks are those of inserted tasks', async () => {
    const o = await opened();
    await recognise(o);
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const handles: TaskHandle[] = [];
    const run = o.runtime.run(async (graph) => {
      handles.push(...insertAll(graph, o));
      await gate;
    });
    expect(run.progress.inserted).toBe(COLUMNS * STEPS);
    expect(run.explain(handles[0]).task).toContain(`#${handles[0]}`);
    go();
    expect((await run).recognition).not.toBe('played');
    await o.runtime.close();
  });
});

describe('failures and ends', () => {
  const program = (o: Opened, spare: Datum<'f64'>, code: number) => (graph: Graph) => {
    insertAll(graph, o);
    graph.insert(check, { y: spare, code });
    graph.insert(axpy, { y: spare, x: o.x, n: N, a: 1 });
  };

  test.each(machines)('of a played run are those of an inserted run: %o', async (more) => {
    const texts = [];
    for (const plans of ['auto', 'off'] as const) {
      const o = await opened({ ...more, plans });
      const spare = o.runtime.data(new Float64Array(N), { name: 'spare' });
      const seen: unknown[] = [];
      // A run that fails is not counted, but shows that the code is a parameter that changes.
      for (const code of [0, 0, 0, 7, 0, 9, 0]) {
        const end = await o.runtime.run(program(o, spare, code)).done.catch((e: Error) => e);
        if (code === 0) {
          expect(end).not.toBeInstanceOf(Error);
          seen.push((end as { tasks: number }).tasks);
          if (plans === 'auto' && seen.length > 6)
            expect(end).toMatchObject({ recognition: 'played' });
          continue;
        }
        expect(end).toMatchObject({ code: 'ERR_TASK_FAILED', details: { stage: 'exec' } });
        seen.push((end as Error).message);
        seen.push(await spare.read().catch((e: { code: string }) => e.code));
        for (const d of [spare, ...o.ys]) await d.set(new Float64Array(N));
      }
      seen.push(await firsts(o));
      texts.push(seen);
      await o.runtime.close();
    }
    expect(texts[0]).toEqual(texts[1]);
    expect(String(texts[0][6])).toMatch(/^task check #\d+ failed: its kernel returned 9/);
  });

  test('a program that throws while it is compared leaves what inserted tasks leave', async () => {
    const o = await opened();
    await recognise(o);
    const run = o.runtime.run((graph) => {
      insertAll(graph, o);
      throw new RangeError('enough');
    });
    await expect(run.done).rejects.toThrow('enough');
    await Promise.all(o.ys.map((y, i) => y.set(new Float64Array(N).fill(i))));
    expect(await outcome(o, (graph) => void insertAll(graph, o))).toBe('played');
    await o.runtime.close();
  });

  test('a run that is aborted while it is compared, or before its play, rejects', async () => {
    const o = await opened();
    await recognise(o);
    const aborted = o.runtime.run((graph) => void insertAll(graph, o), {
      signal: AbortSignal.abort(new Error('at once')),
    });
    await expect(aborted.done).rejects.toMatchObject({ name: 'AbortError' });
    const run = o.runtime.run(async (graph) => {
      insertAll(graph, o);
      await Promise.resolve();
    });
    run.cancel('later');
    await expect(run.done).rejects.toMatchObject({ name: 'AbortError' });
    await Promise.all(o.ys.map((y, i) => y.set(new Float64Array(N).fill(i))));
    await o.runtime.run((graph) => void insertAll(graph, o));
    await o.runtime.close();
  });

  test('a misuse while insertions are compared throws what it throws otherwise', async () => {
    const throwing = [
      ['ERR_ARGUMENT_TYPE', 'y'],
      ['ERR_ARGUMENT_TYPE', 'a'],
      ['ERR_OPTION', 'priority'],
    ] as const;
    const misuse: [string, (graph: Graph, o: Opened) => unknown][] = [
      ['ERR_MISSING_ARGUMENT', (g, { x, ys }) => g.insert(axpy, { y: ys[0], x, n: N } as never)],
      [
        'ERR_UNKNOWN_ARGUMENT',
        (g, { x, ys }) => g.insert(axpy, { y: ys[0], x, n: N, a: 1, b: 1 } as never),
      ],
      ['ERR_ARGUMENT_TYPE', (g) => g.insert(axpy, undefined as never)],
      ['ERR_ARGUMENT_TYPE', (g) => g.insert(undefined as never, {} as never)],
      ['ERR_ARGUMENT_TYPE', (g, { x, ys }) => g.insert(axpy, { y: ys[0], x, n: 0.5, a: 1 })],
      [
        'ERR_OPTION',
        (g, { x, ys }) => g.insert(axpy, { y: ys[0], x, n: N, a: 1 }, { priorities: 1 } as never),
      ],
      [
        'ERR_NO_DEVICE',
        (g, { x, ys }) => g.insert(axpy, { y: ys[0], x, n: N, a: 1 }, { device: 5 }),
      ],
      [
        'ERR_ARGUMENT_TYPE',
        (g, { x, ys }) => {
          const args = {
            get y() {
              g.insert(axpy, { y: ys[0], x, n: N, a: 1 });
              return ys[0];
            },
            ...{ x, n: N, a: 1 },
          };
          return g.insert(axpy, args);
        },
      ],
      ...throwing.map(([code, name]): (typeof misuse)[number] => [
        code,
        (g, { x, ys }) => {
          const args = { y: ys[0], x, n: N, a: 1 };
          const options = {};
          const get = (): never => {
            throw new Error('no value');
          };
          const of = name === 'priority' ? options : args;
          Object.defineProperty(of, name, { get, enumerable: true });
          return g.insert(axpy, args, options);
        },
      ]),
    ];
    for (const [code, call] of misuse) {
      const o = await opened();
      await recognise(o);
      const caught: unknown[] = [];
      const misused = (graph: Graph): void => {
        try {
          call(graph, o);
        } catch (error) {
          caught.push((error as { code: string }).code);
        }
      };
      await o.runtime.run((graph) => {
        misused(graph);
        insertAll(graph, o);
      });
      await o.runtime.run((graph) => {
        graph.insert(axpy, { y: o.ys[0], x: o.x, n: N, a: 1 });
        misused(graph);
      });
      expect(caught).toEqual([code, code]);
      await o.runtime.close();
    }
  });

  describe.each(['the expected value', 'another value'])(
    'getters that insert the next task and return %s',
    (what) => {
      test.each(['y', 'x', 'n', 'a', 'priority'] as const)('of %s', async (getter) => {
        const values: number[][] = [];
        for (const plans of ['off', 'auto'] as const) {
          const o = await opened({ plans, checked: false });
          const { x, ys } = o;
          const other = { y: ys[7], x: ys[8], n: 2, a: 8, priority: 5 };
          for (let i = 0; i < 7; i++) {
            const codes: string[] = [];
            await o.runtime.run((graph) => {
              for (let k = 0; k < 100; k++) {
                const args = { y: ys[k % COLUMNS], x, n: N, a: i };
                if (i < 6 || k !== 50) {
                  graph.insert(axpy, args);
                  continue;
                }
                const given = { ...args, a: 7, priority: 0 };
                const isOption = getter === 'priority';
                let calls = 0;
                const get = (): unknown => {
                  // Options may be read twice.
                  if (calls++ === 0 || !isOption) graph.insert(axpy, { ...args, a: 1000 });
                  return (what === 'another value' ? other : given)[getter];
                };
                const nested = { ...args, a: 7 };
                const options = isOption ? {} : undefined;
                Object.defineProperty(options ?? nested, getter, { get, enumerable: true });
                try {
                  graph.insert(axpy, nested, options);
                } catch (error) {
                  codes.push((error as { code: string }).code);
                }
              }
            });
            expect(codes).toEqual(i < 6 ? [] : ['ERR_ARGUMENT_TYPE']);
          }
          values.push([...(await ys[0].read()), ...(await ys[7].read())]);
          await o.runtime.close();
        }
        expect(values[1]).toEqual(values[0]);
      });
    },
  );

  test('a runtime that closes ends a run that is compared', async () => {
    const o = await opened();
    await recognise(o);
    const run = o.runtime.run(async (graph) => {
      insertAll(graph, o);
      await setImmediate();
    });
    await o.runtime.close();
    expect((await run).tasks).toBe(COLUMNS * STEPS);
  });
});

describe('data', () => {
  test('a plan ends with its data, and data that are made anew make no plan', async () => {
    const o = await opened();
    await recognise(o);
    o.ys[3].close();
    const error = await o.runtime
      .run((graph) => void insertAll(graph, o))
      .done.catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'ERR_DATUM_CLOSED' });
    for (let i = 0; i < 8; i++) {
      const ys = o.ys.map(() => o.runtime.data(new Float64Array(N)));
      const report = await o.runtime.run((graph) => void insertAll(graph, { ...o, ys }));
      expect(report.recognition).not.toBe('played');
      expect((await ys[0].read())[0]).toBeGreaterThan(0);
      for (const y of ys) y.close();
    }
    await o.runtime.close();
  });

  test.each([0, 1])(
    'that do not fit into the memory together with those of a plan, with %i GPUs',
    async (gpus) => {
      const values = [];
      for (const plans of ['auto', 'off'] as const) {
        const memory = { hostMemory: COLUMNS * 512 + 4096, gpuMemory: 3 * 512, gpus };
        const o = await opened({ ...memory, plans, pinnedMemory: 4096 });
        for (let i = 0; i < 6; i++)
          await o.runtime.run((graph) => void insertAll(graph, o, 1 / 64));
        values.push(await firsts(o));
        await o.runtime.close();
      }
      expect(values[0]).toEqual(values[1]);
    },
  );

  test('lists, and tasks with JavaScript bodies', async () => {
    const o = await opened();
    const to = o.runtime.data(new Float64Array(N));
    const program = (graph: Graph): void => {
      insertAll(graph, o);
      graph.insert(gather, { to, of: o.ys });
    };
    await recognise(o, program);
    const script = task({ name: 'script', flows: { y: readWrite('f64') }, body: () => {} });
    const scripted = (graph: Graph): void => {
      graph.insert(script, { y: to });
      insertAll(graph, o);
    };
    for (let i = 0; i < 4; i++) await o.runtime.run(scripted);
    expect(await outcome(o, scripted)).toContain("a plan cannot contain task class 'script'");
    await o.runtime.close();
  });
});

test('runs of few tasks with thousands of data each are planned', async () => {
  const o = await opened();
  // The planner of few tasks has small tables, with room for each task.
  const of = Array.from({ length: 3000 }, (_, i) => o.ys[i % COLUMNS]);
  for (let i = 0; i < 6; i++) {
    const said = await outcome(o, (graph) => {
      for (let k = 0; k < 48; k++) graph.insert(gather, { to: o.x, of });
    });
    // That such a program is played depends on time: it may insert more slowly than it would be played.
    expect(said).not.toContain('no plan');
  }
  await o.runtime.close();
});

test('runs that are not awaited, with reads in between, see the values of their place', async () => {
  const values = [];
  for (const plans of ['auto', 'off'] as const) {
    const o = await opened({ plans });
    for (let i = 0; i < 5; i++) await o.runtime.run((graph) => void insertAll(graph, o, 1 / 64));
    const reads: Promise<number[]>[] = [];
    const outcomes: Promise<string | undefined>[] = [];
    for (let i = 0; i < 12; i++) {
      const run = o.runtime.run((graph) => void insertAll(graph, o, 1 / 64));
      outcomes.push(run.done.then(({ recognition }) => recognition));
      if (i % 3 === 0) reads.push(firsts(o));
    }
    values.push(await Promise.all(reads));
    if (plans === 'auto') expect(await Promise.all(outcomes)).toContain('played');
    await o.runtime.close();
  }
  expect(values[0]).toEqual(values[1]);
});

test('a trace marks what was played', async () => {
  const trace = await tracedWith(
    (file) => opened({ trace: file }).then(({ runtime }) => runtime),
    async (runtime) => {
      const x = runtime.data(new Float64Array(N));
      const ys = Array.from({ length: COLUMNS }, () => runtime.data(new Float64Array(N)));
      for (let i = 0; i < 7; i++)
        await runtime.run((graph) => void insertAll(graph, { runtime, x, ys }), { name: 'step' });
    },
  );
  expect(playedIterations(trace)).toEqual(new Map([['step', [180]]]));
});

test('few sequences are kept', async () => {
  const o = await opened();
  const step = (k: number) => (graph: Graph) => {
    for (let n = 0; n < 60; n++)
      graph.insert(axpy, { y: o.ys[(n + k) % COLUMNS], x: o.x, n: N - (k >> 3), a: 1 });
  };
  const other = Array.from({ length: 20 }, (_, k) => {
    const y = o.runtime.data(new Float64Array(N));
    return (graph: Graph) => {
      graph.insert(axpy, { y, x: o.x, n: N, a: k });
      insertAll(graph, o);
    };
  });
  await recognise(o, step(0));
  for (const program of other) for (let i = 0; i < 5; i++) await o.runtime.run(program);
  expect(await outcome(o, other[19])).toBe('played');
  expect(await outcome(o, step(0))).toBe('its tasks have come 3 of 4 times');
  await o.runtime.close();
});

/** A program of several rounds, some of which differ, with reads, sets and runs that are not awaited. */
async function session(
  seed: number,
  plans: 'auto' | 'off',
): Promise<{ seen: number[][]; played: number }> {
  const r = new Random(seed);
  const o = await opened({
    plans,
    gpus: r.below(3),
    gpuMemory: r.pick(['1MiB', 4096]),
    window: r.pick([64, 1024]),
  });
  const seen: Promise<number[]>[] = [];
  const runs: Promise<void>[] = [];
  let played = 0;
  const programs = Array.from({ length: 2 }, () => {
    const steps = Array.from({ length: r.between(48, 90) }, () => ({
      y: r.below(COLUMNS),
      x: r.below(COLUMNS),
      device: r.chance(0.1) ? ('host' as const) : undefined,
      priority: r.chance(0.1) ? r.between(-2, 2) : undefined,
      after: r.chance(0.1),
    }));
    return (a: number, odd: number) => (graph: Graph) => {
      const handles: TaskHandle[] = [];
      for (const [n, { y, x, device, priority, after }] of steps.entries()) {
        const from = x === y ? o.x : o.ys[x];
        const to = o.ys[n === odd ? (x + 1) % COLUMNS : y];
        const options = {
          ...(device === undefined ? {} : { device }),
          ...(priority === undefined ? {} : { priority }),
          ...(after && n > 3 ? { after: [handles[n >> 1]] } : {}),
        };
        const args = { y: to, x: to === from ? o.x : from, n: N, a: n % 3 === 0 ? a : 1 / 64 };
        handles.push(graph.insert(axpy, args, options));
      }
    };
  });
  for (let k = 0; k < 40; k++) {
    const program = programs[r.chance(0.8) ? 0 : 1](k / 1024, r.chance(0.1) ? r.below(48) : -1);
    const run = o.runtime.run(program).done.then(({ recognition }) => {
      if (recognition === 'played') played++;
    });
    runs.push(run);
    if (r.chance(0.8)) await run;
    if (r.chance(0.2)) seen.push(firsts(o));
    if (r.chance(0.1)) await o.ys[r.below(COLUMNS)].set(new Float64Array(N).fill(k));
  }
  await Promise.all(runs);
  seen.push(firsts(o));
  const values = await Promise.all(seen);
  await o.runtime.close();
  return { seen: values, played };
}

test('random sessions give what they give without recognition', async () => {
  let played = 0;
  for (let seed = 1; seed <= 12; seed++) {
    const found = await session(seed, 'auto');
    expect(found.seen, `seed ${seed}`).toEqual((await session(seed, 'off')).seen);
    played += found.played;
  }
  expect(played).toBeGreaterThan(20);
}, 60_000);

test('a process that runs no code made of text recognises runs, too', () => {
  const program = `
    import { Runtime, read, readWrite, task } from 'headrace';
    const axpy = task({
      name: 'axpy', flows: { y: readWrite('f64'), x: read('f64') }, params: { n: 'i32', a: 'f64' }, kernel: 'add_f64',
    });
    const runtime = await Runtime.create({ workers: 1 });
    const x = runtime.data(Float64Array.of(1));
    const y = runtime.data(new Float64Array(1));
    let report;
    for (let i = 0; i < 8; i++)
      report = await runtime.run((graph) => {
        for (let k = 0; k < 100; k++) graph.insert(axpy, { y, x, n: 1, a: i });
      });
    console.log(report.recognition, (await y.read())[0]);
    await runtime.close();
  `;
  const words = ['--disallow-code-generation-from-strings', '--input-type=module', '-e', program];
  expect(execFileSync(process.execPath, words, { encoding: 'utf8' })).toBe('played 2800\n');
});
