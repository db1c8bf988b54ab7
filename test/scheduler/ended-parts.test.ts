// A datum whose parts are all closed is like one that never had parts.
import '../support/removable-guards.js';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { type Datum, parameterised, type Runtime, range, reduce, task } from '../../index.js';
import { countOnRanks, raise, zero } from '../support/body-tasks.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { codeOf } from '../support/outcomes.js';
import { partKernels } from '../support/part-programs.js';
import { onRanks } from '../support/simulated-ranks.js';
import { add, fail, fill } from '../support/tasks.js';

const count = task({
  name: 'count',
  flows: { total: reduce('f64', 'sum') },
  body: ({ total }) => {
    for (let i = 0; i < total.length; i++) total[i] += 1;
  },
});

const of = (runtime: Runtime): Datum<'f64'> =>
  runtime.data(Float64Array.of(1, 2, 3, 4), { name: 'x' });

const pause = task({ name: 'pause', flows: {}, body: async () => await setImmediate() });

/** A run that inserts tasks of a class and is cancelled before one of them runs. */
async function cancelled(
  runtime: Runtime,
  cls: typeof raise | typeof zero,
  x: Datum<'f64'>,
): Promise<void> {
  const stop = new AbortController();
  const run = runtime.run(
    (graph) => {
      const before = graph.insert(pause, {});
      graph.insert(cls as typeof raise, { x }, { after: [before] });
      stop.abort();
    },
    { signal: stop.signal },
  );
  expect(await codeOf(soon(runtime, run))).toBe('ERR_ABORTED');
}

/** Writes x by way of a part, closes the part, and raises x three times by a parameterised graph. */
async function raisedByGraph(runtime: Runtime, x: Datum<'f64'>): Promise<void> {
  const part = x.part(0, 2);
  await runtime.run((graph) => void graph.insert(fill, { to: part, count: 2, value: 7 }));
  part.close();
  const steps = parameterised('steps', (graph) => {
    const { step } = graph.declare({ step: { runs: raise, indices: ['i'] } });
    graph.define(step, {
      ranges: { i: () => range(0, 3) },
      flows: {
        x: {
          from: ({ i }) => (i === 0 ? x : step.x({ i: i - 1 })),
          to: ({ i }) => (i === 2 ? x : step.x({ i: i + 1 })),
        },
      },
    });
  });
  await runtime.run(steps, undefined);
}

describe.each(MACHINES)('on $name', ({ options }) => {
  it('tasks reduce into it, also before the parts have given back what they have', async () => {
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      const [a, b] = [x.part(0, 3), x.part(1, 2)];
      await runtime.run((graph) => {
        graph.insert(fill, { to: a, count: 3, value: 5 });
        graph.insert(fill, { to: b, count: 2, value: 6 });
        a.close();
        b.close();
        for (let i = 0; i < 20; i++) graph.insert(count, { total: x });
        graph.insert(raise, { x: x.part(3, 1) });
      });
      expect([...(await x.read())]).toEqual([25, 26, 26, 25]);
      expect(await codeOf(x.restore())).toBe('ERR_PART');
      x.part(3, 1).close();
      expect(x.view).toBeUndefined();
      await runtime.run((graph) => {
        for (let i = 0; i < 20; i++) graph.insert(count, { total: x });
      });
      expect([...(await x.read())]).toEqual([45, 46, 46, 45]);
      await nothingLeft(runtime, [x]);
    });
  });

  it('a part that is taken while a reduction is open sees its result', async () => {
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      x.part(0, 1).close();
      await runtime.run((graph) => {
        for (let i = 0; i < 9; i++) graph.insert(count, { total: x });
        graph.insert(raise, { x: x.part(0, 2) });
      });
      expect([...(await x.part(0, 3).read())]).toEqual([11, 12, 12]);
      await nothingLeft(runtime, [x]);
    });
  });

  it('a parameterised graph may use it', async () => {
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      await raisedByGraph(runtime, x);
      expect([...(await x.read())]).toEqual([10, 10, 6, 7]);
      await nothingLeft(runtime, [x]);
    });
  });
});

const { options } = MACHINES[0];

describe('without a guard', () => {
  afterEach(() => {
    setGuard('partsSealed', true);
  });

  it('without partsSealed: elements from before a newer part come back', async () => {
    setGuard('partsSealed', false);
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      const part = x.part(2, 2);
      await runtime.run((graph) => void graph.insert(fill, { to: part, count: 2, value: 7 }));
      await cancelled(runtime, zero, x);
      part.close();
      expect(await codeOf(x.restore())).toBe('none');
      expect([...(await x.read())]).not.toEqual([1, 2, 7, 7]);
    });
  });
});

