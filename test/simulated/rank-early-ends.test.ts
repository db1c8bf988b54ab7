// Runs and plays of several simulated ranks that end before their first task, or are cancelled when they are over: all ranks see the
// same end, and what was not written has no value.
import '../support/removable-guards.js';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { axpy } from '../../devices/simulated/cases/plan-programs.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { type Datum, type Graph, type Runtime, readWrite, task } from '../../scheduler/index.js';
import { onRanks } from '../support/simulated-ranks.js';

const LENGTH = 8;
const failing = task({
  name: 'failing',
  flows: { x: readWrite('f64') },
  body: () => {
    throw new Error('no');
  },
});
const kernels = { empty: () => 0 };

afterEach(() => {
  for (const guard of ['failedPlayEnters', 'abortNumbered', 'overStaysOver'] as const)
    setGuard(guard, true);
});

const datum = (runtime: Runtime, name: string, rank: number): Datum<'f64'> =>
  runtime.data(new Float64Array(LENGTH).fill(1), { name, rank });

/** The code of the error with which a call rejects, or its value. */
const outcomeOf = <T>(call: PromiseLike<T>): Promise<T | string> =>
  Promise.resolve(call).catch((error: { code: string }) => error.code);

const first = (data: readonly Datum<'f64'>[]): Promise<(number | string)[]> =>
  Promise.all(data.map((each) => outcomeOf(each.read().then(([value]) => value))));

/** y on rank 1 and z on rank 0 are written by a plan that reads x. */
async function planOf(runtime: Runtime, owner: number) {
  const [x, y, z] = [datum(runtime, 'x', owner), datum(runtime, 'y', 1), datum(runtime, 'z', 0)];
  const plan = await runtime.plan((graph) => {
    graph.insert(axpy, { y, x, n: LENGTH, a: 1 });
    graph.insert(axpy, { y: z, x: y, n: LENGTH, a: 1 });
  });
  return { plan, x, y, z };
}

/** A play of a plan that reads a datum of rank `owner` without a value; what the ranks see of the data that it writes. */
const playWithout = (owner: number): Promise<unknown[]> =>
  onRanks({ ranks: 2, seed: 1, kernels }, async (runtime) => {
    const { plan, x, y, z } = await planOf(runtime, owner);
    await outcomeOf(runtime.run((graph) => void graph.insert(failing, { x })));
    const played = await outcomeOf(plan.run({ times: 2 }));
    return [typeof played, ...(await first([y, z]))];
  });

/** A run, or a play, that is aborted on rank `rank` before it begins. */
const abortedBefore = (rank: number, kind: 'run' | 'play'): Promise<unknown[]> =>
  onRanks({ ranks: 2, seed: 1, kernels }, async (runtime) => {
    const { plan, x, y, z } = await planOf(runtime, 0);
    const signal = runtime.rank === rank ? AbortSignal.abort() : undefined;
    const options = signal === undefined ? {} : { signal };
    const program = (graph: Graph): void => void graph.insert(axpy, { y, x, n: LENGTH, a: 1 });
    const outcome =
      kind === 'play'
        ? await outcomeOf(plan.run(options))
        : await outcomeOf(runtime.run(program, options));
    for (const each of [y, z]) each.set(new Float64Array(LENGTH).fill(2));
    await plan.run();
    return [typeof outcome === 'string' ? outcome : 'ended well', ...(await first([y, z]))];
  });

/** Two runs that come again, the second of which is cancelled on a rank without tasks as soon as its program has ended. */
const cancelledAfter = (seed: number): Promise<unknown[]> =>
  onRanks({ ranks: 3, seed, kernels, options: { plans: 'auto' } }, async (runtime) => {
    const [x, y] = [datum(runtime, 'x', 2), datum(runtime, 'y', 2)];
    const program = (graph: Graph): void => {
      for (let i = 0; i < 60; i++) graph.insert(axpy, { y, x, n: LENGTH, a: 1 });
    };
    for (let k = 0; k < 8; k++) await runtime.run(program);
    const outcomes: string[] = [];
    for (let k = 0; k < 4; k++) {
      const one = runtime.run(program);
      // The other ranks have voted for a play by then.
      if (runtime.rank === 1) for (let i = 0; i < 5; i++) await setImmediate();
      const other = runtime.run(program);
      if (runtime.rank === 1) other.cancel();
      for (const run of [one, other])
        outcomes.push(typeof (await outcomeOf(run)) === 'string' ? 'failed' : 'ended well');
      y.set(new Float64Array(LENGTH));
    }
    return outcomes;
  });

describe('what a play should have written has no value', () => {
  const NONE = 'ERR_DATUM_POISONED';

  test.each([0, 1])('if a datum of rank %i that it reads has none', async (owner) => {
    expect(await playWithout(owner)).toEqual([
      ['string', NONE, NONE],
      ['string', NONE, NONE],
    ]);
  });

  test('without failedPlayEnters: data that the play should have written are readable', async () => {
    setGuard('failedPlayEnters', false);
    expect((await playWithout(0))[0]).toEqual(['string', NONE, 1]);
  });
});

describe('aborted before the begin', () => {
  test.each([
    { kind: 'run', rank: 0 },
    { kind: 'run', rank: 1 },
    { kind: 'play', rank: 0 },
    { kind: 'play', rank: 1 },
  ] as const)('$kind, on rank $rank: it fails on both, and the next play is right', async (of) => {
    const all = await abortedBefore(of.rank, of.kind);
    expect(all[of.rank]).toEqual(['ERR_ABORTED', 3, 5]);
    expect(all[1 - of.rank]).toEqual(['ERR_PEER_FAILED', 3, 5]);
  });

  test('without abortNumbered: the other rank waits for ever', async () => {
    setGuard('abortNumbered', false);
    await expect(abortedBefore(0, 'run')).rejects.toThrow('still waiting');
  });
});

describe('cancelled at the end of its program', () => {
  test('a run ends in the same way on all ranks', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const [zero, one] = await cancelledAfter(seed);
      expect(one).toEqual(zero);
    }
  });

  test('without overStaysOver: it fails on one rank', async () => {
    setGuard('overStaysOver', false);
    const [zero, one] = await cancelledAfter(1);
    expect(one).not.toEqual(zero);
  });
});
