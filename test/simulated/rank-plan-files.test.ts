// Plans of several simulated ranks in files: what is loaded plays as what was saved, and a part that does not fit on one rank is refused
// on all.
import '../support/removable-guards.js';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { planKernels } from '../../devices/simulated/cases/plan-cases.js';
import { axpy } from '../../devices/simulated/cases/plan-programs.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { World } from '../../devices/simulated/machine/world.js';
import {
  type Datum,
  HeadraceError,
  type Plan,
  Runtime,
  type RuntimeOptions,
  slot,
} from '../../scheduler/index.js';
import { partOf } from '../support/grids.js';
import { outcome, programOf } from '../support/rank-plan-programs.js';
import { joined, rankMachine } from '../support/simulated-ranks.js';

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-rank-plans-'));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => setGuard('planParts', true));

const PROGRAMS = partOf(6, 2);

test.each(Array.from({ length: 4 }, (_, i) => 500 + i * PROGRAMS))(
  'programs from seed %i on: what is loaded is what is inserted, and failures end on all ranks',
  async (first) => {
    for (let seed = first; seed < first + PROGRAMS; seed++) {
      const p = programOf(seed);
      const expected = await outcome(p, 0, 'inserted');
      expect(await outcome(p, seed, { saves: folder }), `seed ${seed}`).toEqual(expected);
      const loaded = await outcome(p, seed + 1, { loads: folder });
      expect(loaded, `seed ${seed}: ${JSON.stringify(p)}`).toEqual(expected);
    }
  },
  120_000,
);

test.each(Array.from({ length: 2 }, (_, i) => 900 + i * PROGRAMS))(
  'programs on parts from seed %i on: what is loaded is what is inserted, and failures end on all ranks',
  async (first) => {
    for (let seed = first; seed < first + PROGRAMS; seed++) {
      const p = programOf(seed, true);
      const expected = await outcome(p, 0, 'inserted');
      expect(await outcome(p, seed, { saves: folder }), `seed ${seed}`).toEqual(expected);
      const loaded = await outcome(p, seed + 1, { loads: folder });
      expect(loaded, `seed ${seed}: ${JSON.stringify(p)}`).toEqual(expected);
    }
  },
  120_000,
);

const LENGTH = 100;
/** For programs whose ranks do not wait for ever. */
const PATIENCE_MS = 20_000;
interface OnRank {
  readonly rank: number;
  readonly runtime: Runtime;
  /** `sum` lies on the last rank and gets `step` in each iteration; `copies` are on all ranks. */
  readonly data: Datum<'f64'>[];
}

/** What each rank of a program gives; undefined if they wait for ever. */
async function onRanks<T>(
  ranks: number,
  options: RuntimeOptions & { readonly length?: number },
  program: (on: OnRank) => Promise<T>,
): Promise<T[] | undefined> {
  const { length = LENGTH, ...more } = options;
  const world = new World();
  const { workers = 2, gpus = 0, lanes = 8 } = more;
  const machine = { ...rankMachine, workers, gpus, lanes };
  const kernels = { ...planKernels, empty: () => 0 };
  const backends = Array.from(
    { length: ranks },
    () => new SimulatedBackend({ machine, world, kernels }),
  );
  const runtimes = joined(world, backends, { workers, lanes, checked: true, ...more });
  let found: T[] | undefined;
  let error: unknown;
  Promise.all(
    runtimes.map(async (runtime, rank) => {
      const data = Array.from({ length: ranks + 1 }, (_, d) =>
        runtime.data(new Float64Array(length).fill(d === ranks ? 1 : 0), {
          name: d === ranks ? 'step' : `sum ${d}`,
          rank: d % ranks,
        }),
      );
      const result = await program({ rank, runtime, data });
      await runtime.close();
      return result;
    }),
  ).then(
    (results) => {
      found = results;
    },
    (thrown: unknown) => {
      error = thrown;
    },
  );
  // Files are read in real time.
  const until = performance.now() + PATIENCE_MS;
  while (performance.now() < until && found === undefined && error === undefined)
    await setImmediate();
  if (error !== undefined) throw error;
  return found;
}

