// Parts of data without a value: what rejects, what keeps its value, and when a value comes back.
import '../support/removable-guards.js';
import { describe, expect, it, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { type Datum, Runtime, readWrite, task } from '../../index.js';
import { HOSTS, MACHINES, nothingLeft, onMachine } from '../support/machines.js';
import { playFailures } from '../support/part-failures.js';
import { add, fail, fill } from '../support/tasks.js';

const { options: HOST } = HOSTS[0];
const VALUES = [1, 2, 3, 4, 5, 6];

const outcomeOf = (promise: PromiseLike<Iterable<number>>): Promise<string> =>
  Promise.resolve(promise).then(
    (values) => [...values].join(' '),
    (error: unknown) => (error as { code: string }).code,
  );

interface Program {
  readonly runtime: Runtime;
  readonly x: Datum<'f64'>;
  readonly a: Datum<'f64'>;
  readonly b: Datum<'f64'>;
}

/** A datum of two parts, after a task on the first one has failed. */
async function afterFailure(test: (program: Program) => Promise<void>): Promise<void> {
  await onMachine(HOST, async (runtime) => {
    const x = runtime.data(Float64Array.from(VALUES), { name: 'x' });
    const [a, b] = [x.part(0, 3), x.part(3, 3)];
    const run = runtime.run((graph) => void graph.insert(fail, { of: a, code: 3 }));
    await expect(run.done).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
    await test({ runtime, x, a, b });
    await nothingLeft(runtime, [x]);
  });
}

const of = (value: number): Float64Array<ArrayBuffer> => new Float64Array(3).fill(value);

describe('after a task on a part has failed', () => {
  it('the datum has a value again when all its elements were written, whatever was read before', async () => {
    await afterFailure(async ({ x, a, b }) => {
      await b.set(of(8));
      expect(await outcomeOf(x.read())).toBe('ERR_DATUM_POISONED');
      await a.set(of(7));
      expect(await outcomeOf(x.read())).toBe('7 7 7 8 8 8');
    });
    await afterFailure(async ({ x, a, b }) => {
      expect(await outcomeOf(x.read())).toBe('ERR_DATUM_POISONED');
      await a.set(of(7));
      expect(await outcomeOf(x.read())).toBe('7 7 7 4 5 6');
      await b.set(of(8));
      expect(await outcomeOf(x.read())).toBe('7 7 7 8 8 8');
    });
  });

  it('the other parts keep their values, also when the datum is read', async () => {
    await afterFailure(async ({ x, a, b }) => {
      expect(await outcomeOf(x.read())).toBe('ERR_DATUM_POISONED');
      expect(await outcomeOf(x.part(2, 2).read())).toBe('ERR_DATUM_POISONED');
      expect(await outcomeOf(b.read())).toBe('4 5 6');
      expect(await outcomeOf(x.part(3, 2).read())).toBe('4 5');
      expect(await outcomeOf(a.read())).toBe('ERR_DATUM_POISONED');
    });
  });

  it('a task that should have changed the datum leaves none of its elements with a value', async () => {
    await afterFailure(async ({ runtime, x, a, b }) => {
      const touch = task({ name: 'touch', flows: { of: readWrite('f64') }, body: () => {} });
      const run = runtime.run((graph) => void graph.insert(touch, { of: x }));
      await expect(run.done).rejects.toMatchObject({ code: 'ERR_DATUM_POISONED' });
      expect(await outcomeOf(b.read())).toBe('ERR_DATUM_POISONED');
      await runtime.run((graph) => {
        graph.insert(fill, { to: a, count: 3, value: 1 });
        graph.insert(fill, { to: b, count: 3, value: 2 });
      });
      expect(await outcomeOf(x.read())).toBe('1 1 1 2 2 2');
    });
  });

  it('a part that is closed leaves the datum without a value until its elements are written', async () => {
    await afterFailure(async ({ x, a, b }) => {
      a.close();
      expect(await outcomeOf(x.read())).toBe('ERR_DATUM_POISONED');
      await x.part(0, 3).set(of(7));
      await b.set(of(8));
      expect(await outcomeOf(x.read())).toBe('7 7 7 8 8 8');
    });
  });
});

describe('a plan that is played after a task on a part has failed', () => {
  it('does not give the elements their old values back, whether it reads the datum, writes it, or has no iterations', async () => {
    const plays = [
      [0, 0],
      [1, 'ERR_DATUM_POISONED'],
      [-1, 'ERR_OPTION'],
    ] as const;
    for (const [times, outcome] of plays)
      for (const how of ['reads', 'writes', 'reads a part of'] as const) {
        await onMachine(HOST, async (runtime) => {
          const x = runtime.data(Float64Array.from(VALUES), { name: 'x' });
          const y = runtime.data(new Float64Array(6), { name: 'y' });
          const [a, b] = [x.part(0, 3), x.part(3, 3)];
          const data = { reads: [y, x], writes: [x, y], 'reads a part of': [y, b] }[how];
          const count = how === 'reads a part of' ? 3 : 6;
          const plan = await runtime.plan((graph) => {
            graph.insert(add, { to: data[0], from: data[1], count });
          });
          const run = runtime.run((graph) => void graph.insert(fail, { of: a, code: 3 }));
          const played = Promise.resolve()
            .then(() => plan.run({ times }))
            .then(
              ({ iterations }) => iterations,
              ({ code }) => code,
            );
          await expect(run.done).rejects.toMatchObject({ code: 'ERR_TASK_FAILED' });
          expect(await played).toBe(outcome);
          expect(await outcomeOf(x.read())).toBe('ERR_DATUM_POISONED');
          expect(await outcomeOf(a.read())).toBe('ERR_DATUM_POISONED');
          await a.set(of(7));
          await b.set(of(8));
          expect(await outcomeOf(x.read())).toBe('7 7 7 8 8 8');
          await y.set(new Float64Array(6));
          expect(await plan.run()).toMatchObject({ iterations: 1 });
          await nothingLeft(runtime, [x, y]);
        });
      }
  });
});

test('the remedy of a cancelled task on a part does not name restore(), which is refused', async () => {
  await onMachine(HOST, async (runtime) => {
    const x = runtime.data(Float64Array.from(VALUES), { name: 'x' });
    const [a, b] = [x.part(0, 3), x.part(3, 3)];
    const run = runtime.run((graph) => {
      graph.insert(fail, { of: a, code: 3 });
      const last = graph.insert(fail, { of: a, code: 3 });
      graph.insert(fail, { of: b, code: 3 }, { after: [last] });
    });
    await expect(run.done).rejects.toThrow('fail');
    const error = await b.read().then(
      () => new Error('it has a value'),
      (e: Error) => e,
    );
    expect(error).toMatchObject({ code: 'ERR_DATUM_POISONED' });
    expect(error.message).toMatch(/write all of it again before reading it/);
    expect(error.message).not.toMatch(/restore/);
    await nothingLeft(runtime, [x]);
  });
});

describe('random sequences', () => {
  it.each(MACHINES)(
    'on $name: exactly the views whose elements have values have one',
    async (machine) => {
      await onMachine(machine.options, async (runtime) => {
        for (let seed = 1; seed <= 25; seed++)
          await playFailures(runtime, seed, { steps: 12, isHasty: false });
      });
    },
  );

  it.each(MACHINES)(
    'on $name, nothing awaited: no wrong values, and they come back',
    async (machine) => {
      await onMachine(machine.options, async (runtime) => {
        for (let seed = 1; seed <= 25; seed++)
          await playFailures(runtime, seed, { steps: 15, isHasty: true });
      });
    },
  );
});

describe('guards', () => {
  test('without partMends: elements lose their value with others of a datum that was read', async () => {
    setGuard('partMends', false);
    try {
      await afterFailure(async ({ x }) => {
        expect(await outcomeOf(x.read())).toBe('ERR_DATUM_POISONED');
        expect(await outcomeOf(x.part(3, 2).read())).not.toBe('4 5');
      });
    } finally {
      setGuard('partMends', true);
    }
  });
});

test('if elements cannot be copied, the error of a reader has the reason', async () => {
  const kernels = { copy_block: () => 5 };
  const machine = { ...presets['h200-2'], gpuMemory: 2 ** 16, hostMemory: 2 ** 18 };
  const backend = new SimulatedBackend({ machine, kernels });
  const runtime = Runtime.over(backend, { checked: true });
  const x = runtime.data(Float64Array.from(VALUES), { name: 'x' });
  const { code, cause } = await x
    .part(0, 3)
    .read()
    .then(
      () => expect.unreachable(),
      (error: { code: string; cause: Error }) => error,
    );
  expect(code).toBe('ERR_DATUM_POISONED');
  expect(cause).toMatchObject({ code: 'ERR_TASK_FAILED' });
  expect(cause.message).toMatch(/copy of a part.*5/);
  await runtime.close();
});
