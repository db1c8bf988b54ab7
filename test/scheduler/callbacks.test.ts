// Functions of the program that the engine calls in the middle of a pass can call nothing of the runtime, and nothing is lost.
import '../support/removable-guards.js';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import {
  type Datum,
  type Graph,
  type HeadraceError,
  type Plan,
  type Runtime,
  readWrite,
  slot,
  task,
} from '../../index.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';
import { fill } from '../support/tasks.js';

const FULL = { workers: 2, hostMemory: '16MiB', window: 16, overflow: 16 } as const;

interface World {
  readonly runtime: Runtime;
  /** Four elements, which the plan fills with a. */
  readonly x: Datum<'f64'>;
  readonly other: Datum<'f64'>;
  readonly plan: Plan;
  /** Of a run that is open. */
  readonly graph: Graph;
}

const run = (graph: Graph): void => void graph;

/** Calls, by the words with which the error names them. */
const CALLS: readonly (readonly [string, (world: World) => unknown])[] = [
  ['graph.insert()', ({ graph, other }) => graph.insert(fill, { to: other, count: 4, value: 7 })],
  ['graph.value()', ({ graph, other }) => graph.value(other)],
  ['graph.space()', ({ graph }) => graph.space()],
  ['runtime.run()', ({ runtime }) => runtime.run(run)],
  ['runtime.plan()', ({ runtime }) => runtime.plan(() => {})],
  ['runtime.loadPlan()', ({ runtime }) => runtime.loadPlan('none', { data: [], classes: [] })],
  ['runtime.data()', ({ runtime }) => runtime.data(new Float64Array(1))],
  ['runtime.data()', ({ runtime }) => runtime.data('f64', 1)],
  ['runtime.memory()', ({ runtime }) => runtime.memory()],
  ['runtime.recognised()', ({ runtime }) => runtime.recognised()],
  ['runtime.explain()', ({ runtime }) => runtime.explain()],
  ['runtime.story()', ({ runtime, x }) => runtime.story(x)],
  ['runtime.prepare()', ({ runtime }) => runtime.prepare(fill)],
  ['runtime.loadKernels()', ({ runtime }) => runtime.loadKernels('none')],
  ['runtime.close()', ({ runtime }) => runtime.close()],
  ["read() of datum 'other'", ({ other }) => other.read()],
  ["set() of datum 'other'", ({ other }) => other.set(new Float64Array(4))],
  ["restore() of datum 'other'", ({ other }) => other.restore()],
  ["advise() of datum 'other'", ({ other }) => other.advise('host')],
  ["locations() of datum 'other'", ({ other }) => other.locations()],
  ["close() of datum 'other'", ({ other }) => other.close()],
  ["a part of datum 'other'", ({ other }) => other.part(0, 1)],
  ["run() of plan 'step'", ({ plan }) => plan.run({ values: { a: 1 } })],
  ["save() of plan 'step'", ({ plan }) => plan.save('none')],
  ["close() of plan 'step'", ({ plan }) => plan.close()],
];

/** A world with a run under way that has so many tasks that the window is full when functions of the program are called. */
async function inFullWindow(
  options: Parameters<typeof onMachine>[0],
  use: (world: World) => Promise<void>,
): Promise<void> {
  await onMachine(options, async (runtime) => {
    const x = runtime.data(new Float64Array(4), { name: 'x' });
    const other = runtime.data(Float64Array.of(1, 2, 3, 4), { name: 'other' });
    const plan = await runtime.plan(
      (graph) => void graph.insert(fill, { to: x, count: 4, value: slot('a') }),
      { name: 'step' },
    );
    const open: { graph?: Graph; end: () => void } = { end: () => {} };
    const waiting = runtime.run(async (graph) => {
      open.graph = graph;
      await new Promise<void>((resolve) => {
        open.end = resolve;
      });
    });
    try {
      await use({ runtime, x, other, plan, graph: open.graph as Graph });
    } finally {
      open.end();
      await soon(runtime, waiting);
      plan.close();
    }
    await nothingLeft(runtime, [x, other]);
  });
}

const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);
beforeEach(() => void process.on('unhandledRejection', note));
afterEach(async () => {
  // Node tells of a rejection before it serves timers.
  await setTimeout(1);
  process.off('unhandledRejection', note);
  expect(unhandled.splice(0)).toEqual([]);
});

/** Fills the window behind a play, so that it is full in the pass in which the play begins. */
async function insertMany({ runtime, other }: World): Promise<void> {
  await soon(
    runtime,
    runtime.run((graph) => {
      for (let i = 0; i < 100; i++) graph.insert(fill, { to: other, count: 4, value: i });
    }),
  );
}

const remedy = 'call it in the program, or in a function that is given to setImmediate';

describe.each(['off', 'auto'] as const)('with plans %s', (plans) => {
  it.each(CALLS)('a value function cannot call %s', async (words, call) => {
    await inFullWindow({ ...FULL, plans }, async (world) => {
      const { runtime, x, other, plan } = world;
      // A run that is played if runs are recognised.
      const same = (graph: Graph): void => {
        for (let i = 0; i < 40; i++) graph.insert(fill, { to: other, count: 4, value: i });
      };
      for (let i = 0; i < 6; i++) await soon(runtime, runtime.run(same));
      for (const catches of [false, true]) {
        const value = (): number => {
          try {
            call(world);
          } catch (error) {
            if (!catches) throw error;
          }
          return 1;
        };
        const play = plan.run({ values: { a: value } });
        const innocent = runtime.run(same);
        await expect(soon(runtime, play)).rejects.toMatchObject({
          code: 'ERR_CALLBACK',
          message: expect.stringContaining(
            `${words} was called by the function of 'a' in iteration 0 of plan 'step'`,
          ),
          details: { remedy },
        });
        await soon(runtime, innocent);
        expect([...(await other.read())]).toEqual([39, 39, 39, 39]);
      }
      // No iteration was played: the value from before is there.
      await x.restore();
      expect([...(await x.read())]).toEqual([0, 0, 0, 0]);
      await soon(runtime, plan.run({ values: { a: 5 } }));
      expect([...(await x.read())]).toEqual([5, 5, 5, 5]);
    });
  });
});

