// Reductions with `deterministic: false`: partial results are combined as they become ready.
import { describe, expect, it } from 'vitest';
import {
  commute,
  type Operator,
  type ReduceOptions,
  read,
  readWrite,
  reduce,
  type TaskClass,
  task,
  write,
} from '../../index.js';
import { MACHINES, onMachine, soon } from '../support/machines.js';

/** A sum whose combinations note what they add. */
function noting(options: ReduceOptions): { add: TaskClass; added: number[] } {
  const added: number[] = [];
  const own: Operator = {
    identity: task({ name: 'zero', flows: { x: write('f64') }, body: ({ x }) => void x.fill(0) }),
    combine: task({
      name: 'plus',
      flows: { x: readWrite('f64'), y: read('f64') },
      body: ({ x, y }) => {
        x[0] += y[0];
        added.push(y[0]);
      },
    }),
  };
  const add = task({
    name: 'add',
    flows: { total: reduce('f64', own, { partials: 4, ...options }) },
    params: { value: 'f64' },
    body: async ({ total, value }) => {
      // The second partial result comes last.
      for (let i = 0; i < (value === 1 ? 20 : 1); i++) await new Promise(setImmediate);
      total[0] += value;
    },
  });
  return { add: add as unknown as TaskClass, added };
}

async function order(options: ReduceOptions): Promise<number[]> {
  const { add, added } = noting(options);
  return await onMachine({ workers: 1, checked: true }, async (runtime) => {
    const total = runtime.data(new Float64Array(1));
    const run = runtime.run((graph) => {
      for (let value = 0; value < 4; value++) graph.insert(add, { total, value } as never);
    });
    await soon(runtime, run.done);
    expect((await total.read())[0]).toBe(6);
    return added;
  });
}

describe('partial results', () => {
  it('wait for none that is late, with `deterministic: false`', async () => {
    expect(await order({ deterministic: false })).toEqual([2, 3, 1]);
  });

  it('are combined in a tree by default', async () => {
    expect(await order({})).toEqual([3, 1, 5]);
    expect(await order({ deterministic: true })).toEqual([3, 1, 5]);
  });
});

it.each(MACHINES)('$name: any order gives the result of any other', async ({ options }) => {
  const operators = ['sum', 'min', 'max'] as const;
  await onMachine(options, async (runtime) => {
    for (const operator of operators) {
      const flows = { total: reduce('f64', operator, { deterministic: false }) };
      const put = task({
        name: operator,
        flows,
        params: { value: 'f64' },
        body: ({ total, value }) => {
          total[0] = operator === 'sum' ? total[0] + value : Math[operator](total[0], value);
        },
      });
      const total = runtime.data(Float64Array.of(50));
      await runtime.run((graph) => {
        for (let value = 0; value <= 100; value++) graph.insert(put, { total, value });
      });
      expect((await total.read())[0]).toBe({ sum: 5100, min: 0, max: 100 }[operator]);
    }
  });
});

it('flows of one operator, in a given order and in any, are two reductions', async () => {
  await onMachine({ workers: 2, checked: true }, async (runtime) => {
    const classes = [true, false].map((deterministic) =>
      task({
        name: `put ${deterministic}`,
        flows: { total: reduce('f64', 'sum', { deterministic }) },
        params: { value: 'f64' },
        body: ({ total, value }) => void (total[0] += value),
      }),
    );
    const total = runtime.data(Float64Array.of(0));
    await runtime.run((graph) => {
      for (let value = 1; value <= 40; value++)
        graph.insert(classes[(value >> 2) & 1], { total, value });
    });
    expect((await total.read())[0]).toBe(820);
  });
});

it('tasks of the program that commute come before all combinations, or after them', async () => {
  await onMachine({ workers: 1, checked: true }, async (runtime) => {
    const raise = task({
      name: 'raise',
      flows: { total: commute('f64') },
      params: { by: 'f64' },
      body: ({ total, by }) => void (total[0] += by),
    });
    const lower = task({
      name: 'lower',
      flows: { total: reduce('f64', 'min', { partials: 4, deterministic: false }) },
      params: { to: 'f64' },
      body: async ({ total, to }) => {
        // The partial result of the smallest number comes last.
        for (let i = 0; i < (to === 7 ? 20 : 1); i++) await new Promise(setImmediate);
        total[0] = Math.min(total[0], to);
      },
    });
    const total = runtime.data(Float64Array.of(1));
    await runtime.run((graph) => {
      graph.insert(raise, { total, by: 10 });
      for (const to of [10, 7, 12, 9]) graph.insert(lower, { total, to });
      graph.insert(raise, { total, by: 100 });
    });
    expect((await total.read())[0]).toBe(107);
  });
});

it('refuses any other value of the option', () => {
  expect(() => reduce('f64', 'sum', { deterministic: 1 as never })).toThrow(
    expect.objectContaining({
      code: 'ERR_OPTION',
      message: expect.stringContaining('has 1 as `deterministic`: it takes true or false'),
    }),
  );
});
