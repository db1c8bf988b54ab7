// What a parameterised graph promises of order and memory: readers before the writer that follows, gathers of orders without data, lists,
// temporaries that are freed, values that come home, instances beside each other, and memory for active tasks only.
import { describe, expect, it } from 'vitest';
import {
  list,
  type ParameterisedGraph,
  parameterised,
  type Runtime,
  range,
  read,
  readWrite,
  task,
  temporary,
  write,
} from '../../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../../support/machines.js';
import { add, fill, permutation } from '../../support/tasks.js';

describe.each(MACHINES)('on $name', ({ options }) => {
  it('the readers of a version come before its writer, whatever their numbers', async () => {
    await onMachine(options, async (runtime) => {
      const count = 9;
      const seen: number[] = [];
      const look = task({
        name: 'look',
        flows: { x: read('f64') },
        params: { i: 'i32' },
        body: ({ x, i }) => {
          seen[i] = x[0];
        },
      });
      const graph = parameterised('readers', (g) => {
        const { first, next, reader } = g.declare({
          next: { runs: add, indices: ['n'] },
          reader: { runs: look, indices: ['n', 'i'] },
          first: { runs: fill, indices: [] },
        });
        const maker = (n: number) => (n === 0 ? first.to({}) : next.to({ n: n - 1 }));
        const users = (n: number) => [
          // The writer is named first and yet inserted last.
          n < 4 && next.to({ n }),
          range(0, count).map((i) => reader.x({ n, i })),
        ];
        g.define(first, {
          ranges: {},
          flows: { to: { from: () => temporary('f64', 1), to: () => users(0) } },
          params: () => ({ count: 1, value: 1 }),
        });
        g.define(next, {
          ranges: { n: () => range(0, 4) },
          flows: {
            to: { from: ({ n }) => maker(n), to: ({ n }) => users(n + 1) },
            from: { from: () => step },
          },
          params: () => ({ count: 1 }),
          priority: () => 100,
        });
        g.define(reader, {
          ranges: { n: () => range(0, 5), i: () => range(0, count) },
          flows: { x: { from: ({ n }) => maker(n) } },
          params: ({ n, i }) => ({ i: n * count + i }),
        });
      });
      const step = runtime.data(Float64Array.of(1));
      const { tasks } = await soon(runtime, runtime.run(graph, undefined));
      expect(tasks).toBe(5 + 5 * count);
      expect(seen).toEqual(Array.from({ length: 5 * count }, (_, i) => 1 + Math.floor(i / count)));
      await nothingLeft(runtime, [step]);
    });
  });

  it('an order without data, gathered and spread', async () => {
    await onMachine(options, async (runtime) => {
      const done: string[] = [];
      const note = (name: string) =>
        task({
          name,
          flows: {},
          params: { i: 'i32' },
          body: ({ i }) => void done.push(`${name}${i}`),
        });
      const graph = parameterised('orders', (g) => {
        const { before, middle, after } = g.declare({
          after: { runs: note('after'), indices: ['i'], controls: ['go'] },
          middle: { runs: note('middle'), indices: [], controls: ['come', 'go'] },
          before: { runs: note('before'), indices: ['i'], controls: ['go'] },
        });
        const five = { i: () => range(0, 5) };
        g.define(before, {
          ranges: five,
          flows: {},
          controls: { go: { to: () => middle.come({}) } },
          params: ({ i }) => ({ i }),
        });
        g.define(middle, {
          ranges: {},
          flows: {},
          controls: {
            come: { from: () => range(0, 5).map((i) => before.go({ i })) },
            go: { to: () => range(0, 5).map((i) => after.go({ i })) },
          },
          params: () => ({ i: 0 }),
        });
        g.define(after, {
          ranges: five,
          flows: {},
          controls: { go: { from: () => middle.go({}) } },
          params: ({ i }) => ({ i }),
        });
      });
      await soon(runtime, runtime.run(graph, undefined));
      expect(done).toHaveLength(11);
      expect(done[5]).toBe('middle0');
      expect(done.slice(0, 5).every((name) => name.startsWith('before'))).toBe(true);
    });
  });

  it('a list gathers the outputs of many tasks in the order of `from`', async () => {
    await onMachine(options, async (runtime) => {
      const digits = task({
        name: 'digits',
        flows: { parts: list(read('f64')), to: write('f64') },
        body: ({ parts, to }) => {
          to[0] = parts.reduce((all, [digit]) => 10 * all + digit, 0);
        },
      });
      const result = runtime.data('f64', 1);
      const order = [3, 1, 4, 1, 5];
      const graph = parameterised('gather', (g) => {
        const { leaf, root } = g.declare({
          leaf: { runs: fill, indices: ['i'] },
          root: { runs: digits, indices: [] },
        });
        g.define(leaf, {
          ranges: { i: () => range(0, 6) },
          flows: {
            to: {
              from: () => temporary('f64', 1),
              to: ({ i }) => order.filter((n) => n === i).map(() => root.parts({})),
            },
          },
          params: ({ i }) => ({ count: 1, value: i }),
        });
        g.define(root, {
          ranges: {},
          flows: {
            parts: { from: () => order.map((i) => leaf.to({ i })) },
            to: { from: () => result, to: () => result },
          },
        });
      });
      await soon(runtime, runtime.run(graph, undefined));
      expect([...(await result.read())]).toEqual([31415]);
      await nothingLeft(runtime, [result]);
    });
  });

  it('a temporary comes home as a copy; instances follow each other by their data', async () => {
    await onMachine(options, async (runtime) => {
      const [from, to] = [runtime.data(Float64Array.of(5, 6)), runtime.data('f64', 2)];
      interface Given {
        readonly value: number;
      }
      const graph: ParameterisedGraph<Given> = parameterised('home', (g, { value }) => {
        const { make, sum } = g.declare({
          make: { runs: fill, indices: [] },
          sum: { runs: add, indices: [] },
        });
        g.define(make, {
          ranges: {},
          flows: { to: { from: () => temporary('f64', 2), to: () => sum.to({}) } },
          params: () => ({ count: 2, value }),
        });
        g.define(sum, {
          ranges: {},
          flows: {
            to: { from: () => make.to({}), to: () => to },
            from: { from: () => from },
          },
          params: () => ({ count: 2 }),
        });
      });
      const runs = [1, 2].map((value) => runtime.run(graph, { value }));
      const third = runtime.run((g) => {
        g.insert(add, { to, from, count: 2 });
        expect(graph.insertInto(g, { value: 3 })).toBe(2);
        g.insert(add, { to, from, count: 2 });
      });
      await soon(runtime, Promise.all([...runs, third].map((run) => run.done)));
      expect([...(await to.read())]).toEqual([13, 15]);
      await nothingLeft(runtime, [from, to]);
    });
  });

  it('a permutation chain: each task takes what another one left', async () => {
    await onMachine(options, async (runtime) => {
      const [width, steps] = [16, 12];
      const orders = Array.from({ length: steps }, (_, t) => permutation(width, t));
      const data = Array.from({ length: width }, (_, i) => runtime.data(Float64Array.of(i)));
      const last: number[] = [];
      const move = task({
        name: 'move',
        flows: { x: readWrite('f64') },
        params: { t: 'i32', i: 'i32' },
        body: ({ x, t, i }) => {
          x[0] = 2 * x[0] + (i % 2);
          if (t === steps - 1) last[i] = x[0];
        },
      });
      const graph = parameterised('permutations', (g) => {
        const { at } = g.declare({ at: { runs: move, indices: ['t', 'i'] } });
        g.define(at, {
          ranges: { t: () => range(0, steps), i: () => range(0, width) },
          flows: {
            x: {
              from: ({ t, i }) => (t === 0 ? data[i] : at.x({ t: t - 1, i: orders[t].indexOf(i) })),
              to: ({ t, i }) => t + 1 < steps && at.x({ t: t + 1, i: orders[t + 1][i] }),
            },
          },
          params: ({ t, i }) => ({ t, i }),
        });
      });
      await soon(runtime, runtime.run(graph, undefined));
      let expected = Array.from({ length: width }, (_, i) => i);
      for (let t = 0; t < steps; t++) {
        const next: number[] = [];
        expected.forEach((value, from) => {
          const i = t === 0 ? from : orders[t][from];
          next[i] = 2 * value + (i % 2);
        });
        expected = next;
      }
      expect(last).toEqual(expected);
      await nothingLeft(runtime, data);
    });
  });
});

