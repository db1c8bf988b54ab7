// Conditions of plays on several simulated ranks, beyond the random programs of rank-plans.test.ts: how the number travels, ranks that
// give different options, aborts, and traces.
import '../support/removable-guards.js';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { planKernels } from '../../devices/simulated/cases/plan-cases.js';
import { axpy } from '../../devices/simulated/cases/plan-programs.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import type { SimulatedKernel } from '../../devices/simulated/machine/executor.js';
import { World } from '../../devices/simulated/machine/world.js';
import type { Datum, Plan, PlayOptions, Runtime, RuntimeOptions } from '../../scheduler/index.js';
import { joined, rankMachine } from '../support/simulated-ranks.js';

const LENGTH = 400;
/** Kernels of all ranks until `afterKernels` is called. */
const KERNELS = 100;
let afterKernels = (): void => {};

/** What a rank does. */
interface OnRank {
  readonly rank: number;
  readonly runtime: Runtime;
  /** Each iteration adds 1 to all elements of `sum`, which lies on the last rank, and 2 to `alone` on rank 0. */
  readonly plan: Plan;
  readonly sum: Datum<'f64'>;
  readonly alone: Datum<'f64'>;
}

afterEach(() => {
  setGuard('planSameLook', true);
  afterKernels = () => {};
});

/** The result of each rank, or undefined if they wait for ever. */
async function onRanks<T>(
  ranks: number,
  options: RuntimeOptions,
  program: (on: OnRank) => Promise<T>,
): Promise<T[] | undefined> {
  const world = new World();
  const machine = { ...rankMachine, workers: 2, gpus: options.gpus ?? 0, lanes: 8 };
  const delays = { spread: 3, holdBack: 0.3, stall: 0.1, stallNs: 20_000, spurious: 0.05 };
  let count = 0;
  const kernels: typeof planKernels & { readonly empty: SimulatedKernel } = {
    ...planKernels,
    empty: () => 0,
    add_f64: (call) => {
      if (++count === KERNELS) afterKernels();
      return planKernels.add_f64(call);
    },
  };
  const backends = Array.from(
    { length: ranks },
    (_, rank) =>
      new SimulatedBackend({ machine, world, kernels, adversary: { seed: 7 + rank, ...delays } }),
  );
  const runtimes = joined(world, backends, { workers: 2, lanes: 8, checked: true, ...options });
  let found: T[] | undefined;
  let error: unknown;
  const all = runtimes.map(async (runtime, rank) => {
    const make = (value: number, name: string, owner: number): Datum<'f64'> =>
      runtime.data(new Float64Array(LENGTH).fill(value), { name, rank: owner });
    const sum = make(0, 'sum', ranks - 1);
    const alone = make(0, 'alone', 0);
    const one = make(1, 'one', ranks - 1);
    const two = make(2, 'two', 0);
    const where = (options.gpus ?? 0) > 0 ? { device: 0 } : {};
    const plan = await runtime.plan(
      (graph) => {
        graph.insert(axpy, { y: alone, x: two, n: LENGTH, a: 1 });
        graph.insert(axpy, { y: sum, x: one, n: LENGTH, a: 1 }, where);
      },
      { name: 'sums' },
    );
    const result = await program({ rank, runtime, plan, sum, alone });
    await runtime.close();
    return result;
  });
  Promise.all(all).then(
    (results) => {
      found = results;
    },
    (thrown: unknown) => {
      error = thrown;
    },
  );
  for (let i = 0; i < 20_000 && found === undefined && error === undefined; i++)
    await setImmediate();
  if (error !== undefined) throw error;
  return found;
}

const codeOf = (play: Promise<unknown>): Promise<string> =>
  play.then(
    () => '',
    (error: { code: string }) => error.code,
  );

