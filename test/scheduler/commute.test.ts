// Tasks that commute on a datum: one after the other, in the order in which they become ready, and in program order with all others.
import { afterEach, describe, expect, it, test } from 'vitest';
import '../support/removable-guards.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import { Random } from '../../devices/simulated/machine/random.js';
import {
  commute,
  type Datum,
  type HeadraceError,
  list,
  type Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  task,
  write,
} from '../../index.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';
import { delay } from '../support/tasks.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const MACHINES: readonly RuntimeOptions[] = [
  { workers: 1 },
  { workers: 2, checked: true, window: 8 },
  { workers: 2, gpus: 2, driver: 'emulated', gpuMemory: '64KiB' },
  { workers: 1, scriptWorkers: 2, window: 64 },
];

const add = task({
  name: 'add',
  flows: { total: commute('f64'), from: read('f64') },
  params: { count: 'i32', factor: 'f64' },
  kernel: 'add_f64',
});
const addScript = task({
  name: 'add in JavaScript',
  flows: { total: commute('f64'), from: read('f64') },
  body: ({ total, from }) => void (total[0] += from[0]),
});
const addLater = task({
  name: 'add later',
  flows: { total: commute('f64'), from: read('f64') },
  body: async ({ total, from }) => {
    const [value] = total;
    await turn();
    total[0] = value + from[0];
  },
});
const both = task({
  name: 'both',
  flows: { x: commute('f64'), y: commute('f64') },
  params: { by: 'f64' },
  body: async ({ x, y, by }) => {
    const [a, b] = [x[0], y[0]];
    await turn();
    x[0] = a + by;
    y[0] = b + 2 * by;
  },
});
const all = task({
  name: 'all',
  flows: { totals: list(commute('f64')) },
  body: ({ totals }) => {
    for (const total of totals) total[0]++;
  },
});
const double = task({
  name: 'double',
  flows: { x: readWrite('f64') },
  body: ({ x }) => void (x[0] *= 2),
});
const copy = task({
  name: 'copy',
  flows: { to: write('f64'), from: read('f64') },
  body: ({ to, from }) => void (to[0] = from[0]),
});
const slow = task({
  name: 'slow',
  flows: { x: write('f64') },
  params: { turns: 'i32' },
  body: async ({ x, turns }) => {
    for (let i = 0; i < turns; i++) await turn();
    x[0] = 1;
  },
});
const fails = task({
  name: 'fails',
  flows: { total: commute('f64') },
  body: () => {
    throw new Error('as asked for');
  },
});

const scalar = (runtime: Runtime, value: number, name: string): Datum<'f64'> =>
  runtime.data(Float64Array.of(value), { name });

