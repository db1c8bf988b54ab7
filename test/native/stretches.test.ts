// Stretches that one run repeats, on real threads and emulated GPUs: they are played, and mean what inserted tasks mean.
import '../support/patient-holds.js';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  type Datum,
  type Graph,
  type HeadraceError,
  Runtime,
  type RuntimeOptions,
  readWrite,
  type TaskHandle,
  task,
} from '../../index.js';
import { playedIterations, tracedWith } from '../support/played-traces.js';
import { axpy } from '../support/tasks.js';

const N = 8;
const check = task({
  name: 'check',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});
const COLUMNS = 10;
/** Insertions before a stretch is played: 1024, up to the end of a period of 60. */
const STEPS = 200;
const ALL = STEPS * COLUMNS;

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

/** One of STEPS equal steps: a period of 20 tasks is two of them. */
function step(graph: Graph, { x, ys }: Opened, t: number, a = 2 ** -12): TaskHandle[] {
  return ys.map((y, i) =>
    graph.insert(axpy, { y, x: t % 2 === 0 ? x : ys[(i + 1) % COLUMNS], n: N, a }),
  );
}

const firsts = async ({ ys }: Opened): Promise<number[]> =>
  Promise.all(ys.map(async (y) => (await y.read())[0]));

/** Tasks of a run that were played, by its report. */
function playedOf({ recognition, tasks }: { recognition?: string; tasks: number }): number {
  if (recognition === 'played') return tasks;
  return Number(/^played (\d+) of \d+ tasks$/.exec(recognition ?? '')?.[1] ?? 0);
}

/** What a program gives with recognition and without: the same. Returns the tasks that were played. */
async function same(
  more: RuntimeOptions,
  program: (o: Opened, seen: unknown[]) => Promise<number>,
): Promise<number> {
  const results: unknown[] = [];
  let played = 0;
  for (const plans of ['auto', 'off'] as const) {
    const o = await opened({ ...more, plans });
    const seen: unknown[] = [];
    const found = await program(o, seen);
    if (plans === 'auto') played = found;
    results.push([seen, await firsts(o)]);
    await o.runtime.close();
  }
  expect(results[0]).toEqual(results[1]);
  return played;
}

/** With few tasks held back a program waits for its plays, so they have begun when it differs. */
const small = { window: 256 } as const;
const machines = [{}, { gpus: 1 }, { gpus: 3, computeStreams: 2 }, { window: 64 }] as const;

