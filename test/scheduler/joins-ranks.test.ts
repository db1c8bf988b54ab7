// Families of spawned tasks on several ranks: a family belongs to the rank of its parent, and what moves its data follows the whole
// family.
import { afterEach, describe, expect, test } from 'vitest';
import '../support/removable-guards.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import {
  type BodyContext,
  type Datum,
  type Runtime,
  read,
  readWrite,
  type TaskClass,
  task,
  write,
} from '../../index.js';
import { codeOf } from '../support/outcomes.js';
import { onRanks } from '../support/simulated-ranks.js';

const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32', factor: 'f64' },
  kernel: 'add_f64',
});
const sum = task({
  name: 'sum',
  flows: { to: write('f64'), a: read('f64'), b: read('f64') },
  body: ({ to, a, b }) => void (to[0] = a[0] + b[0]),
});
const one = task({ name: 'one', flows: { x: write('f64') }, body: ({ x }) => void x.fill(1) });
const fails = task({
  name: 'fails',
  flows: { x: readWrite('f64') },
  body: () => {
    throw new Error('as asked for');
  },
});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Counts to n by halves: each half is a task, on a temporary. */
const count: TaskClass<{ readonly to: ReturnType<typeof write<'f64'>> }, { readonly n: 'i32' }> =
  task({
    name: 'count',
    flows: { to: write('f64') },
    params: { n: 'i32' },
    body: ({ to, n }, { data, spawn, temporary }): void => {
      to[0] = 1;
      if (n <= 1) return;
      const [a, b] = [temporary('f64', 1), temporary('f64', 1)];
      spawn(count, { to: a, n: n >> 1 });
      spawn(count, { to: b, n: n - (n >> 1) });
      spawn(sum, { to: data.to, a, b });
    },
  });

/** Spawns a task that comes late, then ends. */
const late = task({
  name: 'late',
  flows: { x: readWrite('f64') },
  body: async ({ x }) => {
    const [value] = x;
    for (let i = 0; i < 5; i++) await turn();
    x[0] = value + 100;
  },
});
const parent = task({
  name: 'parent',
  flows: { x: readWrite('f64') },
  body: ({ x }, { data, spawn }) => {
    x[0] = 2;
    spawn(late, { x: data.x });
  },
});

/** What a task of the other rank, and all ranks, see of the datum of a family. */
async function seen(options: { lanes?: number; inlineBytes?: number }): Promise<number[][]> {
  const { lanes = 0, ...rest } = options;
  return await onRanks(
    { ranks: 2, seed: 7, machine: { lanes }, options: rest },
    async (runtime) => {
      const x = runtime.data(Float64Array.of(1), { name: 'x', rank: 0 });
      const y = runtime.data(Float64Array.of(0), { name: 'y', rank: 1 });
      let value = 0;
      await runtime.run(async (graph) => {
        graph.insert(parent, { x });
        graph.insert(add, { to: y, from: x, count: 1, factor: 1 });
        value = await graph.value(x);
      });
      return [value, (await x.read())[0], (await y.read())[0]];
    },
  );
}

const WAYS = [{ lanes: 8 }, { lanes: 2 }, { lanes: 8, inlineBytes: 0 }];

