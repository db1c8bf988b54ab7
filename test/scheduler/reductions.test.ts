// Reducing flows: the result and its order, the accesses that end a reduction, failures, plans, and what is refused.
import { describe, expect, it } from 'vitest';
import {
  type BuiltInOperator,
  type Datum,
  type ElementType,
  type Graph,
  HeadraceError,
  list,
  type Operator,
  type Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  reduce,
  type TaskClass,
  task,
  write,
} from '../../index.js';
import { copyOf } from '../support/body-tasks.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { codeOf } from '../support/outcomes.js';

const OPTIONS: RuntimeOptions = { workers: 2, hostMemory: '64MiB', checked: true };

/** total[i] += factor * from[i], on all devices. */
const add = task({
  name: 'add',
  flows: { total: reduce('f64', 'sum'), from: read('f64') },
  params: { count: 'f64', factor: 'f64' },
  kernel: 'add_f64',
});
const contribute = task({
  name: 'contribute',
  flows: { total: reduce('f64', 'sum') },
  params: { value: 'f64' },
  body: ({ total, value }) => {
    total[0] += value;
  },
});
const multiply = task({
  name: 'multiply',
  flows: { total: reduce('f64', 'product') },
  params: { value: 'f64' },
  body: ({ total, value }) => {
    total[0] *= value;
  },
});
const double = task({
  name: 'double',
  flows: { x: readWrite('f64') },
  body: ({ x }) => {
    x[0] *= 2;
  },
});
const clear = task({ name: 'clear', flows: { x: write('f64') }, body: ({ x }) => void x.fill(0) });
const fail = task({
  name: 'fail',
  flows: { total: reduce('f64', 'sum') },
  body: () => {
    throw new Error('no contribution');
  },
});

/** The sum as it is documented: partial results in turn, the first one of which is the datum, combined in a binary tree. */
function sumInOrder(first: number, values: readonly number[], partials = 8): number {
  const sums = [first];
  values.forEach((value, i) => {
    const p = i % partials;
    sums[p] = (sums[p] ?? -0) + value;
  });
  for (let step = 1; step < sums.length; step *= 2)
    for (let i = 0; i + step < sums.length; i += 2 * step) sums[i] += sums[i + step];
  return sums[0];
}

const values = Array.from({ length: 100 }, (_, i) => Math.sin(i) * 10 ** (i % 7));

describe.each(MACHINES)('a reduction on $name', ({ options }) => {
  it('has the bits of the documented order', async () => {
    await onMachine(options, async (runtime) => {
      const length = 300;
      const total = runtime.data(new Float64Array(length).fill(0.5), { name: 'total' });
      const inputs = values.map((value) => runtime.data(new Float64Array(length).fill(value)));
      for (let round = 0; round < 3; round++) {
        await runtime.run((graph) => {
          graph.insert(clear, { x: total });
          for (const from of inputs)
            graph.insert(add, { total, from, count: length, factor: 1 + round });
        });
        const scaled = values.map((value) => value * (1 + round));
        expect([...(await total.read())]).toEqual(
          new Array<number>(length).fill(sumInOrder(0, scaled)),
        );
      }
      await nothingLeft(runtime, [total, ...inputs]);
    });
  });

  it('evicts partial results that do not fit', async () => {
    const small = { ...options, gpuMemory: '256KiB', hostMemory: '16MiB' };
    await onMachine(small, async (runtime) => {
      const length = 8192;
      const totals = [0, 1, 2].map((i) => runtime.data(new Float64Array(length).fill(i)));
      const inputs = values.slice(0, 20).map((value) => {
        return runtime.data(new Float64Array(length).fill(value));
      });
      await runtime.run((graph) => {
        for (const from of inputs)
          for (const total of totals) graph.insert(add, { total, from, count: length, factor: 1 });
      });
      for (const [i, total] of totals.entries()) {
        const result = await total.read();
        expect(result[length - 1]).toBe(sumInOrder(i, values.slice(0, 20)));
        expect(result.every((value) => value === result[0])).toBe(true);
      }
      await nothingLeft(runtime, [...totals, ...inputs]);
    });
  });

  it('follows the device that a task names', async () => {
    await onMachine(options, async (runtime) => {
      const total = runtime.data(new Float64Array(1), { name: 'total' });
      const one = runtime.data(new Float64Array(1).fill(1));
      const devices = [...runtime.gpus.keys(), 'host' as const];
      await runtime.run((graph) => {
        for (let i = 0; i < 50; i++)
          graph.insert(
            add,
            { total, from: one, count: 1, factor: 1 },
            { device: devices[i % devices.length] },
          );
      });
      expect([...(await total.read())]).toEqual([50]);
    });
  });

  it('is part of a plan', async () => {
    await onMachine(options, async (runtime) => {
      const length = 10;
      const total = runtime.data(new Float64Array(length), { name: 'total' });
      const second = runtime.data(new Float64Array(length), { name: 'second' });
      const inputs = values.map((value) => runtime.data(new Float64Array(length).fill(value)));
      const plan = await runtime.plan((graph) => {
        graph.insert(fill, { to: total, count: length, value: 0 });
        for (const from of inputs) graph.insert(add, { total, from, count: length, factor: 1 });
        graph.insert(addTo, { to: second, from: total, count: length });
        for (const from of inputs) graph.insert(add, { total, from, count: length, factor: 2 });
      });
      const sum = sumInOrder(0, values);
      for (let play = 1; play <= 3; play++) {
        await plan.run();
        expect((await second.read())[length - 1]).toBe(
          Array(play)
            .fill(sum)
            .reduce((a, b) => a + b, 0),
        );
        const twice = values.map((value) => 2 * value);
        expect((await total.read())[0]).toBe(sumInOrder(sum, twice));
        expect(plan.report.criticalPath).toBeLessThan(60);
      }
      expect(await codeOf(plan.save('/nowhere/plan'))).toBe('ERR_PLAN_NAMES');
      plan.close();
      await nothingLeft(runtime, [total, second, ...inputs]);
    });
  });
});

