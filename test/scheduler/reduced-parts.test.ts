// Reductions into parts of data, and into data that have parts, on one rank and on several.
import '../support/removable-guards.js';
import { describe, expect, it, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { type Datum, type Graph, Runtime, readWrite, reduce, slot, task } from '../../index.js';
import { copyOf } from '../support/body-tasks.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { codeOf } from '../support/outcomes.js';
import { partKernels, playParts } from '../support/part-programs.js';
import { onRanks } from '../support/simulated-ranks.js';
import { add, fail, fill } from '../support/tasks.js';

const count = task({
  name: 'count',
  flows: { total: reduce('f64', 'sum') },
  body: ({ total }) => {
    for (let i = 0; i < total.length; i++) total[i] += 1;
  },
});
const twice = task({
  name: 'twice',
  flows: { x: readWrite('f64') },
  body: ({ x }) => {
    for (let i = 0; i < x.length; i++) x[i] *= 2;
  },
});

const counts = (graph: Graph, total: Datum<'f64'>): void => {
  for (let i = 0; i < 10; i++) graph.insert(count, { total });
};
const of = (runtime: Runtime): Datum<'f64'> =>
  runtime.data(Float64Array.of(1, 2, 3, 4), { name: 'x' });
const values = async (x: Datum): Promise<number[]> => [...(await x.read())];
/** What ends a reduction into the middle of x, which begins as 1 12 13 4; and x behind that. */
const ENDS: readonly (readonly [
  string,
  (world: { graph: Graph; x: Datum<'f64'>; to: Datum<'f64'> }) => unknown,
  readonly number[],
])[] = [
  ['a task on the datum', ({ graph, x }) => graph.insert(twice, { x }), [2, 24, 26, 8]],
  [
    'a task on a part beside it',
    ({ graph, x }) => graph.insert(twice, { x: x.part(2, 2) }),
    [1, 12, 26, 8],
  ],
  [
    'a task that overwrites some of it',
    ({ graph, x }) => graph.insert(fill, { to: x.part(2, 2), count: 2, value: 0 }),
    [1, 12, 0, 0],
  ],
  [
    'a task that overwrites the datum',
    ({ graph, x }) => graph.insert(fill, { to: x, count: 4, value: 0 }),
    [0, 0, 0, 0],
  ],
  [
    'a reduction into a part beside it',
    ({ graph, x }) => counts(graph, x.part(2, 2)),
    [1, 12, 23, 14],
  ],
  ['a reduction into the datum', ({ graph, x }) => counts(graph, x), [11, 22, 23, 14]],
  ['set() of a part beside it', ({ x }) => x.part(2, 2).set(Float64Array.of(7, 8)), [1, 12, 7, 8]],
  ['set() of it', ({ x }) => x.part(1, 2).set(Float64Array.of(7, 8)), [1, 7, 8, 4]],
  ['set() of the datum', ({ x }) => x.set(Float64Array.of(5, 6, 7, 8)), [5, 6, 7, 8]],
  ['close() of it', ({ x }) => x.part(1, 2).close(), [1, 12, 13, 4]],
  ['close() of a part beside it', ({ x }) => x.part(2, 2).close(), [1, 12, 13, 4]],
  ['nothing', () => {}, [1, 12, 13, 4]],
];

/** x behind a reduction into its middle and what ends it, and what a task that reads it sees. */
async function afterEnd(
  options: Parameters<typeof onMachine>[0],
  end: (typeof ENDS)[number][1],
): Promise<number[][]> {
  return await onMachine(options, async (runtime) => {
    const x = of(runtime);
    const to = runtime.data('f64', 4);
    await runtime.run((graph) => {
      counts(graph, x.part(1, 2));
      end({ graph, x, to });
      graph.insert(copyOf, { to, from: x });
    });
    const seen = [await values(to), await values(x)];
    await nothingLeft(runtime, [x, to]);
    return seen;
  });
}

test('without partsReduced: a task misses contributions', async () => {
  setGuard('partsReduced', false);
  try {
    const [, end, expected] = ENDS[0];
    const seen = await afterEnd({ workers: 1, plans: 'off' }, end).catch(String);
    expect(seen).not.toEqual([expected, expected]);
  } finally {
    setGuard('partsReduced', true);
  }
});

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it.each(ENDS)('%s ends a reduction into a part', async (_, end, expected) => {
    expect(await afterEnd(options, end)).toEqual([expected, expected]);
  });

  it('reductions into parts without common elements are open side by side', async () => {
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      await runtime.run((graph) => {
        for (let i = 0; i < 10; i++) {
          graph.insert(count, { total: x.part(0, 2) });
          graph.insert(count, { total: x.part(2, 2) });
        }
        const open = (runtime.reductions as unknown as { open: Map<unknown, unknown> }).open;
        expect(open.size).toBe(2);
      });
      expect(await values(x)).toEqual([11, 12, 13, 14]);
      await nothingLeft(runtime, [x]);
    });
  });

  it.each([31, 32, 33])('random program %i has the results of plain arrays', async (seed) => {
    await onMachine({ ...options, window: 16 }, async (runtime) => {
      await nothingLeft(runtime, await playParts(runtime, seed * 11 + gpus, 60));
    });
  });
});

