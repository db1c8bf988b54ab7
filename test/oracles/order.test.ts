// Oracles about order: tasks run in the right order, and each runs exactly once.
import { describe, expect, it } from 'vitest';
import { taskBench } from '../../algorithms/index.js';
import {
  type Datum,
  DeclaredGraph,
  type Graph,
  read,
  type TaskHandle,
  task,
  write,
} from '../../index.js';
import { HOSTS, MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, copy, delay, fill, permutation, random, script, spin } from '../support/tasks.js';

const COUNT = 64;
const BYTES = COUNT * 8;

const noWorry = { checked: false } as const;

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it('write-after-read: five readers see v0, whatever the timing', async () => {
    await onMachine(options, async (runtime) => {
      const value = runtime.data('f64', COUNT, { name: 'value' });
      const seen = Array.from({ length: 5 }, (_, i) =>
        runtime.data(new Float64Array(COUNT), { name: `seen ${i}` }),
      );
      const byScript: number[] = [];
      const scriptReader = task({
        name: 'script reader',
        flows: { from: read('f64') },
        body: ({ from }) => {
          byScript.push(from[0], from[COUNT - 1]);
        },
      });
      const next = random(5);
      for (let round = 0; round < 25; round++) {
        const v0 = round * 2 + 1;
        const v1 = round * 2 + 2;
        byScript.length = 0;
        await soon(
          runtime,
          runtime.run((graph) => {
            graph.insert(fill, { to: value, count: COUNT, value: v0 });
            seen.forEach((to, i) => {
              const device = gpus === 0 ? ('host' as const) : i % gpus;
              // Late readers: their own output is busy for a while.
              graph.insert(delay, { of: to, microseconds: next() * 150 }, { device });
              graph.insert(copy, { to, from: value, bytes: BYTES }, { device });
            });
            graph.insert(scriptReader, { from: value });
            const writer = gpus === 0 ? ('host' as const) : round % gpus;
            graph.insert(fill, { to: value, count: COUNT, value: v1 }, { device: writer });
          }),
        );
        for (const datum of seen)
          expect(await datum.read()).toEqual(new Float64Array(COUNT).fill(v0));
        expect(byScript).toEqual([v0, v0]);
        expect(await value.read()).toEqual(new Float64Array(COUNT).fill(v1));
      }
      await nothingLeft(runtime, [value, ...seen]);
    });
  });

  it('insertion: each of 50 000 native tasks runs exactly once', async () => {
    await onMachine({ ...options, window: 2048 }, async (runtime) => {
      const one = runtime.data(new Float64Array(4).fill(1), { name: 'one' });
      const counters = Array.from({ length: 24 }, () => runtime.data(new Float64Array(4)));
      const expected = new Float64Array(counters.length);
      const next = random(50);
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 50_000; i++) {
            const c = Math.floor(next() * counters.length);
            expected[c]++;
            graph.insert(add, { to: counters[c], from: one, count: 4 });
          }
        }),
      );
      expect(report.tasks).toBe(50_000);
      for (let c = 0; c < counters.length; c++) {
        expect(await counters[c].read()).toEqual(new Float64Array(4).fill(expected[c]));
      }
      await nothingLeft(runtime, [one, ...counters]);
    });
  });

  it('insertion: 50 000 tasks of 0 to 3 dependencies run after their predecessors', async () => {
    await onMachine({ ...options, window: 2048 }, async (runtime) => {
      const outputs = [0, 1].map(() => Array.from({ length: 50 }, () => runtime.data('i32', 4)));
      let inserted = 0;
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          const shape = { pattern: 'random_nearest', width: 50, steps: 1000, radix: 3 } as const;
          inserted = taskBench(graph, shape, outputs, { epoch: 1 });
        }),
      );
      expect(inserted).toBe(50_000);
      expect(report.tasks).toBe(50_000);
      await nothingLeft(runtime, outputs.flat());
    });
  });

  it('gather: a task that follows n others by control only runs once, after all n', async () => {
    await onMachine(options, async (runtime) => {
      const n = 100;
      for (let round = 0; round < 5; round++) {
        const completed: number[] = [];
        const gather = task({
          name: 'gather',
          flows: {},
          body: () => {
            completed.push(run.progress.completed);
          },
        });
        const run = runtime.run(async (graph) => {
          // The handle is needed in the body: let it exist.
          await Promise.resolve();
          const handles: TaskHandle[] = [];
          for (let i = 0; i < n; i++) {
            const device = gpus > 0 && i % 3 !== 0 ? i % gpus : ('host' as const);
            handles.push(graph.insert(spin, { microseconds: (i * 7) % 40 }, { device }));
          }
          graph.insert(gather, {}, { after: handles });
        });
        const report = await soon(runtime, run);
        expect(completed).toEqual([n]);
        expect(report.tasks).toBe(n + 1);
        expect(Object.values(report.bytes).every((bytes) => bytes === 0)).toBe(true);
      }
    });
  });

  it('branching: A(i) feeds B(2i) and B(2i+1), both feed C(i): n, 2n and n tasks', async () => {
    await onMachine(options, async (runtime) => {
      const n = 60;
      const counts = { a: 0, b: 0, c: 0 };
      const make = (): Datum<'f64'> => runtime.data('f64', COUNT);
      const a = Array.from({ length: n }, make);
      const b = Array.from({ length: 2 * n }, make);
      const c = Array.from({ length: n }, make);
      const count = (which: keyof typeof counts) =>
        task({
          name: `count ${which}`,
          flows: { of: read('f64') },
          body: () => {
            counts[which]++;
          },
        });
      const [countA, countB, countC] = [count('a'), count('b'), count('c')];
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < n; i++) {
            graph.insert(fill, { to: a[i], count: COUNT, value: i + 1 });
            graph.insert(countA, { of: a[i] });
            for (const k of [2 * i, 2 * i + 1]) {
              graph.insert(copy, { to: b[k], from: a[i], bytes: BYTES });
              graph.insert(countB, { of: b[k] });
            }
            graph.insert(copy, { to: c[i], from: b[2 * i], bytes: BYTES });
            graph.insert(add, { to: c[i], from: b[2 * i + 1], count: COUNT });
            graph.insert(countC, { of: c[i] });
          }
        }),
      );
      expect(counts).toEqual({ a: n, b: 2 * n, c: n });
      expect(report.tasks).toBe(n * 9);
      for (let i = 0; i < n; i++)
        expect(await c[i].read()).toEqual(new Float64Array(COUNT).fill(2 * (i + 1)));
      await nothingLeft(runtime, [...a, ...b, ...c]);
    });
  });

  it('choice: a body inserts the successor it chose; the other never runs and the graph ends', async () => {
    await onMachine(options, async (runtime) => {
      const steps = 40;
      const left = runtime.data(new Float64Array(COUNT), { name: 'left' });
      const right = runtime.data(new Float64Array(COUNT), { name: 'right' });
      const one = runtime.data(new Float64Array(COUNT).fill(1), { name: 'one' });
      const chosen: string[] = [];
      let graph: Graph;
      const choose = task({
        name: 'choose',
        flows: { left: read('f64'), right: read('f64') },
        params: { step: 'i32' },
        body: ({ left: l, right: r, step }) => {
          // Decided by values that only exist at run time: the token goes where fewer have been, in threes.
          const toLeft = (l[0] * 3 + r[0] * 5 + step) % 7 < 3;
          chosen.push(toLeft ? 'left' : 'right');
          graph.insert(add, { to: toLeft ? left : right, from: one, count: COUNT });
          if (step + 1 < steps) graph.insert(choose, { left, right, step: step + 1 });
        },
      });
      const report = await soon(
        runtime,
        runtime.run((g) => {
          graph = g;
          graph.insert(choose, { left, right, step: 0 });
        }),
      );
      const lefts = chosen.filter((c) => c === 'left').length;
      expect(chosen).toHaveLength(steps);
      expect(lefts).toBeGreaterThan(0);
      expect(lefts).toBeLessThan(steps);
      expect(report.tasks).toBe(2 * steps);
      expect((await left.read())[0]).toBe(lefts);
      expect((await right.read())[0]).toBe(steps - lefts);
      await nothingLeft(runtime, [left, right, one]);
    });
  });

  it('permutation chain: execution order equals the permutation', async () => {
    await onMachine(options, async (runtime) => {
      const n = 400;
      const order = permutation(n, 11);
      const ran: number[] = [];
      const step = task({
        name: 'step',
        flows: {},
        params: { i: 'i32' },
        body: ({ i }) => {
          ran.push(i);
        },
      });
      // Declared in index order, so that most predecessors are declared later; native tasks in between.
      const before = new Map(order.map((i, at) => [i, at === 0 ? undefined : order[at - 1]]));
      const declared = new DeclaredGraph();
      for (let i = 0; i < n; i++) {
        const predecessor = before.get(i);
        const after = predecessor === undefined ? [] : [`pause ${predecessor}`];
        declared.add(`step ${i}`, step, { i }, { after });
        declared.add(`pause ${i}`, spin, { microseconds: (i * 13) % 9 }, { after: [`step ${i}`] });
      }
      await soon(
        runtime,
        runtime.run((graph) => {
          declared.insertInto(graph);
        }),
      );
      expect(ran).toEqual(order);
    });
  });
});

