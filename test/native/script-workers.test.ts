// JavaScript bodies on script workers: results and order, memory, failures and their effects, and the ends of threads.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { threadId } from 'node:worker_threads';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Random } from '../../devices/simulated/machine/random.js';
import type * as Headrace from '../../index.js';
import { loadNative } from '../../native/index.js';
import { TaskTime } from '../../trace/format.js';
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
type Run = Headrace.Run;

const programs = new URL('./programs/', import.meta.url);

/** The error of a run; undefined if it has none. */
function errorOf(runtime: Runtime, run: Run): Promise<Headrace.HeadraceError | undefined> {
  const none = run.then(
    () => undefined,
    (error: unknown) => error as Headrace.HeadraceError,
  );
  return soon(runtime, none);
}

const insert =
  (cls: AnyClass, args: object) =>
  (graph: Headrace.Graph): void =>
    add(graph, cls, args);

describe('results', () => {
  const kinds = ['mixes', 'mixes', 'mixes', 'mixesLater', 'mixesHere', 'adds'];

  /** The same steps, one after the other, on plain arrays. */
  function reference(program: readonly RandomStep[], sizes: readonly number[]): number[][] {
    const data = sizes.map((n, d) => Array.from({ length: n }, (_, i) => d + i));
    for (const {
      cls,
      data: [to, from],
      seed,
    } of program) {
      const n = Math.min(sizes[to], sizes[from]);
      if (cls === 'adds') for (let i = 0; i < n; i++) data[to][i] += data[from][i];
      else data[to] = data[to].map((x) => (3 * x + seed) % 1_000_003);
    }
    return data;
  }

  it.each(RANDOM_MACHINES)(
    '%i script workers and %i GPUs, checked: %s: a random program',
    async (scriptWorkers, gpus, checked) => {
      for (let seed = 1; seed <= 3; seed++) {
        const random = new Random(seed * 100 + scriptWorkers);
        const sizes = randomSizes(random);
        const program = randomSteps(random, 300, kinds, { data: sizes.length, gpus });
        const options = { scriptWorkers, gpus, checked, gpuMemory: '1MiB', window: 64 };
        await on(options, async (runtime) => {
          const data = sizes.map((n, d) =>
            runtime.data(Float64Array.from({ length: n }, (_, i) => d + i)),
          );
          const run = runtime.run((graph) => {
            for (const {
              cls,
              data: [to, from],
              seed,
              device,
            } of program) {
              const n = Math.min(sizes[to], sizes[from]);
              if (cls === 'adds')
                add(
                  graph,
                  built[cls],
                  { to: data[to], x: data[from], n },
                  device === undefined ? {} : { device },
                );
              else add(graph, built[cls], { x: data[to], seed });
            }
          });
          expect((await soon(runtime, run)).tasks).toBe(program.length);
          const values = await Promise.all(data.map(async (datum) => [...(await datum.read())]));
          expect(values).toEqual(reference(program, sizes));
          await nothingLeft(runtime, data);
        });
      }
    },
  );

  it('bodies get arrays of every type, and parameters as on the engine', async () => {
    for (const scriptWorkers of [0, 2]) {
      await on({ scriptWorkers }, async (runtime) => {
        const args = {
          f64: runtime.data(Float64Array.of(0, 1.5)),
          f32: runtime.data(Float32Array.of(0, 2.5)),
          i32: runtime.data(Int32Array.of(0, -3)),
          u32: runtime.data(Uint32Array.of(0, 4e9)),
          u8: runtime.data(Uint8Array.of(0, 255)),
          to: runtime.data('f64', 8),
        };
        await soon(
          runtime,
          runtime.run(insert(built.types, { ...args, half: 0.5, whole: -7, yes: true })),
        );
        expect([...(await args.to.read())]).toEqual([1.5, 2.5, -3, 4e9, 255, 0.5, -7, 1]);
      });
    }
  });

  it('a class with more arguments than a record holds', async () => {
    await on({ scriptWorkers: 1, checked: true }, async (runtime) => {
      const data = Array.from({ length: 12 }, (_, i) =>
        runtime.data(new Float64Array(i + 1).fill(i)),
      );
      const args = Object.fromEntries(data.map((datum, i) => [`x${i}`, datum]));
      await soon(runtime, runtime.run(insert(built.many, { ...args, a: 2, b: 0.5 })));
      const sum = data.reduce((all, _, i) => all + i * (i + 1), 1);
      expect([...(await data[0].read())]).toEqual([sum]);
    });
  });

  it('a class with a list of data', async () => {
    await on({ scriptWorkers: 2, checked: true }, async (runtime) => {
      const parts = [1, 2, 3].map((n) => runtime.data(new Float64Array(n).fill(n)));
      const results = [0, 1, 3].map(() => runtime.data(Float64Array.of(-1)));
      const run = runtime.run((graph) => {
        for (const [i, n] of [0, 1, 3].entries())
          add(graph, built.sums, { parts: parts.slice(0, n), to: results[i], factor: 2 });
      });
      await soon(runtime, run);
      const sums = await Promise.all(results.map(async (to) => (await to.read())[0]));
      expect(sums).toEqual([0, 2, 28]);
    });
  });

  it('bodies see the data themselves, on other threads, with the event loop turning', async () => {
    await on({ scriptWorkers: 2 }, async (runtime) => {
      const data = Array.from({ length: 8 }, () => runtime.data(new Float64Array(3)));
      const program = (graph: Headrace.Graph): void => {
        for (let i = 0; i < 80; i++) {
          add(graph, built.where, { x: data[i % 8] });
          add(graph, built.mixes, { x: data[i % 8], seed: 0 });
          add(graph, built.spins, { x: data[i % 8], ms: 0.5 });
        }
        for (const x of data) add(graph, built.where, { x });
      };
      const here = (x: Datum): number =>
        Number(loadNative().address(runtime.programData.hostArray(x)));
      // A queue takes what another one has not begun, so one worker may end all that a run has left: several runs show both.
      const threads = new Set<number>();
      let turns = 0;
      for (let i = 0; i < 50 && threads.size < 2; i++) {
        await soon(runtime, runtime.run(program));
        const seen = await Promise.all(data.map((x) => x.read()));
        expect(seen.map((x) => x[0])).toEqual(data.map(here));
        for (const [, thread, turned] of seen) {
          threads.add(thread);
          turns = Math.max(turns, turned);
        }
      }
      expect(threads.has(0)).toBe(false);
      expect(threads.size).toBe(2);
      // 40 ms of work per thread without a break: its timers and messages were served meanwhile.
      expect(turns).toBeGreaterThan(0);
    });
  });

  it('without script workers the body runs on the thread of the program', async () => {
    await on({ scriptWorkers: 0 }, async (runtime) => {
      const x = runtime.data(new Float64Array(3));
      await soon(runtime, runtime.run(insert(built.where, { x })));
      expect((await x.read())[1]).toBe(threadId);
    });
  });

  it('a program that fills its window before the first worker has started does not hang', async () => {
    await on({ scriptWorkers: 2, window: 4 }, async (runtime) => {
      const x = runtime.data(Float64Array.of(0));
      const run = runtime.run((graph) => {
        for (let i = 0; i < 100; i++) add(graph, built.mixes, { x, seed: 1 });
      });
      expect((await soon(runtime, run)).tasks).toBe(100);
    });
  });
});