/** What the ranks have behind a reduction into the middle of x on all of them, and what ends it. */
async function afterEndOnRanks(ranks: number, end: (typeof ENDS)[number][1]): Promise<number[][]> {
  const all = await onRanks({ ranks, seed: 5, kernels: partKernels }, async (runtime) => {
    const x = of(runtime);
    const to = runtime.data('f64', 4, { rank: ranks - 1 });
    await runtime.run((graph) => {
      for (let i = 0; i < 10; i++)
        graph.insert(count, { total: x.part(1, 2) }, { rank: i % ranks });
      end({ graph, x, to });
      graph.insert(copyOf, { to, from: x });
    });
    const seen = [await values(to), await values(x)];
    await nothingLeft(runtime, [x, to]);
    return seen;
  });
  return all.flat();
}

describe.each([1, 2, 3, 4])('on %i ranks', (ranks) => {
  it.each(ENDS)('%s ends a reduction into a part', async (_, end, expected) => {
    const all = await afterEndOnRanks(ranks, end);
    expect(all).toEqual(new Array(2 * ranks).fill(expected));
  });

  it('a part that some ranks make or close while a reduction is open does not end it', async () => {
    const all = await onRanks({ ranks, seed: 6, kernels: partKernels }, async (runtime) => {
      const x = of(runtime);
      const to = runtime.data('f64', 4, { rank: ranks - 1 });
      await runtime.run((graph) => {
        for (let i = 0; i < 20; i++) {
          if (i % ranks === runtime.rank) x.part(i % 4, 1);
          if (i > 8) x.part((i + 1) % 4, 1).close();
          graph.insert(count, { total: x }, { rank: i % ranks });
        }
        graph.insert(copyOf, { to, from: x });
      });
      const seen = await values(to);
      await nothingLeft(runtime, [x, to]);
      return seen;
    });
    expect(all).toEqual(new Array(ranks).fill([21, 22, 23, 24]));
  });

  it('partial results travel, and not the part', async () => {
    const all = await onRanks({ ranks, seed: 7, kernels: partKernels }, async (runtime) => {
      const x = runtime.data(new Float64Array(1000), { rank: ranks - 1 });
      const { network } = await runtime.run((graph) => {
        for (let i = 0; i < 20 * ranks; i++)
          graph.insert(count, { total: x.part(100, 50) }, { rank: i % ranks });
      });
      const seen = [...(await x.read())].reduce((sum, value) => sum + value, 0);
      return [seen, network?.sentBytes ?? 0];
    });
    expect(all.map(([seen]) => seen)).toEqual(new Array(ranks).fill(50 * 20 * ranks));
    expect(all.map(([, bytes]) => bytes)).toEqual(
      Array.from({ length: ranks }, (_, rank) => (rank === ranks - 1 ? 0 : 400)),
    );
  });

  it('one that fails leaves the datum without a value until it is written', async () => {
    const all = await onRanks({ ranks, seed: 8, kernels: partKernels }, async (runtime) => {
      const x = of(runtime);
      const part = x.part(1, 2);
      const other = runtime.data(new Float64Array(1), { rank: ranks - 1 });
      const run = runtime.run((graph) => {
        for (let i = 0; i < 6; i++) graph.insert(count, { total: part }, { rank: i % ranks });
        graph.insert(fail, { of: other, code: 3 });
        for (let i = 0; i < 6; i++) graph.insert(count, { total: part }, { rank: i % ranks });
      });
      const first = await codeOf(soon(runtime, run));
      const seen = [await codeOf(x.read()), await codeOf(part.read())];
      await x.set(Float64Array.of(1, 2, 3, 4));
      await runtime.run((graph) => {
        for (let i = 0; i < 6; i++) graph.insert(count, { total: part }, { rank: i % ranks });
      });
      return [first, ...seen, (await values(x)).join(' ')];
    });
    for (const [first, ...seen] of all) {
      expect(first).toMatch(/ERR_TASK_FAILED|ERR_PEER_FAILED/);
      expect(seen).toEqual([
        expect.stringMatching(/ERR_DATUM_POISONED|ERR_PEER_FAILED/),
        expect.stringMatching(/ERR_DATUM_POISONED|ERR_PEER_FAILED/),
        '1 8 9 4',
      ]);
    }
  });
});