describe.each(HOSTS)('JavaScript bodies on $name', ({ options }) => {
  it('insertion: 50 000 bodies of 0 to 3 dependencies run exactly once, in dependency order', async () => {
    await onMachine({ ...options, ...noWorry, window: 4096 }, async (runtime) => {
      const n = 50_000;
      const runs = new Uint8Array(n);
      const orderOf = new Int32Array(n);
      const data = Array.from({ length: 32 }, () => runtime.data(new Float64Array(1)));
      const lastWriter = new Int32Array(data.length).fill(-1);
      let position = 0;
      const body = ({ i }: { readonly i: number }): void => {
        runs[i]++;
        orderOf[i] = ++position;
      };
      const params = { i: 'i32' } as const;
      const classes = [
        task({ name: 'w', flows: { to: write('f64') }, params, body }),
        task({ name: 'wr', flows: { to: write('f64'), a: read('f64') }, params, body }),
        task({
          name: 'wrr',
          flows: { to: write('f64'), a: read('f64'), b: read('f64') },
          params,
          body,
        }),
      ] as const;
      const edges: number[] = [];
      const next = random(9);
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < n; i++) {
            const [to, a, b] = permutation(data.length, i).slice(0, 3);
            const from = [a, b].slice(0, Math.floor(next() * 3));
            for (const d of [to, ...from]) if (lastWriter[d] >= 0) edges.push(lastWriter[d], i);
            lastWriter[to] = i;
            const inputs = Object.fromEntries(from.map((d, k) => [['a', 'b'][k], data[d]]));
            graph.insert(
              classes[from.length] as (typeof classes)[2],
              {
                to: data[to],
                ...inputs,
                i,
              } as never,
            );
          }
        }),
      );
      expect(runs.every((r) => r === 1)).toBe(true);
      let late = 0;
      for (let e = 0; e < edges.length; e += 2)
        if (orderOf[edges[e]] >= orderOf[edges[e + 1]]) late++;
      expect(late).toBe(0);
      await nothingLeft(runtime, data);
    });
  });

  it('a chain of bodies on one datum runs in program order', async () => {
    await onMachine(options, async (runtime) => {
      const token = runtime.data(new Float64Array(1));
      const bodies = [0, 1, 2].map((i) =>
        script(`body ${i}`, (v) => {
          v[0] = v[0] * 3 + i;
        }),
      );
      const order = Array.from({ length: 30 }, (_, i) => (i * 7) % 3);
      let expected = 0;
      for (const i of order) expected = expected * 3 + i;
      await soon(
        runtime,
        runtime.run((graph) => {
          for (const i of order) graph.insert(bodies[i], { of: token });
        }),
      );
      expect((await token.read())[0]).toBe(expected);
    });
  });
});