describe('tasks that commute', () => {
  it('run when they are ready, not in program order', async () => {
    await onMachine({ workers: 1 }, async (runtime) => {
      const [total, late, early] = ['total', 'late', 'early'].map((name) =>
        scalar(runtime, 1, name),
      );
      const order: string[] = [];
      const note = (name: string): typeof addScript =>
        task({
          name,
          flows: { total: commute('f64'), from: read('f64') },
          body: () => void order.push(name),
        });
      await runtime.run((graph) => {
        graph.insert(slow, { x: late, turns: 20 });
        graph.insert(note('behind the slow one'), { total, from: late });
        graph.insert(note('ready'), { total, from: early });
        graph.insert(double, { x: total });
        graph.insert(note('behind both'), { total, from: early });
      });
      expect(order).toEqual(['ready', 'behind the slow one', 'behind both']);
    });
  });

  it('never overlap, also where they commute on several data, in any order of these', async () => {
    await onMachine({ workers: 1 }, async (runtime) => {
      const [x, y] = ['x', 'y'].map((name) => scalar(runtime, 0, name));
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let by = 1; by <= 40; by++)
            graph.insert(both, by % 2 === 0 ? { x, y, by } : { x: y, y: x, by });
        }),
      );
      // Odd numbers count once for y and twice for x, even ones the other way round.
      expect([(await x.read())[0], (await y.read())[0]]).toEqual([2 * 400 + 420, 400 + 2 * 420]);
      await nothingLeft(runtime, [x, y]);
    });
  });

  it.each(MACHINES)(
    'come behind all accesses before them, and before all behind them: %o',
    async (options) => {
      await onMachine(options, async (runtime) => {
        for (let seed = 1; seed <= 25; seed++) {
          const r = new Random(seed);
          const names = ['a', 'b', 'c'];
          const totals = names.map((name) => scalar(runtime, 0, name));
          const expected = names.map(() => 0);
          const seen: { at: Datum<'f64'>; value: number }[] = [];
          const made: Datum<'f64'>[] = [...totals];
          const run = runtime.run(async (graph) => {
            for (let i = 0; i < 80; i++) {
              const t = r.below(3);
              const total = totals[t];
              const what = r.below(10);
              if (what === 0) {
                graph.insert(double, { x: total });
                expected[t] *= 2;
              } else if (what === 1) {
                const at = runtime.data('f64', 1);
                made.push(at);
                graph.insert(copy, { to: at, from: total });
                seen.push({ at, value: expected[t] });
              } else if (what === 2) {
                graph.insert(all, { totals });
                for (const k of expected.keys()) expected[k]++;
              } else if (what === 3) {
                expect(await graph.value(total)).toBe(expected[t]);
              } else {
                const from = runtime.data('f64', 1);
                made.push(from);
                graph.insert(slow, { x: from, turns: r.below(4) });
                const cls = [addScript, addLater][what % 2];
                if (what < 6) graph.insert(add, { total, from, count: 1, factor: 1 });
                else graph.insert(cls, { total, from });
                expected[t]++;
              }
            }
          });
          await soon(runtime, run.done);
          for (const { at, value } of seen)
            expect((await at.read())[0], `seed ${seed}`).toBe(value);
          for (const [t, total] of totals.entries())
            expect((await total.read())[0], `seed ${seed}`).toBe(expected[t]);
          for (const datum of made) datum.close();
        }
        await nothingLeft(runtime, []);
      });
    },
  );

  it('may be spawned, in the order of the family', async () => {
    await onMachine({ workers: 1 }, async (runtime) => {
      const total = scalar(runtime, 0, 'total');
      const one = scalar(runtime, 1, 'one');
      const parent = task({
        name: 'parent',
        flows: { total: commute('f64'), from: read('f64') },
        body: (_, { data, spawn }) => {
          for (let i = 0; i < 3; i++) spawn(addLater, { total: data.total, from: data.from });
        },
      });
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 10; i++) {
            graph.insert(parent, { total, from: one });
            graph.insert(addLater, { total, from: one });
          }
        }),
      );
      expect((await total.read())[0]).toBe(40);
      await nothingLeft(runtime, [total, one]);
    });
  });

  it('are refused the value of what waits for them', async () => {
    await onMachine({ workers: 1 }, async (runtime) => {
      const [total, behind] = ['total', 'behind'].map((name) => scalar(runtime, 0, name));
      const codes: string[] = [];
      const asks = task({
        name: 'asks',
        flows: { total: commute('f64') },
        body: async () => {
          for (const datum of [total, behind])
            await datum.read().catch(({ code }) => codes.push(code));
        },
      });
      const touches = task({
        name: 'touches',
        flows: { total: commute('f64'), behind: readWrite('f64') },
        body: () => {},
      });
      await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(asks, { total });
          graph.insert(touches, { total, behind });
        }),
      );
      expect(codes).toEqual(['ERR_AWAITS_ITSELF', 'ERR_AWAITS_ITSELF']);
    });
  });

  it('of a plan run in program order, and give the same', async () => {
    await onMachine({ workers: 2 }, async (runtime) => {
      const [total, one] = [scalar(runtime, 0, 'total'), scalar(runtime, 1, 'one')];
      const plan = await runtime.plan((graph) => {
        for (let i = 0; i < 10; i++) graph.insert(add, { total, from: one, count: 1, factor: 1 });
      });
      await plan.run({ times: 3 });
      expect((await total.read())[0]).toBe(30);
      await plan.close();
    });
  });
});

