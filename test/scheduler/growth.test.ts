// Programs that grow from bodies: trees, quadrature and sorting that insert their tasks as they run, in windows that are
// far too small for them; asynchronous bodies that await the tasks they inserted; and the limits, with their errors.
import { describe, expect, it } from 'vitest';
import {
  type Datum,
  type Flow,
  type Graph,
  type TaskClass,
  type TaskHandle,
  task,
  write,
} from '../../index.js';
import { mergeSort, quadrature, tree } from '../support/growing.js';
import { HOSTS, MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, delay, fill, random, script } from '../support/tasks.js';

const COUNT = 16;
const WINDOWS = [4, 16384];
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(MACHINES)('on $name', ({ options }) => {
  it.each(WINDOWS)('a tree of bodies grows, in a window of %i', async (window) => {
    await onMachine({ ...options, window, checked: false }, async (runtime) => {
      const { program, seen } = tree(16);
      expect((await soon(runtime, runtime.run(program))).tasks).toBe(2 ** 16 - 1);
      expect(seen.ran).toBe(2 ** 16 - 1);
      // The tables are as small as before.
      expect(runtime.engine.tasks.mask).toBe(window - 1);
    });
  });

  it.each(WINDOWS)('54 000 tasks of adaptive quadrature, in a window of %i', async (window) => {
    await onMachine({ ...options, window, checked: false }, async (runtime) => {
      const { program, seen } = quadrature(1e-17);
      const report = await soon(runtime, runtime.run(program));
      expect(report.tasks).toBeGreaterThan(54_000);
      expect(seen.sum).toBeCloseTo(2 / 3, 12);
    });
  });

  it.each(WINDOWS)(
    'merge sort makes its data and tasks as it goes, in a window of %i',
    async (window) => {
      await onMachine({ ...options, window }, async (runtime) => {
        const next = random(7);
        const values = Float64Array.from({ length: 3000 }, () => next());
        const sorted = runtime.data('f64', values.length);
        await soon(runtime, runtime.run(mergeSort(runtime, values, sorted)));
        expect(await sorted.read()).toEqual(values.slice().sort());
        await nothingLeft(runtime, [sorted]);
      });
    },
  );

  it.each(WINDOWS)('parents await their children, in a window of %i', async (window) => {
    await onMachine({ ...options, window }, async (runtime) => {
      let graph: Graph;
      const node: TaskClass<{ readonly out: Flow<'f64', 'write'> }, { readonly depth: 'i32' }> =
        task({
          name: 'node',
          flows: { out: write('f64') },
          params: { depth: 'i32' },
          body: async ({ out, depth }): Promise<void> => {
            out[0] = 1;
            if (depth === 1) return;
            // Some insert before their first await, some behind it.
            if (depth % 2 === 0) await pause(0);
            const children = [runtime.data('f64', 1), runtime.data('f64', 1)];
            for (const child of children) graph.insert(node, { out: child, depth: depth - 1 });
            for (const child of children) out[0] += (await child.read())[0];
            for (const child of children) child.close();
          },
        });
      const root = runtime.data('f64', 1);
      await soon(
        runtime,
        runtime.run((g) => {
          graph = g;
          graph.insert(node, { out: root, depth: 10 });
        }),
      );
      expect((await root.read())[0]).toBe(1023);
      await nothingLeft(runtime, [root]);
    });
  });

  it('kernels under way and their successors keep their places when the window moves', async () => {
    await onMachine({ ...options, window: 8 }, async (runtime) => {
      const one = runtime.data(new Float64Array(COUNT).fill(1));
      const data = Array.from({ length: 8 }, () => runtime.data(new Float64Array(COUNT)));
      const last: TaskHandle[] = [];
      let graph: Graph;
      let late = 0;
      const unfold = script('unfold', (values) => {
        for (const datum of data) graph.insert(delay, { of: datum, microseconds: 300 });
        for (let i = 0; i < 400; i++)
          last[i % 8] = graph.insert(add, { to: data[i % 8], from: one, count: COUNT });
        const check = task({ name: 'check', flows: {}, body: () => void (late = values[0]) });
        // The handle of a task far beyond the window, waited for and asked about.
        expect(run.explain(last[7]).stage).not.toBe('done');
        graph.insert(check, {}, { after: last });
        values[0] = 1;
      });
      const start = runtime.data(new Float64Array(1));
      const run = runtime.run(async (g) => {
        graph = g;
        await null;
        for (const datum of data) graph.insert(delay, { of: datum, microseconds: 2000 });
        graph.insert(unfold, { of: start });
        for (const datum of data) graph.insert(add, { to: datum, from: one, count: COUNT });
      });
      await soon(runtime, run);
      expect(late).toBe(1);
      for (const datum of data)
        expect(await datum.read()).toEqual(new Float64Array(COUNT).fill(51));
      await nothingLeft(runtime, [one, start, ...data]);
    });
  });

  it('a run that fails drops the tasks that its bodies inserted beyond the window', async () => {
    await onMachine({ ...options, window: 4 }, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT));
      let graph: Graph;
      const unfold = script('unfold', () => {
        for (let i = 0; i < 500; i++) graph.insert(fill, { to: datum, count: COUNT, value: i });
        throw new Error('enough');
      });
      const start = runtime.data(new Float64Array(1));
      const run = runtime.run((g) => {
        graph = g;
        graph.insert(unfold, { of: start });
      });
      await expect(soon(runtime, run)).rejects.toThrow('enough');
      await soon(
        runtime,
        runtime.run((g) => void g.insert(fill, { to: datum, count: COUNT, value: 3 })),
      );
      expect((await datum.read())[0]).toBe(3);
      await nothingLeft(runtime, [datum, start]);
    });
  });
});