describe('failures', () => {
  const options = { scriptWorkers: 2 };

  /** Runs the class and a task behind it; the error. Afterwards the runtime works, and the datum has no value. */
  async function failureOf(
    cls: AnyClass,
    more: Headrace.RuntimeOptions = {},
    args: object = {},
  ): Promise<Headrace.HeadraceError> {
    return on({ ...options, ...more }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1, 2, 3), { name: 'x' });
      const y = runtime.data(Float64Array.of(1), { name: 'y' });
      const run = runtime.run((graph) => {
        graph.insert(cls, { x, ...args } as never);
        add(graph, built.adds, { to: y, x, n: 1 });
      });
      const error = await errorOf(runtime, run);
      await expect(soon(runtime, y.read())).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
      await x.set(Float64Array.of(1, 1, 1));
      const again = runtime.run((graph) => {
        for (let i = 0; i < 10; i++) add(graph, built.mixes, { x, seed: 1 });
      });
      expect((await soon(runtime, again)).tasks).toBe(10);
      await nothingLeft(runtime, [x, y]);
      return error as Headrace.HeadraceError;
    });
  }

  it('an error keeps its words, its stack and its causes', async () => {
    const error = await failureOf(built.throws);
    expect(error).toMatchObject({
      name: 'HeadraceError',
      code: 'ERR_TASK_FAILED',
      message: expect.stringMatching(/^task throws #\d+ failed: too far$/),
      details: { task: expect.stringMatching(/^throws #\d+$/), stage: 'exec' },
      cause: { message: 'too far', code: 'E7', cause: { message: 'deep' } },
    });
    const cause = error.cause as Error;
    expect(cause.name).toBe('RangeError');
    expect(cause).toBeInstanceOf(RangeError);
    expect(cause.cause).toBeInstanceOf(TypeError);
    expect(cause.stack).toContain('script-classes.mjs');
  });

  it.each([
    ['throwsText', 'ERR_TASK_FAILED', 'just words'],
    ['throwsFunction', 'ERR_TASK_FAILED', '() => {}'],
    ['rejects', 'ERR_TASK_FAILED', 'later'],
    ['misuses', 'ERR_TASK_CLASS', 'a task class needs a name'],
    [
      'missing',
      'ERR_SCRIPT_MODULE',
      "a script worker cannot load the module of task class 'missing', file:.*no-such-module.mjs: ",
    ],
    [
      'program',
      'ERR_SCRIPT_MODULE',
      "a script worker cannot load the module of task class 'program', .* a script worker cannot open a runtime",
    ],
  ])('%s: %s', async (name, code, words) => {
    const error = await failureOf(built[name]);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(
      new RegExp(`^task ${name} #\\d+ failed: ${words.replaceAll(/[()]/g, '\\$&')}`),
    );
  });

  it('a module that does not export the class, or another one of that name', async () => {
    const make = (name: string): AnyClass => (built[name] as unknown as () => AnyClass)();
    expect(await failureOf(make('hides'))).toMatchObject({
      code: 'ERR_SCRIPT_MODULE',
      message: expect.stringContaining(
        "does not export task class 'hidden' (write `export const hidden = task({",
      ),
    });
    await on(options, async (runtime) => {
      const x = runtime.data(Float32Array.of(1));
      expect(await errorOf(runtime, runtime.run(insert(make('differs'), { x })))).toMatchObject({
        code: 'ERR_SCRIPT_MODULE',
        message: expect.stringContaining(
          "exports a task class 'other' with other flows or parameters",
        ),
      });
    });
  });

  describe('a worker that ends', () => {
    afterEach(() => vi.restoreAllMocks());

    it.each([
      ['exits', 'process.exit(3) was called'],
      ['crashes', 'out of nowhere'],
    ])('%s: the task fails, and a new worker takes its place', async (name, reason) => {
      const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
      const error = await failureOf(built[name]);
      expect(error).toMatchObject({
        code: 'ERR_SCRIPT_WORKER',
        message: expect.stringMatching(
          new RegExp(`^task ${name} #\\d+ failed: the script worker that ran its body has ended: `),
        ),
        cause: { message: reason },
      });
      expect(warned).toHaveBeenCalledTimes(1);
      expect(String(warned.mock.calls[0][0])).toMatch(
        /^script worker \d has ended, and a new one takes its place: /,
      );
    });

    it('other runs lose nothing, also if one blocks in an insertion', async () => {
      vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
      await on({ scriptWorkers: 1, window: 16 }, async (runtime) => {
        const [x, y] = [1, 2].map(() => runtime.data(Float64Array.of(0)));
        const dying = errorOf(runtime, runtime.run(insert(built.exits, { x })));
        const run = runtime.run((graph) => {
          for (let i = 0; i < 100; i++) add(graph, built.spins, { x: y, ms: 0 });
        });
        expect((await soon(runtime, run)).tasks).toBe(100);
        expect(await dying).toMatchObject({ code: 'ERR_SCRIPT_WORKER' });
        expect([...(await y.read())]).toEqual([100]);
      });
    });
  });

  it('an aborted run starts no more bodies, and the runtime goes on', async () => {
    await on(options, async (runtime) => {
      const data = [1, 2].map(() => runtime.data(Float64Array.of(0)));
      const abort = new AbortController();
      const run = runtime.run(
        (graph) => {
          for (let i = 0; i < 400; i++) add(graph, built.spins, { x: data[i % 2], ms: 5 });
        },
        { signal: abort.signal },
      );
      setTimeout(() => abort.abort(), 50);
      expect(await errorOf(runtime, run)).toMatchObject({ code: 'ERR_ABORTED' });
      const again = runtime.data(Float64Array.of(1));
      await soon(runtime, runtime.run(insert(built.mixes, { x: again, seed: 4 })));
      expect([...(await again.read())]).toEqual([7]);
    });
  });
});

describe('checked runs', () => {
  it('a body that writes a datum that it only reads fails, and the datum keeps its value', async () => {
    await on({ scriptWorkers: 1, checked: true }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1, 2, 3));
      const to = runtime.data('f64', 1);
      expect(
        await errorOf(runtime, runtime.run(insert(built.writesInput, { x, to }))),
      ).toMatchObject({
        code: 'ERR_READ_FLOW_WRITTEN',
        message: expect.stringContaining("written element 1 of flow 'x'"),
      });
      expect([...(await x.read())]).toEqual([1, 2, 3]);
    });
  });

  it.each([0, 1, 2])('an array is dead when its body has ended (use %i)', async (how) => {
    await on({ scriptWorkers: 1, checked: true }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1, 2, 3));
      const run = runtime.run((graph) => {
        add(graph, built.keeps, { x });
        add(graph, built.usesKept, { x, how });
      });
      expect(await errorOf(runtime, run)).toMatchObject({
        code: 'ERR_VIEW_OVER',
        message: expect.stringContaining(
          "the array of flow 'x' of task class 'keeps' is used after the body has ended",
        ),
      });
    });
  });

  it('an array that was made of it has no elements any more', async () => {
    await on({ scriptWorkers: 1, checked: true }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1, 2, 3));
      const run = runtime.run((graph) => {
        add(graph, built.keeps, { x });
        add(graph, built.usesKept, { x, how: 3 });
      });
      await soon(runtime, run);
      expect([...(await x.read())]).toEqual([0, 2, 3]);
    });
  });
});