/** Each iteration adds `step` to `sum 0`, and every sum to the next one. */
const planned = ({ runtime, data }: OnRank, name = 'sums'): Promise<Plan> =>
  runtime.plan(
    (graph) => {
      const [step] = data.slice(-1);
      const n = data[0].length;
      graph.insert(axpy, { y: data[0], x: step, n, a: slot('a') });
      for (let d = 1; d < data.length - 1; d++)
        graph.insert(axpy, { y: data[d], x: data[d - 1], n, a: 1 });
    },
    { name },
  );

/** Saves the plan as parts of that name. */
const save = async (name: string, ranks: number, options: RuntimeOptions = {}): Promise<void> => {
  await onRanks(ranks, options, async (on) => {
    const plan = await planned(on, name);
    await plan.save(file(name, on.rank));
  });
};
const file = (name: string, rank: number): string => path.join(folder, `${name}.${rank}.plan`);

/** Loads; the error's code and message, or the values after two plays and those of a plan that is made afterwards. */
async function load(on: OnRank, from: string): Promise<string | number[]> {
  const { runtime, data } = on;
  let plan: Plan;
  try {
    plan = await runtime.loadPlan(from, { data, classes: axpy });
  } catch (error) {
    if (!(error instanceof HeadraceError)) throw error;
    // The runtime can go on: all ranks make the plan instead.
    const other = await planned(on);
    await other.run({ values: { a: 1 } });
    expect((await data[0].read())[0]).toBe(1);
    return `${error.code} ${error.message}`;
  }
  await plan.run({ times: 2, values: { a: (k) => k + 1 } });
  await plan.run({ times: 9, values: { a: 1 }, while: { datum: data[0], below: 5 } });
  return (await Promise.all(data.map((d) => d.read()))).map(([x]) => x);
}

beforeAll(async () => {
  await save('first', 3);
  await save('second', 3);
});