describe('a run that repeats a stretch', () => {
  test.each(machines)('is compared and played from the fourth time on: %o', async (more) => {
    const played = await same(more, async (o, seen) => {
      let count = 0;
      for (let k = 0; k < 2; k++) {
        const report = await o.runtime.run((graph) => {
          for (let t = 0; t < STEPS; t++) step(graph, o, t);
        });
        seen.push(report.tasks);
        count += playedOf(report);
      }
      return count;
    });
    // All of the second run but what is left of a stretch of 60 tasks.
    expect(played).toBeGreaterThan(ALL - 1200 + ALL - 60);
  });

  test.each(['y', 'a', 'priority'] as const)('in which a getter of %s throws', async (name) => {
    await same({}, async (o, seen) => {
      const { x, ys } = o;
      const get = (): never => {
        throw new Error('no value');
      };
      const refused = (graph: Graph): void => {
        const args = { y: ys[0], x, n: N, a: 2 ** -12 };
        const options = {};
        const of = name === 'priority' ? options : args;
        Object.defineProperty(of, name, { get, enumerable: true });
        try {
          graph.insert(axpy, args, options);
        } catch (error) {
          seen.push((error as HeadraceError).code);
        }
      };
      for (let k = 0; k < 2; k++)
        await o.runtime.run((graph) => {
          for (let t = 0; t < STEPS; t++) {
            // Before stretches are played, between two of them, and at the begin of a run.
            if (t % 66 === 0) refused(graph);
            step(graph, o, t);
          }
        });
      expect(seen).toHaveLength(8);
      return 0;
    });
  });

  test.each(machines)('with parameters that count its steps: %o', async (more) => {
    const played = await same(more, async (o) =>
      playedOf(
        await o.runtime.run((graph) => {
          for (let t = 0; t < STEPS; t++) step(graph, o, t, t * 2 ** -14);
        }),
      ),
    );
    expect(played).toBeGreaterThan(ALL - 1200);
  });

  test('after other tasks, and before others', async () => {
    const played = await same(small, async (o) =>
      playedOf(
        await o.runtime.run((graph) => {
          for (let i = 0; i < 777; i++)
            graph.insert(axpy, { y: o.ys[(i * i) % 7], x: o.x, n: N - (i % 3), a: 2 ** -12 });
          for (let t = 0; t < 2 * STEPS; t++) step(graph, o, t);
          for (let i = 0; i < 100; i++)
            graph.insert(axpy, { y: o.ys[(i * i) % 7], x: o.x, n: N - (i % 3), a: 1 });
        }),
      ),
    );
    expect(played).toBeGreaterThan(ALL);
  });

  test('with handles that are those of inserted tasks', async () => {
    const o = await opened(small);
    const handles: TaskHandle[] = [];
    const run = o.runtime.run((graph) => {
      for (let t = 0; t < STEPS; t++) handles.push(...step(graph, o, t));
      const last = handles.at(-1) as TaskHandle;
      handles.push(
        graph.insert(axpy, { y: o.ys[0], x: o.x, n: N, a: 1 }, { after: [last, handles[1500]] }),
      );
    });
    expect(playedOf(await run)).toBeGreaterThan(0);
    expect(handles).toEqual(handles.map((_, i) => handles[0] + i));
    expect(run.explain(handles[1500]).reason).toBe('it is over');
    await o.runtime.close();
  });

  test('with tasks that follow others of the same stretch', async () => {
    const played = await same({}, async (o) =>
      playedOf(
        await o.runtime.run((graph) => {
          for (let t = 0; t < STEPS; t++) {
            const [first] = step(graph, o, t);
            graph.insert(axpy, { y: o.ys[3], x: o.x, n: N, a: 0.5 }, { after: [first] });
          }
        }),
      ),
    );
    expect(played).toBeGreaterThan(ALL - 1200);
  });

  test('and tasks that follow others of the stretch before is inserted', async () => {
    const o = await opened();
    const handles: TaskHandle[] = [];
    const { recognition } = await o.runtime.run((graph) => {
      for (let i = 0; i < ALL; i++) {
        const after = i < 15 ? [] : [handles[i - 15]];
        const args = { y: o.ys[i % COLUMNS], x: o.x, n: N, a: 1 };
        handles.push(graph.insert(axpy, args, { after }));
      }
    });
    expect(recognition).toBe('its tasks have come 1 of 4 times');
    await o.runtime.close();
  });

  test('is marked in a trace', async () => {
    const trace = await tracedWith(
      (file) => opened({ trace: file }).then(({ runtime }) => runtime),
      async (runtime) => {
        const x = runtime.data(new Float64Array(N));
        const ys = Array.from({ length: COLUMNS }, () => runtime.data(new Float64Array(N)));
        const o = { runtime, x, ys };
        const program = (graph: Graph): void => {
          for (let t = 0; t < STEPS; t++) step(graph, o, t);
        };
        await runtime.run(program, { name: 'steps' });
      },
    );
    const iterations = playedIterations(trace).get('steps') as number[];
    expect(iterations.reduce((a, b) => a + b)).toBeGreaterThan(ALL - 1200);
  });
});