describe('reports', () => {
  it('explain and the watchdog name the worker that runs a body', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    await on({ scriptWorkers: 1, watchdog: 0.2 }, async (runtime) => {
      const x = runtime.data(Float64Array.of(0));
      const y = runtime.data(Float64Array.of(0));
      let told = '';
      await soon(
        runtime,
        runtime.run(async (graph) => {
          add(graph, built.awaits, { x, ms: 900 });
          add(graph, built.mixes, { x: y, seed: 1 });
          // The body must have begun.
          while (!/runs on/.test(told)) {
            told = runtime.explain();
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        }),
      );
      expect(told).toMatch(/awaits #\d+.*runs on script worker 0, or is next/);
      expect(told).toMatch(/mixes #\d+.*queued on script worker 0 behind 1 commands/);
      expect(String(warned.mock.calls[0][0])).toMatch(
        /^nothing has completed for .*\n.*script worker 0/s,
      );
    });
    vi.restoreAllMocks();
  });

  it('a trace has the bodies on the lanes of their workers, in order and with times', async () => {
    const trace = path.join(mkdtempSync(path.join(tmpdir(), 'script-')), 'a.hrtrace');
    await on({ scriptWorkers: 2, trace }, async (runtime) => {
      const data = [1, 2].map(() => runtime.data(Float64Array.of(0)));
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 20; i++) add(graph, built.spins, { x: data[i % 2], ms: 2 });
        }),
      );
    });
    const { lanes, tasks } = loadTrace([trace]);
    const rows = Array.from({ length: tasks.count }, (_, row) => row).filter(
      (row) => lanes[tasks.lane[row]].kind === 'script-worker',
    );
    expect(rows).toHaveLength(20);
    const names = new Set(rows.map((row) => lanes[tasks.lane[row]].name));
    expect([...names].every((name) => /^script worker [01]$/.test(name))).toBe(true);
    const [starts, ends] = [TaskTime.execStart, TaskTime.execEnd].map((time) => tasks.times[time]);
    for (const row of rows) expect(ends[row] - starts[row]).toBeGreaterThan(1.9e6);
    for (const lane of new Set(rows.map((row) => tasks.lane[row]))) {
      const mine = rows.filter((row) => tasks.lane[row] === lane);
      mine.sort((a, b) => starts[a] - starts[b]);
      for (let i = 1; i < mine.length; i++)
        expect(starts[mine[i]]).toBeGreaterThanOrEqual(ends[mine[i - 1]]);
    }
  });
});