test.each([
  ['in a letter', 2, {}],
  ['along a tree', 5, { treeFrom: 2 }],
  ['fetched, because letters carry nothing', 3, { inlineBytes: 0 }],
  ['from a GPU', 3, { gpus: 1, inlineBytes: 0, treeFrom: 2 }],
] as const)(
  'the number travels %s: %i ranks play the same iterations',
  async (_, ranks, options) => {
    const found = await onRanks(ranks, options, async ({ plan, sum, alone }) => {
      const seen: unknown[] = [];
      for (const [above, every, times] of [
        [3.5, 1, 100],
        [10.5, 4, 100],
        [100, 1, 7],
        [0, 5, 3],
      ] as const) {
        const { iterations, tasks } = await plan.run({
          times,
          while: { datum: sum, below: above, every },
        });
        seen.push([iterations, tasks]);
      }
      // Both plays are called at once; the second one takes up where the first one ended.
      const both = await Promise.all([
        plan.run({ while: { datum: sum, below: 30 } }),
        plan.run({ while: { datum: alone, below: 100, every: 3 } }),
      ]);
      seen.push(both.map(({ iterations }) => iterations));
      seen.push((await sum.read())[LENGTH - 1], (await alone.read())[0]);
      return seen;
    });
    const own = (rank: number): number => Number(rank === 0) + Number(rank === ranks - 1);
    const expected = (rank: number): unknown[] => [
      ...[4, 8, 7, 3].map((n) => [n, n * own(rank)]),
      ...[[8, 21], 51, 102],
    ];
    expect(found).toEqual(Array.from({ length: ranks }, (__, rank) => expected(rank)));
  },
);

/** The codes of plays whose options differ on one rank, and the value after a play that follows. */
function apart(differ: (on: OnRank) => PlayOptions): Promise<unknown[] | undefined> {
  return onRanks(3, {}, async (on) => {
    const { plan, sum, alone } = on;
    const code = await codeOf(plan.run(differ(on)));
    for (const datum of [sum, alone]) datum.set(new Float64Array(LENGTH));
    await plan.run({ while: { datum: sum, below: 5 } });
    return [code, (await sum.read())[0]];
  });
}

test.each<[string, (on: OnRank) => PlayOptions]>([
  ['times', ({ rank }) => ({ times: rank === 1 ? 4 : 5 })],
  ['times, of none', ({ rank }) => ({ times: rank === 1 ? 0 : 5 })],
  [
    'a condition on one rank only',
    ({ rank, sum }) => ({
      times: 5,
      ...(rank === 2 ? {} : { while: { datum: sum, below: 3 } }),
    }),
  ],
  ['a limit', ({ rank, sum }) => ({ while: { datum: sum, below: rank === 0 ? 3 : 9 } })],
  ['every', ({ rank, sum }) => ({ while: { datum: sum, below: 9, every: rank + 1 } })],
  [
    'a datum',
    ({ rank, sum, alone }) => ({
      while: { datum: rank === 0 ? sum : alone, below: 9 },
    }),
  ],
])('ranks that differ in %s get an error, and go on', async (_, differ) => {
  expect(await apart(differ)).toEqual(Array(3).fill(['ERR_GRAPH_MISMATCH', 5]));
});

test('without planSameLook: ranks that look for different limits wait for each other', async () => {
  setGuard('planSameLook', false);
  const found = await apart(({ rank, sum }) => ({
    while: { datum: sum, below: rank === 0 ? 3 : 9 },
  }));
  expect(found).toBeUndefined();
});

test('an abort on one rank ends the play on all', async () => {
  const found = await onRanks(3, {}, async ({ rank, plan, sum, alone }) => {
    const controller = new AbortController();
    const play = plan.run({ while: { datum: sum, below: 1e300 }, signal: controller.signal });
    if (rank === 1) afterKernels = () => controller.abort();
    const code = await codeOf(play);
    for (const datum of [sum, alone]) datum.set(new Float64Array(LENGTH));
    const { iterations } = await plan.run({ while: { datum: sum, below: 5 } });
    return [code, iterations];
  });
  const others = ['ERR_PEER_FAILED', 5];
  expect(found).toEqual([others, ['ERR_ABORTED', 5], others]);
});