const fill = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'f64', value: 'f64' },
  kernel: 'fill_f64',
});
const addTo = task({
  name: 'add to',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'f64' },
  kernel: 'add_f64',
});

async function withTotal(
  test: (runtime: Runtime, total: Datum<'f64'>) => Promise<void>,
): Promise<void> {
  await onMachine(OPTIONS, async (runtime) => {
    const total = runtime.data(new Float64Array(1), { name: 'total' });
    await test(runtime, total);
    await nothingLeft(runtime, [total]);
  });
}

describe('reducing tasks', () => {
  it('run at the same time', async () => {
    await withTotal(async (runtime, total) => {
      let waiting = 0;
      let release: () => void = () => {};
      const all = new Promise<void>((resolve) => {
        release = resolve;
      });
      const meet = task({
        name: 'meet',
        flows: { total: reduce('f64', 'sum', { partials: 5 }) },
        body: async ({ total }) => {
          if (++waiting === 5) release();
          await all;
          total[0] += 1;
        },
      });
      const run = runtime.run((graph) => {
        for (let i = 0; i < 5; i++) graph.insert(meet, { total });
      });
      await soon(runtime, run);
      expect([...(await total.read())]).toEqual([5]);
    });
  });

  it('use as many partial results as asked for', async () => {
    await withTotal(async (runtime, total) => {
      for (const partials of [1, 3, 64]) {
        const cls = task({
          name: 'contribute',
          flows: { total: reduce('f64', 'sum', { partials }) },
          params: { value: 'f64' },
          body: ({ total, value }) => {
            total[0] += value;
          },
        });
        await runtime.run((graph) => {
          graph.insert(clear, { x: total });
          for (const value of values) graph.insert(cls, { total, value });
        });
        expect([...(await total.read())]).toEqual([sumInOrder(0, values, partials)]);
      }
    });
  });

  it('may have several reducing flows and lists of them', async () => {
    await withTotal(async (runtime, total) => {
      const others = [1, 2].map((i) => runtime.data(new Float64Array([i])));
      const largest = runtime.data(new Int32Array([-5]));
      const both = task({
        name: 'both',
        flows: {
          totals: list(reduce('f64', 'sum')),
          largest: reduce('i32', 'max'),
        },
        params: { value: 'i32' },
        body: ({ totals, largest, value }) => {
          for (const each of totals) each[0] += value;
          largest[0] = Math.max(largest[0], value);
        },
      });
      await runtime.run((graph) => {
        for (let value = 0; value < 20; value++)
          graph.insert(both, { totals: [total, ...others], largest, value });
      });
      expect((await total.read())[0]).toBe(190);
      expect((await others[1].read())[0]).toBe(192);
      expect((await largest.read())[0]).toBe(19);
      for (const each of [...others, largest]) each.close();
    });
  });

  it('are inserted by bodies, also after the end of the program', async () => {
    await withTotal(async (runtime, total) => {
      let graph: Graph | undefined;
      const parent = task({
        name: 'parent',
        flows: { total: reduce('f64', 'sum') },
        params: { depth: 'i32' },
        body: ({ total: sum, depth }) => {
          sum[0] += 1;
          for (let i = 0; i < 3 && depth > 0; i++)
            graph?.insert(parent, { total: total as never, depth: depth - 1 });
        },
      }) as unknown as TaskClass<{ total: never }, { depth: 'i32' }>;
      await runtime.run((g) => {
        graph = g;
        for (let i = 0; i < 3; i++) g.insert(parent, { total: total as never, depth: 4 });
      });
      expect((await total.read())[0]).toBe(3 * (1 + 3 + 9 + 27 + 81));
    });
  });

  it('fill a small window, and bodies that end the reduction meanwhile see all of it', async () => {
    await onMachine({ ...OPTIONS, window: 16 }, async (runtime) => {
      const total = runtime.data(new Float64Array(1), { name: 'total' });
      const seen: number[] = [];
      const copies: Datum<'f64'>[] = [];
      let graph: Graph | undefined;
      let contributed = 0;
      const peek = task({
        name: 'peek',
        flows: { total: reduce('f64', 'sum') },
        body: ({ total: sum }) => {
          sum[0] += 1;
          const to = runtime.data('f64', 1);
          copies.push(to);
          graph?.insert(copyOf, { to, from: total });
          seen.push(contributed);
        },
      });
      await runtime.run((g) => {
        graph = g;
        for (let i = 0; i < 300; i++) {
          g.insert(i % 10 === 9 ? peek : contributeOne, { total });
          contributed++;
        }
      });
      expect((await total.read())[0]).toBe(300);
      expect(copies.length).toBe(30);
      for (const [i, each] of copies.entries()) {
        // The body may run within the insertion of the task that is counted next.
        const [value] = await each.read();
        expect(value - (seen[i] as number)).toBeGreaterThanOrEqual(0);
        expect(value - (seen[i] as number)).toBeLessThanOrEqual(1);
      }
      await nothingLeft(runtime, [total, ...copies]);
    });
  });
});