describe('processes', () => {
  const main = fileURLToPath(new URL('script-main.mjs', programs));
  const start = (args: readonly string[], node: readonly string[] = []) =>
    spawnSync(process.execPath, [...node, ...args], { timeout: 60_000, encoding: 'utf8' });

  it.each(['closed', 'open', 'exit', 'busy'])('a program ends by itself: %s', (mode) => {
    const result = start([main, mode]);
    expect(result, result.stderr).toMatchObject({ status: mode === 'busy' ? 5 : 0, signal: null });
    expect(result.stdout).toContain('[7]\n');
  });

  it('a module in TypeScript is loaded with the loader of the program', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'script-ts-'));
    const file = (name: string, text: string): string => {
      writeFileSync(path.join(folder, name), text);
      return path.join(folder, name);
    };
    const root = new URL('../../', import.meta.url);
    file(
      'classes.ts',
      `import { readWrite, task } from '${new URL('dist/index.js', root)}';
type Count = number;
export const doubles = task({
  name: 'doubles', module: import.meta.url, flows: { x: readWrite('f64') },
  body: ({ x }) => { for (let i: Count = 0; i < x.length; i++) x[i] *= 2; },
});`,
    );
    const program = file(
      'program.ts',
      `import { Runtime } from '${new URL('dist/index.js', root)}';
import { doubles } from './classes.ts';
const runtime = await Runtime.create({ scriptWorkers: 2, window: 8 });
const x = runtime.data(Float64Array.of(1));
await runtime.run((graph) => { for (let i: number = 0; i < 50; i++) graph.insert(doubles, { x }); });
console.log((await x.read())[0] === 2 ** 50);
await runtime.close();`,
    );
    const loader = file(
      'loader.mjs',
      `import { register } from 'node:module'; register('./hooks.mjs', import.meta.url);`,
    );
    file(
      'hooks.mjs',
      `import { readFileSync } from 'node:fs';
export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const source = readFileSync(new URL(url), 'utf8').replaceAll(/: (Count|number)\\b|^type .*$/gm, '');
  return { format: 'module', source, shortCircuit: true };
}`,
    );
    const result = start([program], ['--import', pathToFileURL(loader).href]);
    expect(result, result.stderr).toMatchObject({ status: 0, stdout: 'true\n' });
  });
});