describe('a family on one of several ranks', () => {
  test.each(WAYS)('is over before the data of its parent move: %j', async (way) => {
    for (const values of await seen(way)) expect(values).toEqual([102, 102, 102]);
  });

  test.each([2, 3])('may be deep and have temporaries, on %i ranks', async (ranks) => {
    const machine = { lanes: 8, gpus: 1 };
    const all = await onRanks({ ranks, seed: 3, machine }, async (runtime) => {
      const data = Array.from({ length: ranks }, (_, rank) => runtime.data('f64', 1, { rank }));
      const total = runtime.data(new Float64Array(1), { rank: 0, name: 'total' });
      const { tasks } = await runtime.run((graph) => {
        for (const [i, to] of data.entries()) graph.insert(count, { to, n: 20 + i });
        for (const from of data) graph.insert(add, { to: total, from, count: 1, factor: 1 });
      });
      // The ranks agree on the names of data that are made now.
      const next = runtime.data(Float64Array.of(runtime.rank), { rank: ranks - 1 });
      const values = [(await total.read())[0], (await next.read())[0]];
      for (const datum of [...data, total, next]) datum.close();
      await runtime.engine.quiet();
      return [...values, tasks > 40 ? 1 : 0, Math.max(...runtime.memory().map((m) => m.used))];
    });
    const expected = [20 * ranks + (ranks * (ranks - 1)) / 2, ranks - 1, 1, 0];
    expect(all).toEqual(all.map(() => expected));
  });

  test('has temporaries also if it is known late that its body is asynchronous', async () => {
    const later = task({
      name: 'later',
      flows: { to: write('f64') },
      // No async function: the first time it is known afterwards that it returns a promise.
      body: (_, { data, spawn, temporary }) => {
        const { to } = data;
        return turn().then(() => {
          const [a, b] = [temporary('f64', 1), temporary('f64', 1)];
          spawn(one, { x: a });
          spawn(one, { x: b });
          spawn(sum, { to, a, b });
        });
      },
    });
    const all = await onRanks({ ranks: 2, seed: 5 }, async (runtime) => {
      const x = runtime.data('f64', 1, { rank: 1 });
      await runtime.run((graph) => void graph.insert(later, { to: x }));
      const next = runtime.data(Float64Array.of(7 + runtime.rank), { rank: 1 });
      return [(await x.read())[0], (await next.read())[0]];
    });
    expect(all).toEqual([
      [2, 8],
      [2, 8],
    ]);
  });

  test('may be that of a pruned run, which the other rank does not see', async () => {
    const all = await onRanks({ ranks: 3, seed: 9, machine: { lanes: 8 } }, async (runtime) => {
      const x = Array.from({ length: 3 }, (_, rank) => runtime.data('f64', 1, { rank }));
      const y = runtime.data(new Float64Array(1), { rank: 0 });
      await runtime.run(
        (graph) => {
          for (const [i, to] of x.entries())
            if (!graph.skips(to)) graph.insert(count, { to, n: 5 + i });
          if (!graph.skips(x[1], y)) graph.insert(add, { to: y, from: x[1], count: 1, factor: 1 });
        },
        { pruned: true },
      );
      return (await y.read())[0];
    });
    expect(all).toEqual([6, 6, 6]);
  });
});

describe('a family that fails on one of several ranks', () => {
  const family = task({
    name: 'family',
    flows: { x: readWrite('f64') },
    body: ({ x }, { data, spawn, temporary }) => {
      x[0] = 5;
      const scratch = temporary('f64', 1);
      spawn(one, { x: scratch });
      spawn(fails, { x: scratch });
      spawn(late, { x: data.x });
    },
  });
  test.each(WAYS)('fails the run on all ranks, and its data have no value: %j', async (way) => {
    const { lanes = 0, ...options } = way;
    const all = await onRanks(
      { ranks: 2, seed: 4, machine: { lanes }, options },
      async (runtime) => {
        const x = runtime.data(Float64Array.of(1), { name: 'x', rank: 0 });
        const y = runtime.data(Float64Array.of(0), { name: 'y', rank: 1 });
        const run = runtime.run((graph) => {
          graph.insert(family, { x });
          graph.insert(add, { to: y, from: x, count: 1, factor: 1 });
        });
        const codes = [await codeOf(run.done), await codeOf(x.read()), await codeOf(y.read())];
        await x.set(Float64Array.of(3));
        await y.set(Float64Array.of(4));
        await runtime.run((graph) => {
          graph.insert(parent, { x });
          graph.insert(add, { to: y, from: x, count: 1, factor: 1 });
        });
        return { codes, value: (await y.read())[0] };
      },
    );
    expect(all.map(({ value }) => value)).toEqual([106, 106]);
    expect(all.map(({ codes }) => codes[0])).toEqual(['ERR_TASK_FAILED', 'ERR_PEER_FAILED']);
    for (const { codes } of all)
      for (const code of codes.slice(1)) expect(code).toMatch(/^ERR_(DATUM_POISONED|PEER_FAILED)$/);
  });

  test('or whose run is aborted by another rank, ends, and the runtime stays usable', async () => {
    let isStopped = false;
    const all = await onRanks({ ranks: 2, seed: 6, machine: { lanes: 8 } }, async (runtime) => {
      const x = runtime.data(Float64Array.of(1), { name: 'x', rank: 0 });
      const y = runtime.data(Float64Array.of(1), { name: 'y', rank: 1 });
      const stop = new AbortController();
      const stopping = task({
        name: 'stopping',
        flows: { x: readWrite('f64') },
        body: async (_, { data, spawn }) => {
          for (let i = 0; i < 20; i++) spawn(late, { x: data.x });
          while (!isStopped) await turn();
          for (let i = 0; i < 20; i++) await turn();
        },
      });
      const run = runtime.run(
        (graph) => {
          graph.insert(stopping, { x });
          graph.insert(add, { to: y, from: x, count: 1, factor: 1 });
        },
        { signal: stop.signal },
      );
      for (let i = 0; i < 20; i++) await turn();
      if (runtime.rank === 1) stop.abort();
      isStopped = true;
      const code = await codeOf(run.done);
      await x.set(Float64Array.of(1));
      await runtime.run((graph) => void graph.insert(parent, { x }));
      return [code, (await x.read())[0]];
    });
    expect(all.map(([, value]) => value)).toEqual([102, 102]);
    for (const [code] of all) expect(code).toMatch(/^(ERR_ABORTED|ERR_PEER_FAILED)$/);
  });
});