const contributeOne = task({
  name: 'contribute one',
  flows: { total: reduce('f64', 'sum') },
  body: ({ total }) => {
    total[0] += 1;
  },
});

describe('operators', () => {
  const model: Record<BuiltInOperator, (a: number, b: number) => number> = {
    sum: (a, b) => a + b,
    product: (a, b) => a * b,
    min: Math.min,
    max: Math.max,
  };
  const elements: readonly ElementType[] = ['f64', 'f32', 'i32', 'u32', 'u8'];
  const operators = Object.keys(model) as BuiltInOperator[];
  const cases = elements.flatMap((element) => operators.map((operator) => ({ element, operator })));
  const wrap = (element: ElementType, operator: BuiltInOperator, a: number, b: number): number => {
    const isWhole = element !== 'f64' && element !== 'f32';
    const exact = isWhole && operator === 'product' ? Math.imul(a, b) : model[operator](a, b);
    const [value] = arrayOf(element, [exact]);
    return value;
  };

  function arrayOf(element: ElementType, from: readonly number[]) {
    const make = {
      f64: Float64Array,
      f32: Float32Array,
      i32: Int32Array,
      u32: Uint32Array,
      u8: Uint8Array,
    };
    return make[element].from(from);
  }

  it.each(cases)('$operator of $element', async ({ element, operator }) => {
    await onMachine(OPTIONS, async (runtime) => {
      const special =
        element === 'f64' || element === 'f32'
          ? [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 0, 1.5, -2.25]
          : [0, 1, 3, 200, 255, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1];
      // Every pair of special values meets in an element.
      const pairs = special.flatMap((a) => special.map((b) => [a, b] as const));
      const cls = task({
        name: 'take',
        flows: { total: reduce(element, operator), from: read(element) },
        body: ({ total, from }) => {
          for (let i = 0; i < from.length; i++)
            total[i] = wrap(element, operator, total[i], from[i]);
        },
      });
      const left = arrayOf(
        element,
        pairs.map(([a]) => a),
      );
      const right = arrayOf(
        element,
        pairs.map(([, b]) => b),
      );
      const total = runtime.data(left as never) as unknown as Datum;
      const from = runtime.data(right as never) as unknown as Datum;
      await runtime.run((graph) => {
        // Both tasks have partial results of their own; the second one is combined by the kernel.
        graph.insert(cls as never, { total, from } as never);
        graph.insert(cls as never, { total, from } as never);
      });
      const expected = arrayOf(
        element,
        [...left].map((a, i) => {
          const once = wrap(element, operator, a, right[i]);
          return wrap(element, operator, once, right[i]);
        }),
      );
      const result = await total.read();
      for (let i = 0; i < left.length; i++)
        if (!Object.is(result[i], expected[i]))
          throw new Error(
            `${left[i]} ${operator} ${right[i]} twice is ${result[i]}, not ${expected[i]}`,
          );
      await nothingLeft(runtime, [total, from]);
    });
  });

  it('of the program have an identity and a combination', async () => {
    // Mean and number: (m, n) + (m', n') = ((m n + m' n') / (n + n'), n + n').
    const join = (to: Float64Array, mean: number, n: number): void => {
      const all = to[1] + n;
      to[0] = all === 0 ? 0 : (to[0] * to[1] + mean * n) / all;
      to[1] = all;
    };
    const mean: Operator = {
      identity: task({
        name: 'nothing',
        flows: { to: write('f64') },
        body: ({ to }) => void to.fill(0),
      }),
      combine: task({
        name: 'join',
        flows: { to: readWrite('f64'), from: read('f64') },
        body: ({ to, from }) => join(to as Float64Array, from[0], from[1]),
      }),
    };
    const sample = task({
      name: 'sample',
      flows: { mean: reduce('f64', mean) },
      params: { value: 'f64' },
      body: ({ mean, value }) => join(mean as Float64Array, value, 1),
    });
    await onMachine(OPTIONS, async (runtime) => {
      const datum = runtime.data(new Float64Array(2), { name: 'mean' });
      await runtime.run((graph) => {
        for (let value = 1; value <= 100; value++) graph.insert(sample, { mean: datum, value });
      });
      const [m, n] = await datum.read();
      expect(n).toBe(100);
      expect(m).toBeCloseTo(50.5, 10);
      await nothingLeft(runtime, [datum]);
    });
  });
});