describe('a value function', () => {
  it('makes the call later: nothing is refused then', async () => {
    await inFullWindow(FULL, async (world) => {
      const { runtime, x, other, plan } = world;
      const later: Promise<unknown>[] = [];
      const value = (i: number): number => {
        later.push(setImmediate().then(() => other.read()));
        return i;
      };
      const play = plan.run({ times: 3, values: { a: value } });
      await insertMany(world);
      await soon(runtime, play);
      expect(await Promise.all(later)).toHaveLength(3);
      expect((await x.read())[0]).toBe(2);
    });
  });

  it('that is asynchronous fails the play once', async () => {
    await inFullWindow(FULL, async ({ runtime, other, plan }) => {
      const value = async (): Promise<number> => (await other.read())[0];
      const play = plan.run({ values: { a: value as never } });
      await expect(soon(runtime, play)).rejects.toMatchObject({ code: 'ERR_CALLBACK' });
      const late = async (): Promise<number> => {
        await setImmediate();
        throw new Error('late');
      };
      const other1 = plan.run({ values: { a: late as never } });
      await expect(soon(runtime, other1)).rejects.toMatchObject({ code: 'ERR_ARGUMENT_TYPE' });
    });
  });

  it('may cancel runs, and abort the play', async () => {
    await inFullWindow(FULL, async ({ runtime, other, plan }) => {
      const [stop, stopRun] = [new AbortController(), new AbortController()];
      const pause = task({
        name: 'pause',
        flows: { of: readWrite('f64') },
        // None starts before the play, which stops them.
        body: async () => await setTimeout(1),
      });
      const play = plan.run({
        values: {
          a: () => {
            first.cancel();
            stopRun.abort();
            stop.abort();
            return 1;
          },
        },
        signal: stop.signal,
      });
      const many = (graph: Graph): void => {
        for (let i = 0; i < 12; i++) graph.insert(pause, { of: other });
      };
      const first = runtime.run(many);
      const second = runtime.run(many, { signal: stopRun.signal });
      const codes = await Promise.allSettled([play, first.done, second.done]);
      expect(codes.map((end) => (end as { reason?: HeadraceError }).reason?.code)).toEqual(
        Array(3).fill('ERR_ABORTED'),
      );
    });
  });
});

describe('the function `explain` of a class', () => {
  it.each(CALLS)(
    'cannot call %s: its task fails with its own error, which says so',
    async (words, call) => {
      await inFullWindow({ ...FULL, plans: 'auto' }, async (world) => {
        const { runtime, x, other } = world;
        const failing = task({
          name: 'failing',
          flows: { of: readWrite('f64') },
          params: { code: 'i32' },
          kernel: 'fail',
          explain: () => {
            call(world);
            return 'some words';
          },
        });
        const run = runtime.run((graph) => {
          for (let i = 0; i < 100; i++) {
            graph.insert(fill, { to: other, count: 4, value: i });
            if (i === 50) graph.insert(failing, { of: x, code: 3 });
          }
        });
        const innocent = insertMany(world);
        await expect(soon(runtime, run)).rejects.toMatchObject({
          code: 'ERR_TASK_FAILED',
          message: expect.stringMatching(
            /its kernel returned 3, and the function that explains it failed: .* was called by the function `explain` of task class 'failing'/,
          ),
        });
        await expect(run).rejects.toThrow(`${words} was called by`);
        await innocent;
        expect([...(await other.read())]).toEqual([99, 99, 99, 99]);
      });
    },
  );
});

describe('a listener of the progress of a run', () => {
  it('is called between passes: it may insert, read and run', async () => {
    await inFullWindow(FULL, async ({ runtime, x, other, graph }) => {
      const made: PromiseLike<unknown>[] = [];
      const run = runtime.run((own) => {
        for (let i = 0; i < 200; i++) own.insert(fill, { to: other, count: 4, value: i });
      });
      run.events.on('progress', () => {
        graph.insert(fill, { to: x, count: 4, value: 3 });
        made.push(
          x.read(),
          runtime.run((own) => void own.insert(fill, { to: x, count: 4, value: 4 })),
        );
      });
      run.events.on('end', () => made.push(x.read()));
      await soon(runtime, run);
      await Promise.all(made);
      expect(made.length).toBeGreaterThanOrEqual(3);
      expect((await x.read())[0]).toBe(4);
    });
  });
});

it('without callbacks: an innocent run cannot insert, and its own calls fail', async () => {
  setGuard('callbacks', false);
  try {
    await inFullWindow(FULL, async (world) => {
      const { runtime, other, plan } = world;
      const codes: string[] = [];
      const value = (): number => {
        other.read().then(undefined, (error: HeadraceError) => codes.push(error.code));
        return 1;
      };
      const play = plan.run({ values: { a: value } });
      await insertMany(world);
      await soon(runtime, play);
      expect(codes).toEqual(['ERR_WINDOW_FULL']);
    });
  } finally {
    setGuard('callbacks', true);
  }
});