describe('what a program does in a repeated stretch', () => {
  const doing: Record<string, (graph: Graph, o: Opened, t: number, seen: unknown[]) => unknown> = {
    'inserts another task': (graph, { x, ys }, t) => {
      if (t % 190 === 189) graph.insert(axpy, { y: ys[2], x, n: N, a: 100 });
    },
    'inserts a task with another parameter': (graph, { x, ys }, t) =>
      graph.insert(axpy, { y: ys[2], x, n: t === 150 ? N - 1 : N, a: 1 }),
    'uses another device': (graph, { x, ys }, t) =>
      graph.insert(axpy, { y: ys[2], x, n: N, a: 1 }, t === 150 ? { device: 'host' } : {}),
    'reads a datum': (_, { ys }, t, seen) => {
      if (t % 50 === 49) seen.push(ys[3].read().then(([first]) => first));
    },
    'awaits a value': async (graph, { ys }, t, seen) => {
      if (t % 10 === 9) seen.push(await graph.value(ys[3]));
    },
    'awaits space': async (graph, _, t) => {
      if (t % 40 === 39) await graph.space();
    },
    'awaits turns of the event loop': async (_, __, t) => {
      if (t % 63 === 62) await setImmediate();
    },
    'sets a datum': (_, { ys }, t) => {
      if (t === 151) void ys[4].set(new Float64Array(N).fill(5));
    },
    'closes a datum that has no part in it': (_, { runtime }, t) => {
      if (t === 155) runtime.data(new Float64Array(N)).close();
    },
    'runs another program': (_, o, t) => {
      if (t === 151) void o.runtime.run((graph) => void step(graph, o, 0, 3));
    },
    'looks at the progress': (_, { runtime }, t) => {
      if (t % 80 === 79) runtime.memory();
    },
  };
  test.each(Object.keys(doing))('%s', async (name) => {
    const isAsync = name.startsWith('awaits');
    const played = await same({ gpus: 1, ...small }, async (o, seen) => {
      const act = doing[name];
      const report = await o.runtime.run(
        isAsync
          ? async (graph) => {
              for (let t = 0; t < 2 * STEPS; t++) {
                step(graph, o, t);
                await act(graph, o, t, seen);
              }
            }
          : (graph) => {
              for (let t = 0; t < 2 * STEPS; t++) {
                step(graph, o, t);
                act(graph, o, t, seen);
              }
            },
      );
      seen.push(report.tasks);
      for (const [i, value] of seen.entries()) seen[i] = await value;
      return playedOf(report);
    });
    expect(played).toBeGreaterThan(300);
  });

  test('data that are made anew end the stretch, and another one begins', async () => {
    const played = await same(small, async (o) => {
      const report = await o.runtime.run((graph) => {
        for (let k = 0; k < 2; k++) {
          const y = o.runtime.data(new Float64Array(N).fill(k));
          for (let t = 0; t < 2 * STEPS; t++) {
            step(graph, o, t);
            graph.insert(axpy, { y, x: o.ys[0], n: N, a: 1 });
          }
          graph.insert(axpy, { y: o.ys[1], x: y, n: N, a: 1 });
          y.close();
        }
      });
      return playedOf(report);
    });
    expect(played).toBeGreaterThan(2 * ALL);
  });

  test('several runs at once', async () => {
    await same({}, async (o) => {
      let open = (): void => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      const runs = [0, 1, 2].map((k) =>
        o.runtime.run(async (graph) => {
          if (k === 1) await gate;
          for (let t = 0; t < STEPS; t++) {
            step(graph, o, t, 2 ** -12 * (k + 1));
            if (t === 130 && k === 2) open();
            if (t % 66 === 65) await Promise.resolve();
          }
        }),
      );
      const reports = await Promise.all(runs);
      return reports.reduce((sum, report) => sum + playedOf(report), 0);
    });
  });

  test('runs that are not awaited', async () => {
    const played = await same({}, async (o) => {
      const runs = Array.from({ length: 6 }, () =>
        o.runtime.run((graph) => {
          for (let t = 0; t < STEPS + 1; t++) step(graph, o, t);
        }),
      );
      const reports = await Promise.all(runs);
      return reports.reduce((sum, report) => sum + playedOf(report), 0);
    });
    expect(played).toBeGreaterThan(0);
  });
});