describe('a reduction ends with', () => {
  const three = (graph: Graph, total: Datum<'f64'>): void => {
    for (let i = 0; i < 3; i++) graph.insert(contribute, { total, value: 1 });
  };

  it('a task that reads, changes or reduces otherwise', async () => {
    await withTotal(async (runtime, total) => {
      const before = runtime.data('f64', 1);
      await runtime.run((graph) => {
        three(graph, total);
        graph.insert(copyOf, { to: before, from: total });
        three(graph, total);
        graph.insert(double, { x: total });
        three(graph, total);
        for (let i = 0; i < 3; i++) graph.insert(multiply, { total, value: 2 });
        three(graph, total);
      });
      expect((await before.read())[0]).toBe(3);
      expect((await total.read())[0]).toBe((6 * 2 + 3) * 8 + 3);
      before.close();
    });
  });

  it('a task that overwrites the datum, whose contributions are lost', async () => {
    await withTotal(async (runtime, total) => {
      await runtime.run((graph) => {
        three(graph, total);
        graph.insert(clear, { x: total });
        three(graph, total);
      });
      expect((await total.read())[0]).toBe(3);
    });
  });

  it('a read and a value in the middle of the program', async () => {
    await withTotal(async (runtime, total) => {
      await runtime.run(async (graph) => {
        three(graph, total);
        expect(await graph.value(total)).toBe(3);
        three(graph, total);
        expect([...(await total.read())]).toEqual([6]);
        three(graph, total);
      });
      expect((await total.read())[0]).toBe(9);
    });
  });

  it('a set, a restore and the end of the datum', async () => {
    await withTotal(async (runtime, total) => {
      const other = runtime.data(new Float64Array(1));
      await runtime.run(async (graph) => {
        three(graph, total);
        three(graph, other);
        await total.set(new Float64Array([10]));
        three(graph, total);
        await total.restore();
        other.close();
        three(graph, total);
      });
      expect((await total.read())[0]).toBe(16);
    });
  });

  it('another run', async () => {
    await withTotal(async (runtime, total) => {
      let proceed: () => void = () => {};
      const later = new Promise<void>((resolve) => {
        proceed = resolve;
      });
      const first = runtime.run(async (graph) => {
        three(graph, total);
        await later;
        three(graph, total);
      });
      await runtime.run((graph) => three(graph, total));
      proceed();
      await first;
      expect((await total.read())[0]).toBe(9);
    });
  });
});