describe.each(HOSTS)('on $name', ({ options }) => {
  it('a million tasks grow from one, in a tiny window', async () => {
    await onMachine({ ...options, window: 16, checked: false }, async (runtime) => {
      const { program, seen } = tree(20);
      await soon(runtime, runtime.run(program), 60_000);
      expect(seen.ran).toBe(2 ** 20 - 1);
    });
  }, 90_000);

  it('tasks take their places in the order of the calls, from the program and from bodies', async () => {
    await onMachine({ ...options, window: 4 }, async (runtime) => {
      const log = runtime.data(new Float64Array(400));
      let graph: Graph;
      const note = (value: number): void => {
        const cls = script('note', (values) => {
          values[0]++;
          values[values[0]] = value;
        });
        graph.insert(cls, { of: log });
      };
      const first = script('first', () => {
        for (let i = 0; i < 100; i++) note(100 + i);
      });
      const dummy = runtime.data(new Float64Array(1));
      await soon(
        runtime,
        runtime.run(async (g) => {
          graph = g;
          graph.insert(first, { of: dummy });
          await dummy.read();
          for (let i = 0; i < 100; i++) note(200 + i);
        }),
      );
      const values = await log.read();
      expect([...values.slice(1, 201)]).toEqual(Array.from({ length: 200 }, (_, i) => 100 + i));
      await nothingLeft(runtime, [log, dummy]);
    });
  });

  it('asynchronous bodies insert in a closed loop with space()', async () => {
    await onMachine({ ...options, window: 16 }, async (runtime) => {
      const sums = Array.from({ length: 100 }, () => runtime.data(new Float64Array(COUNT)));
      const one = runtime.data(new Float64Array(COUNT).fill(1));
      let graph: Graph;
      let most = 0;
      const grow = task({
        name: 'grow',
        flows: {},
        params: { index: 'i32' },
        body: async ({ index }) => {
          for (let i = 0; i < 50; i++) {
            graph.insert(add, { to: sums[index], from: one, count: COUNT });
            await graph.space();
            most = Math.max(most, run.progress.inserted - run.progress.completed);
          }
        },
      });
      const run = runtime.run((g) => {
        graph = g;
        for (let index = 0; index < sums.length; index++) graph.insert(grow, { index });
      });
      await soon(runtime, run);
      for (const sum of sums) expect((await sum.read())[0]).toBe(50);
      // All bodies, and what each inserts while the others do.
      expect(most).toBeLessThan(400);
      await nothingLeft(runtime, [one, ...sums]);
    });
  });

  it('bodies that await tasks which other bodies insert all start, for any number of bodies', async () => {
    await onMachine({ ...options, window: 16 }, async (runtime) => {
      const data: Datum<'f64'>[] = [];
      const wait = script('wait', async (values) => {
        const mine = runtime.data(new Float64Array(1).fill(2));
        data.push(mine);
        values[0] = (await mine.read())[0];
        // Others start meanwhile; nothing depends on how many.
        await pause(1);
      });
      const targets = Array.from({ length: 300 }, () => runtime.data(new Float64Array(1)));
      await soon(
        runtime,
        runtime.run((graph) => {
          for (const of of targets) graph.insert(wait, { of });
        }),
      );
      for (const target of targets) expect((await target.read())[0]).toBe(2);
      await nothingLeft(runtime, [...data, ...targets]);
    });
  });

  it('no more than 64 asynchronous bodies that insert nothing are under way at a time', async () => {
    await onMachine({ ...options, window: 16 }, async (runtime) => {
      let running = 0;
      let most = 0;
      let open = (): void => {};
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      /** Gives more bodies than the limit some turns to start in. */
      const openLater = async (): Promise<void> => {
        for (let turn = 0; turn < 20; turn++) await new Promise((go) => setImmediate(go));
        open();
      };
      const slow = task({
        name: 'slow',
        flows: {},
        body: async () => {
          most = Math.max(most, ++running);
          if (running === 64) void openLater();
          await opened;
          running--;
        },
      });
      await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < 300; i++) graph.insert(slow, {});
        }),
      );
      expect(most).toBe(64);
    });
  });

  it('a body that inserts more tasks than window and overflow hold gets an error with the class and the option', async () => {
    await onMachine({ ...options, window: 4, overflow: 100 }, async (runtime) => {
      const small = tree(6);
      await soon(runtime, runtime.run(small.program));
      expect(small.seen.ran).toBe(63);
      const large = runtime.run(tree(10).program);
      await expect(soon(runtime, large)).rejects.toMatchObject({
        code: 'ERR_WINDOW_FULL',
        message: expect.stringMatching(
          /a body cannot insert a task of class 'node': the window of 4 tasks and its overflow of 100 are full/,
        ),
        details: {
          limit: 104,
          remedy:
            'raise the option `overflow`, or let a body insert less: what comes behind it counts until it ends',
        },
      });
      // The runtime goes on, with tables as small as before.
      await soon(runtime, runtime.run(tree(6).program));
      expect(runtime.engine.tasks.mask).toBe(3);
    });
    // The remedy.
    await onMachine({ ...options, window: 4, overflow: 1000 }, async (runtime) => {
      await soon(runtime, runtime.run(tree(10).program));
    });
  });

  it.each([-1, 0.5, 2 ** 25, Number.NaN])('an overflow of %d is refused', async (overflow) => {
    await expect(onMachine({ ...options, overflow }, async () => {})).rejects.toMatchObject({
      code: 'ERR_OPTION',
    });
  });
});