describe('failures and ends', () => {
  test.each(machines)('a task that fails in a repeated stretch: %o', async (more) => {
    await same(more, async (o, seen) => {
      const spare = o.runtime.data(new Float64Array(N), { name: 'spare' });
      for (const at of [100, 150, 199]) {
        let failing: TaskHandle | undefined;
        const run = o.runtime.run((graph) => {
          for (let t = 0; t < STEPS; t++) {
            step(graph, o, t);
            const handle = graph.insert(check, { y: spare, code: t === at ? 7 : 0 });
            if (t === at) failing = handle;
            graph.insert(axpy, { y: spare, x: o.x, n: N, a: 1 });
          }
        });
        const error: HeadraceError = await run.done.then(
          () => {
            throw new Error('the run has not failed');
          },
          (e: HeadraceError) => e,
        );
        expect(error.code).toBe('ERR_TASK_FAILED');
        expect(error.message).toBe(`task check #${failing} failed: its kernel returned 7`);
        seen.push(await spare.read().catch((e: HeadraceError) => e.code));
        for (const d of [spare, ...o.ys]) await d.set(new Float64Array(N));
      }
      return 0;
    });
  });

  test('an abort leaves data without values, and the runtime usable', async () => {
    const o = await opened();
    const controller = new AbortController();
    const run = o.runtime.run(
      async (graph) => {
        for (let t = 0; ; t++) {
          step(graph, o, t);
          if (t % 100 === 99) await graph.space();
          if (t === 399) controller.abort(new Error('enough'));
        }
      },
      { signal: controller.signal },
    );
    await expect(run.done).rejects.toMatchObject({ name: 'AbortError' });
    for (const y of o.ys) await y.set(new Float64Array(N));
    const report = await o.runtime.run((graph) => {
      for (let t = 0; t < STEPS; t++) step(graph, o, t);
    });
    expect(playedOf(report)).toBeGreaterThan(ALL - 60);
    await o.runtime.close();
  });

  test('a datum without a value: the run fails as an inserted one', async () => {
    await same({}, async (o, seen) => {
      const program = (graph: Graph): void => {
        for (let t = 0; t < STEPS; t++) step(graph, o, t);
      };
      await o.runtime.run(program);
      const failed = o.runtime.run((graph) => void graph.insert(check, { y: o.ys[4], code: 3 }));
      await failed.done.catch(() => {});
      seen.push(await o.runtime.run(program).done.catch((e: HeadraceError) => e.code));
      for (const y of o.ys) await y.set(new Float64Array(N));
      return 0;
    });
  });

  test('a program that throws, and one that misuses insert', async () => {
    const o = await opened();
    const run = o.runtime.run((graph) => {
      for (let t = 0; t < STEPS; t++) step(graph, o, t);
      step(graph, o, 0);
      throw new RangeError('enough');
    });
    await expect(run.done).rejects.toThrow('enough');
    for (const y of o.ys) await y.set(new Float64Array(N));
    const codes: string[] = [];
    await o.runtime.run((graph) => {
      for (let t = 0; t < 2 * STEPS; t++) {
        step(graph, o, t);
        if (t % 100 !== 99) continue;
        try {
          graph.insert(axpy, { y: o.ys[0], x: o.x, n: N } as never);
        } catch (error) {
          codes.push((error as HeadraceError).code);
        }
      }
    });
    expect(codes).toEqual(new Array(4).fill('ERR_MISSING_ARGUMENT'));
    await o.runtime.close();
  });

  test('progress counts what is played', async () => {
    const o = await opened(small);
    const run = o.runtime.run(async (graph) => {
      for (let t = 0; t < 2 * STEPS; t++) {
        step(graph, o, t);
        if (t % 50 === 49) await graph.space();
        if (t % 100 === 99) expect(run.progress.inserted).toBe((t + 1) * COLUMNS);
      }
    });
    const seen: number[] = [];
    run.events.on('progress', ({ inserted, completed }) => {
      expect(completed).toBeLessThanOrEqual(inserted);
      seen.push(completed);
    });
    const report = await run;
    expect(report.tasks).toBe(2 * ALL);
    expect(playedOf(report)).toBeGreaterThan(1000);
    expect(seen.at(-1)).toBe(2 * ALL);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    await o.runtime.close();
  });

  test('a runtime that closes ends a run whose stretches are held back', async () => {
    const o = await opened();
    const run = o.runtime.run(async (graph) => {
      for (let t = 0; t < STEPS; t++) step(graph, o, t);
      await setImmediate();
    });
    await o.runtime.close();
    expect((await run).tasks).toBe(ALL);
  });
});