describe('when one of them fails', () => {
  /**
   * Two runs whose tasks commute on a datum; those of the first fail at a place. Every datum has a value that the tasks
   * that ended explain, or none.
   */
  async function failing(options: RuntimeOptions, seed: number): Promise<string[]> {
    const r = new Random(seed);
    const wrong: string[] = [];
    await onMachine(options, async (runtime) => {
      const total = scalar(runtime, 0, 'total');
      const one = scalar(runtime, 1, 'one');
      const results = Array.from({ length: 12 }, (_, i) => scalar(runtime, -1, `result ${i}`));
      // The result of such a task is the total that it has seen, which must be a number of earlier contributions.
      const keep = task({
        name: 'keep',
        flows: { total: commute('f64'), to: write('f64') },
        body: ({ total, to }) => void (to[0] = total[0]++),
      });
      const program =
        (from: number, failAt: number) => (graph: Parameters<Parameters<Runtime['run']>[0]>[0]) => {
          for (let i = 0; i < 6; i++) {
            if (i === failAt) graph.insert(fails, { total });
            if (r.below(2) === 0) graph.insert(add, { total, from: one, count: 1, factor: 1 });
            else graph.insert(addScript, { total, from: one });
            graph.insert(keep, { total, to: results[from + i] });
          }
        };
      const first = runtime.run(program(0, r.below(6)) as never);
      const second = runtime.run(program(6, -1) as never);
      const codes = await soon(
        runtime,
        Promise.all(
          [first, second].map(({ done }) =>
            done.then(
              () => 'none',
              ({ code }: HeadraceError) => code,
            ),
          ),
        ),
      );
      if (codes[0] !== 'ERR_TASK_FAILED') wrong.push(`first: ${codes[0]}`);
      if (!['ERR_DATUM_POISONED', 'ERR_TASK_FAILED', 'none'].includes(codes[1]))
        wrong.push(`second: ${codes[1]}`);
      const end = await total.read().then(
        ([value]) => value,
        ({ code }) => code,
      );
      if (end !== 'ERR_DATUM_POISONED') wrong.push(`total: ${end}`);
      const kept: number[] = [];
      for (const result of results) {
        const value = await result.read().then(
          ([found]) => found,
          () => -1,
        );
        if (value >= 0) kept.push(value);
      }
      if (new Set(kept).size !== kept.length) wrong.push(`kept: ${kept}`);
      await total.set(Float64Array.of(5));
      await runtime.run((graph) => {
        for (let i = 0; i < 5; i++) graph.insert(add, { total, from: one, count: 1, factor: 1 });
      });
      if ((await total.read())[0] !== 10) wrong.push('later');
      await nothingLeft(runtime, [total, one, ...results]);
    });
    return wrong;
  }

  it.each(MACHINES)('no other gets a value that it leaves: %o', async (options) => {
    for (let seed = 1; seed <= 15; seed++)
      expect(await failing(options, seed), `seed ${seed}`).toEqual([]);
  });
});

/**
 * A task of one run, with a smaller number, comes behind a task of another run that fails: both commute on a datum. Returns what can be
 * read of its other result.
 */
async function behindFailure(): Promise<number | string> {
  return await onMachine({ workers: 1 }, async (runtime) => {
    const [total, late, busy, result] = ['total', 'late', 'busy', 'result'].map((name) =>
      scalar(runtime, -1, name),
    );
    const broken = task({
      name: 'broken',
      flows: { total: commute('f64') },
      params: { code: 'i32' },
      kernel: 'fail',
    });
    const keep = task({
      name: 'keep',
      flows: { result: readWrite('f64'), total: commute('f64'), late: read('f64') },
      params: { microseconds: 'f64' },
      kernel: 'spin',
    });
    const second = runtime.run((graph) => {
      graph.insert(slow, { x: late, turns: 3 });
      graph.insert(keep, { result, total, late, microseconds: 1 });
    });
    const first = runtime.run((graph) => {
      graph.insert(delay, { of: busy, microseconds: 50_000 });
      graph.insert(broken, { total, code: 7 });
    });
    await soon(runtime, Promise.allSettled([first.done, second.done]));
    await expect(first.done).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
    return await result.read().then(
      ([value]) => value,
      ({ code }) => code,
    );
  });
}

it('a task with a smaller number that comes behind a failed one has no result', async () => {
  expect(await behindFailure()).toBe('ERR_DATUM_POISONED');
});

describe('guards', () => {
  afterEach(() => {
    for (const name of guardNames) setGuard(name, true);
  });

  test('without commuteInTurn: tasks that commute overlap', async () => {
    setGuard('commuteInTurn', false);
    await onMachine({ workers: 1 }, async (runtime) => {
      const [total, one] = [scalar(runtime, 0, 'total'), scalar(runtime, 1, 'one')];
      await runtime.run((graph) => {
        for (let i = 0; i < 10; i++) graph.insert(addLater, { total, from: one });
      });
      expect((await total.read())[0]).toBeLessThan(10);
    });
  });

  test('without commuteFailures: what came behind a failed task counts as valid', async () => {
    setGuard('commuteFailures', false);
    expect(await behindFailure()).toBe(-1);
  });
});