describe('restore()', () => {
  it('undoes what a cancelled run behind the end of the parts did', async () => {
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      const part = x.part(2, 2);
      await runtime.run((graph) => void graph.insert(fill, { to: part, count: 2, value: 7 }));
      part.close();
      await cancelled(runtime, zero, x);
      expect(await codeOf(x.read())).toBe('ERR_DATUM_POISONED');
      await x.restore();
      expect([...(await x.read())]).toEqual([1, 2, 7, 7]);
      await nothingLeft(runtime, [x]);
    });
  });

  it.each([
    'the part, behind a task that wrote it',
    'the datum, while the part has newer elements',
    'the datum, and another run behind the end',
  ])(
    'does not bring back elements that a part had newer ones of: a cancelled run wrote %s',
    async (which) => {
      await onMachine(options, async (runtime) => {
        const x = of(runtime);
        const part = x.part(2, 2);
        await runtime.run((graph) => void graph.insert(fill, { to: part, count: 2, value: 7 }));
        await cancelled(runtime, zero, which.startsWith('the part') ? part : x);
        part.close();
        if (which.endsWith('end')) await cancelled(runtime, raise, x);
        expect(await codeOf(x.restore())).toBe('ERR_DATUM_POISONED');
        expect(await codeOf(x.read())).toBe('ERR_DATUM_POISONED');
        await runtime.run((graph) => void graph.insert(fill, { to: x, count: 4, value: 5 }));
        await cancelled(runtime, raise, x);
        await x.restore();
        expect([...(await x.read())]).toEqual([5, 5, 5, 5]);
        await nothingLeft(runtime, [x]);
      });
    },
  );
});

describe('a part that lost its elements before it was closed', () => {
  it('takes no others with it: the datum has a value when they are written again', async () => {
    await onMachine(options, async (runtime) => {
      const x = of(runtime);
      const part = x.part(2, 2);
      const run = runtime.run((graph) => void graph.insert(fail, { of: part, code: 3 }));
      expect(await codeOf(run)).toBe('ERR_TASK_FAILED');
      part.close();
      expect(await codeOf(x.read())).toBe('ERR_DATUM_POISONED');
      const again = x.part(2, 2);
      await again.set(Float64Array.of(8, 9));
      expect([...(await x.read())]).toEqual([1, 2, 8, 9]);
      again.close();
      await runtime.run((graph) => {
        for (let i = 0; i < 9; i++) graph.insert(count, { total: x });
      });
      expect([...(await x.read())]).toEqual([10, 11, 17, 18]);
      expect(x.view).toBeUndefined();
      await nothingLeft(runtime, [x]);
    });
  });

  it('a datum without a value has one when the rest is written by way of later parts', async () => {
    await onMachine(options, async (runtime) => {
      const x = runtime.data('f64', 4, { name: 'x' });
      for (const from of [0, 2]) {
        expect(await codeOf(x.read())).toBe('ERR_NEVER_WRITTEN');
        const part = x.part(from, 2);
        await part.set(Float64Array.of(from, from));
        part.close();
      }
      await runtime.run((graph) => {
        for (let i = 0; i < 9; i++) graph.insert(count, { total: x });
      });
      expect([...(await x.read())]).toEqual([9, 9, 11, 11]);
      await nothingLeft(runtime, [x]);
    });
  });
});

describe.each([1, 2, 3])('on two ranks, seed %i', (seed) => {
  it('tasks reduce into it, and restore() is possible', async () => {
    const all = await onRanks({ ranks: 2, seed, kernels: partKernels }, async (runtime) => {
      const x = of(runtime);
      const tens = [0, 1].map((rank) => runtime.data(new Float64Array(4).fill(10), { rank }));
      const part = x.part(1, 2);
      await runtime.run((graph) => {
        graph.insert(fill, { to: part, count: 2, value: 5 }, { rank: 1 });
        part.close();
        for (let i = 0; i < 6; i++) graph.insert(countOnRanks, { total: x }, { rank: i % 2 });
      });
      const first = [...(await x.read())].join(' ');
      await x.restore();
      // One rank makes a part that no task uses, and closes it. The others know nothing of it.
      if (runtime.rank === seed % 2) x.part(0, 2);
      await runtime.run((graph) => {
        graph.insert(add, { to: tens[1], from: x, count: 4 }, { rank: 1 });
        graph.insert(fill, { to: x.part(0, 2), count: 2, value: 1 }, { rank: 1 });
        graph.insert(add, { to: tens[0], from: x, count: 4 }, { rank: 1 });
      });
      x.part(0, 2).close();
      await runtime.run((graph) => void graph.insert(countOnRanks, { total: x }, { rank: 1 }));
      const sums = await Promise.all(tens.map((ten) => ten.read()));
      return [first, ...sums.map((sum) => [...sum].join(' ')), [...(await x.read())].join(' ')];
    });
    const expected = ['7 11 11 10', '11 11 21 20', '17 21 21 20', '2 2 12 11'];
    expect(all).toEqual([expected, expected]);
  });

  it('restore() brings back what the parts had', async () => {
    const all = await onRanks({ ranks: 2, seed, kernels: partKernels }, async (runtime) => {
      const x = of(runtime);
      const part = x.part(1, 2);
      await runtime.run((graph) => {
        graph.insert(fill, { to: part, count: 2, value: 5 }, { rank: 1 });
      });
      part.close();
      await x.read();
      await cancelled(runtime, raise, x);
      await x.restore();
      return [...(await x.read())].join(' ');
    });
    expect(all).toEqual(['1 5 5 4', '1 5 5 4']);
  });
});
