// restore() on several ranks, after a failed run, of a datum whose latest version was not with its owner.
import '../support/removable-guards.js';
import { afterEach, describe, expect, it, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import type { Datum, Graph } from '../../index.js';
import { partKernels } from '../support/part-programs.js';
import { onRanks } from '../support/simulated-ranks.js';
import { fail, fill } from '../support/tasks.js';

const codeOf = (promise: PromiseLike<unknown>): Promise<string> =>
  Promise.resolve(promise).then(
    () => 'resolved',
    (error: unknown) => (error as { code: string }).code,
  );

type Insert = (graph: Graph, x: Datum<'f64'>) => void;

/** What the owner of x, rank 0, gets from restore() and read() after a run that succeeds and one that fails. */
async function restored(seed: number, first: Insert, then: Insert): Promise<string> {
  const [ofOwner] = await onRanks({ ranks: 2, seed, kernels: partKernels }, async (runtime) => {
    const x = runtime.data(Float64Array.of(1), { name: 'x', rank: 0 });
    const scrap = runtime.data(Float64Array.of(0), { name: 'scrap', rank: 0 });
    await runtime.run((graph) => first(graph, x));
    const failed = runtime.run((graph) => {
      graph.insert(fail, { of: scrap, code: 3 });
      then(graph, x);
    });
    expect(await codeOf(failed.done)).not.toBe('resolved');
    const code = await codeOf(x.restore());
    const value = await x.read().then(String, (error: { code: string }) => error.code);
    await x.set(Float64Array.of(7));
    expect((await x.read())[0]).toBe(7);
    return `${code} ${value}`;
  });
  return ofOwner;
}

const GONE = 'ERR_DATUM_POISONED ERR_DATUM_POISONED';
const onOther: Insert = (graph, x) =>
  void graph.insert(fill, { to: x, count: 1, value: 2 }, { rank: 1 });
const onOwner: Insert = (graph, x) => void graph.insert(fill, { to: x, count: 1, value: 2 });
const nothing: Insert = () => {};
/** The owner begins to fetch x. */
const asks: Insert = (graph, x) => void graph.insert(fail, { of: x, code: 4 }, { rank: 0 });

describe('a value that another rank has written in an earlier run', () => {
  afterEach(() => setGuard('restoresLatest', true));

  it.each([1, 2, 3, 4, 5])('is gone after a failed run (%i)', async (seed) => {
    expect(await restored(seed, onOther, nothing)).toBe(GONE);
  });

  it.each([1, 2, 3, 4, 5])('is gone, or has come (%i)', async (seed) => {
    expect([GONE, 'resolved 2']).toContain(await restored(seed, onOther, asks));
  });

  test('without restoresLatest: restore() brings a value from before that run', async () => {
    setGuard('restoresLatest', false);
    expect(await restored(1, onOther, nothing)).toBe('resolved 1');
  });
});

it('brings the value from before a run that its owner has', async () => {
  expect(await restored(1, onOwner, nothing)).toBe('resolved 2');
});

describe('a datum of which one rank alone has parts', () => {
  afterEach(() => setGuard('refusedRestores', true));

  /** What both ranks get from restore() and read(). */
  const withParts = (on: number): Promise<string[]> =>
    onRanks({ ranks: 2, seed: 1, kernels: partKernels }, async (runtime) => {
      const x = runtime.data(new Float64Array(2), { name: 'x', rank: 0 });
      await runtime.run((graph) => {
        graph.insert(fill, { to: x, count: 2, value: 2 }, { rank: 1 });
      });
      if (runtime.rank === on) x.part(0, 1);
      const code = await codeOf(x.restore());
      return `${code} ${await x.read()}`;
    });

  it.each([0, 1])(
    'is not restored on rank %i, which makes the call as the other one',
    async (on) => {
      const seen = await withParts(on);
      expect(seen[on]).toBe('ERR_PART 2,2');
      expect(seen[1 - on]).toBe('resolved 2,2');
    },
  );

  test('without refusedRestores: the ranks are out of step', async () => {
    setGuard('refusedRestores', false);
    await expect(withParts(0)).rejects.toThrow('the ranks do not make the same calls');
  });
});