describe('parts of a plan', () => {
  test('play on as many ranks, with slots and a condition', async () => {
    const found = await onRanks(3, {}, (on) => load(on, file('first', on.rank)));
    // a: 1, 2, 1, 1.
    expect(found).toEqual(Array(3).fill([5, 13, 26, 1]));
  });

  test('may be saved again, as the same files', async () => {
    await onRanks(3, {}, async ({ runtime, data, rank }) => {
      const plan = await runtime.loadPlan(file('first', rank), { data, classes: axpy });
      expect(plan.report).toMatchObject({ name: 'first', graph: expect.any(String) });
      await plan.save(file('again', rank));
    });
    for (let rank = 0; rank < 3; rank++)
      expect(readFileSync(file('again', rank)).equals(readFileSync(file('first', rank)))).toBe(
        true,
      );
  });

  test.each([
    [
      'a missing file',
      (rank: number): string => (rank === 1 ? file('none', 1) : file('first', rank)),
      1,
      /ERR_PLAN_FILE .*none\.1\.plan cannot be read/,
    ],
    [
      'the file of another rank',
      (rank: number): string => file('first', rank === 2 ? 1 : rank),
      2,
      /ERR_PLAN_MISMATCH .*first\.1\.plan: .*it was made for rank 1 of 3, and this is rank 2 of 3/,
    ],
    [
      'a file that was cut',
      (rank: number): string => {
        if (rank !== 0) return file('first', rank);
        const bytes = readFileSync(file('first', 0));
        writeFileSync(file('half', 0), bytes.subarray(0, bytes.length / 2));
        return file('half', 0);
      },
      0,
      /ERR_PLAN_FILE .*half\.0\.plan cannot be loaded: it has/,
    ],
  ] as const)(
    '%s on one rank is an error on all, which names rank and file',
    async (_, from, at, text) => {
      const found = (await onRanks(3, {}, (on) => load(on, from(on.rank)))) as string[];
      found.forEach((error, rank) => {
        if (rank === at) expect(error).toMatch(text);
        else {
          expect(error).toContain(`ERR_PEER_FAILED rank ${at} failed: `);
          expect(error).toContain(path.basename(from(at)));
        }
      });
    },
  );

  test('of different plans are refused on all ranks', async () => {
    const from = (rank: number): string => file(rank === 1 ? 'second' : 'first', rank);
    const found = (await onRanks(3, {}, (on) => load(on, from(on.rank)))) as string[];
    found.forEach((error, rank) => {
      expect(error).toContain(
        `ERR_PLAN_MISMATCH ${from(rank)} of rank ${rank} is not of the same plan`,
      );
      expect(error).toContain(`rank 1 is loading plan 'second' of ${from(1)}`);
    });
  });

  test('without planParts: parts of different plans are played, and the play fails', async () => {
    setGuard('planParts', false);
    await onRanks(3, {}, async (on) => {
      const { runtime, data, rank } = on;
      const plan = await runtime.plan((graph) => {
        graph.insert(axpy, { y: data[2], x: data[0], n: LENGTH, a: 1 });
        graph.insert(axpy, { y: data[1], x: data[2], n: LENGTH, a: slot('a') });
      });
      await plan.save(file('other', rank));
    });
    const from = (rank: number): string => file(rank === 1 ? 'other' : 'first', rank);
    await expect(onRanks(3, {}, (on) => load(on, from(on.rank)))).rejects.toThrow(
      'could not go from rank 1 to rank 2',
    );
  });

  test.each([
    ['ranks', 2, {}, 'it was made for rank 0 of 3, and this is rank 0 of 2'],
    ['workers', 3, { workers: 3 }, 'it was made for 2 workers and no GPU'],
    ['GPUs', 3, { gpus: 1 }, 'it was made for 2 workers and no GPU'],
    ['inlineBytes', 3, { inlineBytes: 64 }, 'it was made with the option inlineBytes: 4096'],
    [
      'sizes of data',
      3,
      { length: 50 },
      "datum 'sum 0' has 400 bytes of f64, and the plan was made for 800",
    ],
  ] as const)('are refused where there are other %s', async (_, ranks, options, text) => {
    const found = (await onRanks(ranks, options, (on) =>
      load(on, file('first', on.rank)),
    )) as string[];
    for (const error of found) expect(error).toMatch(/ERR_PLAN_MISMATCH|ERR_PEER_FAILED/);
    expect(found.join()).toContain(text);
  });

  test('with other numbers of lanes play as well', async () => {
    const found = await onRanks(3, { lanes: 2 }, (on) => load(on, file('first', on.rank)));
    expect(found).toEqual(Array(3).fill([5, 13, 26, 1]));
  });

  test('are no plans of one rank, and the other way round', async () => {
    const machine = { ...rankMachine, workers: 2, gpus: 0 };
    const runtime = Runtime.over(new SimulatedBackend({ machine, kernels: planKernels }), {
      workers: 2,
    });
    const data = [0, 1, 2].map((d) =>
      runtime.data(new Float64Array(LENGTH), { name: d === 2 ? 'step' : `sum ${d}` }),
    );
    const on = { rank: 0, runtime, data };
    const plan = await planned(on);
    await plan.save(file('alone', 0));
    await expect(runtime.loadPlan(file('first', 0), { data, classes: axpy })).rejects.toMatchObject(
      {
        code: 'ERR_PLAN_MISMATCH',
        message: expect.stringContaining('it was made for rank 0 of 3, and this is a rank alone'),
      },
    );
    await runtime.close();
    const found = (await onRanks(3, {}, (of) => load(of, file('alone', 0)))) as string[];
    expect(found.join()).toContain('it was made for one rank alone, and this is rank 0 of 3');
  });

  test('need a value where the plan reads on any rank', async () => {
    const codes = await onRanks(3, {}, async ({ runtime, data, rank }) => {
      const [sum, ...others] = data;
      sum.close();
      const none = runtime.data('f64', LENGTH, { name: 'sum 0', rank: 0 });
      const from = file('first', rank);
      return runtime.loadPlan(from, { data: [none, others], classes: axpy }).catch((e) => e.code);
    });
    expect(codes).toContain('ERR_NEVER_WRITTEN');
    expect(codes).not.toContain(undefined);
  });
});
