// A run that is cancelled in the middle of a reduction: the datum has no value, and none that can be restored, because what it holds is
// the sum of some contributions.
import '../support/removable-guards.js';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { Runtime, read, readWrite, reduce, task } from '../../index.js';

const twice = task({
  name: 'twice',
  flows: { y: readWrite('f64') },
  body: ({ y }) => {
    y[0] *= 2;
  },
});

afterEach(() => setGuard('partialSums', true));

/** What restore() and read() of a sum give, which was cancelled while the last contribution was missing. */
async function restored(deterministic: boolean, partials: number): Promise<string> {
  let added = 0;
  let finish = (): void => {};
  const last = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const slow = task({ name: 'slow', flows: { y: readWrite('f64') }, body: () => last });
  const add = task({
    name: 'add',
    flows: { y: reduce('f64', 'sum', { partials, deterministic }), x: read('f64') },
    body: ({ y, x }) => {
      y[0] += x[0];
      added++;
    },
  });
  const runtime = await Runtime.create({ workers: 1, checked: true });
  const y = runtime.data(Float64Array.of(100), { name: 'y' });
  const terms = [1, 2, 4, 8].map((value) => runtime.data(Float64Array.of(value)));
  const run = runtime.run(async (graph) => {
    graph.insert(slow, { y: terms[3] });
    for (const x of terms) graph.insert(add, { y, x });
    graph.insert(twice, { y });
    while (added < 3) await setImmediate();
    run.cancel();
    finish();
  });
  await expect(run.done).rejects.toThrow('cancelled');
  const code = (error: { code: string }): string => error.code;
  const call = await y.restore().then(() => 'resolved', code);
  const value = await y.read().then(String, code);
  await y.set(Float64Array.of(7));
  expect((await y.read())[0]).toBe(7);
  await runtime.close();
  return `${call} ${value}`;
}

const GONE = 'ERR_DATUM_POISONED ERR_DATUM_POISONED';

describe.each([true, false])('deterministic: %s', (deterministic) => {
  it('cannot be restored', async () => {
    expect(await restored(deterministic, 2)).toBe(GONE);
  });

  test('without partialSums: restore() brings the sum of some contributions', async () => {
    setGuard('partialSums', false);
    expect(await restored(deterministic, 2)).toBe('resolved 105');
  });
});

it('is restored if its tasks change the datum itself, one after the other', async () => {
  expect(await restored(true, 1)).toBe('resolved 107');
});