/** What two ranks have behind a reduction during which a plan is closed, with a part that the program of one rank has. */
async function planClosedWithin(): Promise<number[][]> {
  return await onRanks({ ranks: 2, seed: 9, kernels: partKernels }, async (runtime) => {
    const x = of(runtime);
    const y = runtime.data(new Float64Array(4));
    const plan = await runtime.plan((graph) => {
      graph.insert(add, { to: y, from: x.part(1, 2), count: 2 });
    });
    if (runtime.rank === 0) x.part(1, 2);
    await runtime.run((graph) => {
      for (let i = 0; i < 20; i++) {
        graph.insert(count, { total: x }, { rank: i % 2 });
        if (i === 9) plan.close();
      }
    });
    const seen = await values(x);
    await nothingLeft(runtime, [x, y]);
    return seen;
  });
}

it('a plan that is closed within a reduction does not end it', async () => {
  expect(await planClosedWithin()).toEqual([
    [21, 22, 23, 24],
    [21, 22, 23, 24],
  ]);
});

test('without unusedParts: a rank alone ends a reduction', async () => {
  setGuard('unusedParts', false);
  try {
    await expect(planClosedWithin()).rejects.toThrow();
  } finally {
    setGuard('unusedParts', true);
  }
});

describe('on simulated machines', () => {
  const delays = { spread: 4, holdBack: 0.4, stall: 0.1, stallNs: 20_000, spurious: 0.05 };

  it.each([41, 42, 43, 44, 45, 46])(
    'random program %i has the results of plain arrays',
    async (seed) => {
      const machine = { ...presets['h200-2'], gpuMemory: 8192, hostMemory: 2 ** 18 };
      const backend = new SimulatedBackend({
        machine,
        kernels: partKernels,
        adversary: { ...delays, seed },
      });
      const runtime = Runtime.over(backend, { checked: true, window: 32 });
      await nothingLeft(runtime, await playParts(runtime, seed, 60));
      await runtime.close();
    },
  );
});

const { options } = MACHINES[1];

describe('a reduction into a part', () => {
  it('of a run that fails leaves it without a value, and the other elements theirs', async () => {
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      const [middle, other] = [x.part(1, 2), runtime.data(new Float64Array(1))];
      const run = runtime.run((graph) => {
        counts(graph, middle);
        graph.insert(fail, { of: other, code: 3 });
        counts(graph, middle);
      });
      expect(await codeOf(soon(runtime, run))).toBe('ERR_TASK_FAILED');
      await other.set(new Float64Array(1));
      expect(await codeOf(middle.read())).toBe('ERR_DATUM_POISONED');
      expect(await codeOf(x.read())).toBe('ERR_DATUM_POISONED');
      expect(await values(x.part(0, 1))).toEqual([1]);
      await middle.set(Float64Array.of(8, 9));
      expect(await values(x)).toEqual([1, 8, 9, 4]);
      await nothingLeft(runtime, [x, other]);
    });
  });

  it('goes on over reads in the middle, and over several runs', async () => {
    await onMachine({ ...options, window: 16 }, async (runtime) => {
      const x = of(runtime);
      const [left, right] = [x.part(0, 3), x.part(1, 3)];
      const seen: number[] = [];
      for (let k = 0; k < 3; k++)
        await runtime.run(async (graph) => {
          counts(graph, left);
          seen.push(await graph.value(right));
          counts(graph, right);
          seen.push((await x.read())[1]);
        });
      expect(seen).toEqual([12, 22, 32, 42, 52, 62]);
      expect(await values(x)).toEqual([31, 62, 63, 34]);
      await nothingLeft(runtime, [x]);
    });
  });
});

describe('a play', () => {
  it.each(['the datum', 'a part'])('ends the reductions into its data: %s', async (which) => {
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      const y = runtime.data(new Float64Array(4));
      const plan = await runtime.plan((graph) => {
        graph.insert(add, { to: y, from: x, count: 4 });
        graph.insert(fill, { to: x, count: 4, value: slot('a') });
      });
      const total = which === 'a part' ? x.part(1, 2) : x;
      await runtime.run(async (graph) => {
        counts(graph, total);
        await plan.run({ values: { a: 5 } });
        counts(graph, total);
      });
      const isPart = which === 'a part';
      expect(await values(y)).toEqual(isPart ? [1, 12, 13, 4] : [11, 12, 13, 14]);
      expect(await values(x)).toEqual(isPart ? [5, 15, 15, 5] : [15, 15, 15, 15]);
      plan.close();
      await nothingLeft(runtime, [x, y]);
    });
  });
});