describe('what bodies must not spawn on several ranks', () => {
  type Spawns = (
    context: BodyContext,
    data: { other: Datum<'f64'>; before: number; mine: Datum<'f64'> },
  ) => void;

  async function refusal(spawns: Spawns): Promise<string> {
    const [said] = await onRanks({ ranks: 2, seed: 1 }, async (runtime: Runtime) => {
      const mine = runtime.data(Float64Array.of(1), { name: 'mine', rank: 0 });
      const other = runtime.data(Float64Array.of(1), { name: 'other', rank: 0 });
      const there = runtime.data(Float64Array.of(1), { name: 'there', rank: 1 });
      let message = '';
      let before = 0;
      const spawning = task({
        name: 'spawning',
        flows: { mine: readWrite('f64') },
        body: (_, context) => {
          try {
            spawns(context as never, { other, before, mine });
          } catch (error) {
            message = `${(error as { code: string }).code}: ${(error as Error).message}`;
          }
        },
      });
      await runtime.run((graph) => {
        before = graph.insert(add, { to: there, from: other, count: 1, factor: 1 });
        graph.insert(spawning, { mine });
      });
      return message;
    });
    return said;
  }

  const who =
    /^ERR_INSERT_ALONE: a task of class 'one' that the body of task spawning #\d+ spawns on rank 0 /;
  test.each<[string, Spawns, RegExp]>([
    [
      'a task for another rank',
      ({ spawn }, { mine }) => void spawn(one, { x: mine }, { rank: 1 }),
      /asks for rank 1 \(/,
    ],
    [
      'a task on other data that all ranks know',
      ({ spawn }, { other }) => void spawn(one, { x: other }),
      /uses datum 'other', which is neither among the data of its parent nor of this rank alone \(give/,
    ],
    [
      'a task behind one of another rank',
      ({ spawn }, { mine, before }) => void spawn(one, { x: mine }, { after: [before as never] }),
      /follows a task of another rank \(/,
    ],
  ])('%s', async (_, spawns, message) => {
    const said = await refusal(spawns);
    expect(said).toMatch(who);
    expect(said).toMatch(message);
  });

  test('but a task that names its own rank', async () => {
    expect(await refusal(({ spawn }, { mine }) => void spawn(one, { x: mine }, { rank: 0 }))).toBe(
      '',
    );
  });
});

test('tasks that a body inserts on one of several ranks keep the order of `after`', async () => {
  const [, order] = await onRanks({ ranks: 2, seed: 2 }, async (runtime) => {
    const names: string[] = [];
    const slow = task({
      name: 'slow',
      flows: {},
      body: async () => {
        await turn();
        names.push('slow');
      },
    });
    const quick = task({ name: 'quick', flows: {}, body: () => void names.push('quick') });
    const inserting = task({
      name: 'inserting',
      flows: { x: readWrite('f64') },
      body: (_, { graph }) => {
        const first = graph.insert(slow, {}, { rank: 1 });
        graph.insert(quick, {}, { rank: 1, after: [first] });
      },
    });
    const x = runtime.data(new Float64Array(1), { rank: 1 });
    await runtime.run((graph) => void graph.insert(inserting, { x }));
    return names;
  });
  expect(order).toEqual(['slow', 'quick']);
});

describe('guards', () => {
  afterEach(() => setGuard('joinWaits', true));

  test.each(WAYS)('without joinWaits: a send leaves before the family is over: %j', async (way) => {
    setGuard('joinWaits', false);
    const values = (await seen(way)).flat();
    expect(values).not.toEqual(values.map(() => 102));
  });
});