describe('a failure', () => {
  it('of a reducing task leaves the datum without a value', async () => {
    await withTotal(async (runtime, total) => {
      for (const at of [0, 3, 19]) {
        const run = runtime.run((graph) => {
          for (let i = 0; i < 20; i++)
            if (i === at) graph.insert(fail, { total });
            else graph.insert(contribute, { total, value: 1 });
        });
        expect(await codeOf(run.done)).toBe('ERR_TASK_FAILED');
        const error = (await total.read().catch((cause: unknown) => cause)) as HeadraceError;
        expect(error.code).toBe('ERR_DATUM_POISONED');
        expect(error.message).toContain("'total'");
        await total.set(new Float64Array([1]));
      }
      await runtime.run((graph) => void graph.insert(contribute, { total, value: 1 }));
      expect((await total.read())[0]).toBe(2);
    });
  });

  it('of the program before the end of a reduction leaves the datum without a value', async () => {
    await withTotal(async (runtime, total) => {
      const run = runtime.run(async (graph) => {
        for (let i = 0; i < 20; i++) graph.insert(contribute, { total, value: 1 });
        await runtime.engine.quiet();
        throw new Error('the program stops');
      });
      await expect(run.done).rejects.toThrow('the program stops');
      const error = (await total.read().catch((cause: unknown) => cause)) as HeadraceError;
      expect(error.code).toBe('ERR_DATUM_POISONED');
      expect(error.message).toContain("'total'");
      await runtime.run((graph) => {
        graph.insert(clear, { x: total });
        graph.insert(contribute, { total, value: 1 });
      });
      expect((await total.read())[0]).toBe(1);
    });
  });

  it('by a cancellation in the middle leaves the datum without a value', async () => {
    await withTotal(async (runtime, total) => {
      const run = runtime.run(async (graph) => {
        for (let i = 0; i < 20; i++) graph.insert(contribute, { total, value: 1 });
        await runtime.engine.quiet();
        run.cancel();
        await new Promise((resolve) => setImmediate(resolve));
      });
      expect(await codeOf(run.done)).toBe('ERR_ABORTED');
      expect(await codeOf(total.read())).toBe('ERR_DATUM_POISONED');
      await total.set(new Float64Array(1));
    });
  });
});

describe('misuse of reducing flows', () => {
  it('is refused', async () => {
    expect(() => reduce('f64', 'mean' as never)).toThrow(/sum, product, min, max/);
    expect(() => reduce('f64', 'sum', { partials: 0 })).toThrow(/from 1 to 1024/);
    expect(() => reduce('f64', 'sum', { parts: 0 } as never)).toThrow(/parts/);
    expect(() => reduce('f64', { identity: clear, combine: clear })).toThrow(/two flows/);
    expect(() => reduce('f32', { identity: clear, combine: copyOf } as never)).toThrow(
      /f64, not f32/,
    );
    expect(() =>
      task({
        name: 'x',
        flows: { a: { element: 'f64', mode: 'reduce' } as never },
        body: () => {},
      }),
    ).toThrow(/partials/);
    await withTotal(async (runtime, total) => {
      const twice = task({
        name: 'twice',
        flows: { a: reduce('f64', 'sum'), b: read('f64') },
        body: () => {},
      });
      const empty = runtime.data('f64', 1, { name: 'empty' });
      await runtime.run((graph) => {
        expect(() => graph.insert(twice, { a: total, b: total })).toThrow(/both datum 'total'/);
        expect(() => graph.insert(contribute, { total: empty, value: 1 })).toThrow(/written/);
        graph.insert(contribute, { total, value: 1 });
      });
      expect((await total.read())[0]).toBe(1);
      empty.close();
    });
  });

  it('of an own operator shows at the first task', async () => {
    const unknown = task({
      name: 'unknown',
      flows: { to: readWrite('f64'), from: read('f64') },
      kernel: 'no_such_kernel',
    });
    const cls = task({
      name: 'cls',
      flows: { total: reduce('f64', { identity: clear, combine: unknown }) },
      body: () => {},
    });
    await withTotal(async (runtime, total) => {
      await runtime.run((graph) => {
        expect(() => graph.insert(cls, { total })).toThrow(HeadraceError);
        graph.insert(contribute, { total, value: 1 });
      });
      expect((await total.read())[0]).toBe(1);
    });
  });
});