it('a long graph is never kept as a whole: few temporaries are open at a time', async () => {
  await onMachine({ workers: 1, window: 64 }, async (runtime: Runtime) => {
    const steps = 4000;
    const result = runtime.data('f64', 1);
    const one = runtime.data(Float64Array.of(1));
    let open = 0;
    let most = 0;
    const sum = task({
      name: 'sum',
      flows: { to: write('f64'), from: read('f64') },
      body: ({ to, from }) => {
        to[0] = from[0] + 1;
      },
    });
    const graph = parameterised('long', (g) => {
      const { step } = g.declare({ step: { runs: sum, indices: ['t'] } });
      g.define(step, {
        ranges: { t: () => range(0, steps) },
        flows: {
          to: {
            from: ({ t }) => (t + 1 === steps ? result : temporary('f64', 1)),
            to: ({ t }) => (t + 1 === steps ? result : step.from({ t: t + 1 })),
          },
          from: { from: ({ t }) => (t === 0 ? one : step.to({ t: t - 1 })) },
        },
      });
    });
    await soon(
      runtime,
      runtime.run((g) => {
        const make = g.makeTemporary.bind(g);
        const free = g.freeTemporary.bind(g);
        g.makeTemporary = (...of) => {
          most = Math.max(most, ++open);
          return make(...of);
        };
        g.freeTemporary = (datum) => {
          open--;
          free(datum);
        };
        graph.insertInto(g, undefined);
      }),
    );
    expect([...(await result.read())]).toEqual([steps + 1]);
    expect(open).toBe(0);
    expect(most).toBeLessThanOrEqual(2);
    await nothingLeft(runtime, [one, result]);
  });
});
