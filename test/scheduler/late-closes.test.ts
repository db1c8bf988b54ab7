// Closes, and ends of reductions, that find no row of the window: the memory comes back, and no value is wrong.
import { describe, expect, it } from 'vitest';
import {
  type Graph,
  type HeadraceError,
  parameterised,
  range,
  read,
  readWrite,
  reduce,
  task,
  temporary,
  write,
} from '../../index.js';
import { HOSTS, nothingLeft, onMachine, soon } from '../support/machines.js';

const make = task({ name: 'make', flows: { x: write('f64') }, kernel: 'empty' });
const change = task({ name: 'change', flows: { x: readWrite('f64') }, kernel: 'empty' });
const one = task({
  name: 'one',
  flows: { to: reduce('f64', 'sum') },
  body: ({ to }) => void to[0]++,
});

/** Two chains, each on a temporary. */
const chains = parameterised('chains', (graph) => {
  const { p, c } = graph.declare({
    p: { runs: make, indices: ['i'] },
    c: { runs: change, indices: ['i'] },
  });
  const ranges = { i: () => range(0, 2) };
  graph.define(p, {
    ranges,
    flows: { x: { from: () => temporary('f64', 1), to: ({ i }) => c.x({ i }) } },
  });
  graph.define(c, { ranges, flows: { x: { from: ({ i }) => p.x({ i }) } } });
});

describe.each(HOSTS)('on $name', ({ options }) => {
  it('a plan that is closed during its play gives its temporaries back, behind a full window', async () => {
    await onMachine({ ...options, window: 4, overflow: 4 }, async (runtime) => {
      const plan = await runtime.plan(chains, undefined);
      const other = runtime.data(new Float64Array(1));
      await soon(runtime, plan.run({ times: 3 }));
      const play = plan.run({ times: 3 });
      plan.close();
      const run = runtime.run((graph) => {
        for (let i = 0; i < 20; i++) graph.insert(change, { x: other });
      });
      expect((await soon(runtime, play)).iterations).toBe(3);
      expect((await soon(runtime, run)).tasks).toBe(20);
      await nothingLeft(runtime, [other]);
    });
  });

  it('the engine is quiet when the temporaries of bodies are closed', async () => {
    await onMachine(options, async (runtime) => {
      const parent = task({
        name: 'parent',
        flows: {},
        body: (_, { spawn, temporary: scratch }) => {
          for (let i = 0; i < 3; i++) spawn(make, { x: scratch('f64', 1000) });
        },
      });
      const { done } = runtime.run((graph) => {
        for (let i = 0; i < 5; i++) graph.insert(parent, {});
      });
      void done.then(() => {});
      await soon(runtime, runtime.engine.quiet());
      expect(runtime.memory()[0].used).toBe(0);
      await done;
    });
  });

  it('a body that finds no row for the end of a reduction may come again: the value is whole', async () => {
    const outcomes = new Set<string>();
    // Partial results of few bytes are kept, large ones are closed.
    for (let left = 0; left < 16; left++)
      await onMachine({ ...options, window: 4, overflow: 12 }, async (runtime) => {
        const sum = runtime.data(new Float64Array(left & 1 ? 10_000 : 1));
        const other = runtime.data(new Float64Array(1));
        let seen = -1;
        const look = task({
          name: 'look',
          flows: { x: readWrite('f64') },
          body: ({ x }) => {
            seen = x[0];
          },
        });
        let within!: Graph;
        let told: (outcome: string) => void;
        const outcome = new Promise<string>((resolve) => {
          told = resolve;
        });
        const reader = task({
          name: 'reader',
          flows: {},
          body: () => {
            const { tasks, room } = runtime.engine;
            while (tasks.live < room.limit - (left >> 1)) within.insert(change, { x: other });
            try {
              within.insert(look, { x: sum });
              told('inserted');
            } catch (error) {
              told((error as HeadraceError).code);
            }
          },
        });
        const run = runtime.run(async (graph) => {
          // Bodies insert into the graph in which the reduction is open.
          within = graph;
          for (let i = 0; i < 4; i++) graph.insert(one, { to: sum });
          graph.insert(reader, {});
          outcomes.add(await outcome);
          if ((await outcome) === 'inserted') return;
          await graph.space();
          graph.insert(look, { x: sum });
        });
        await soon(runtime, run);
        expect([left, seen]).toEqual([left, 4]);
        await nothingLeft(runtime, [sum, other]);
      });
    expect([...outcomes].sort()).toEqual(['ERR_WINDOW_FULL', 'inserted']);
  });

  it('a program that ends with open reductions and no row for their ends fails, and the data have no value', async () => {
    await onMachine({ ...options, window: 4, overflow: 4 }, async (runtime) => {
      const sums = [0, 1].map(() => runtime.data(new Float64Array(20_000)));
      const gates: (() => void)[] = [];
      let isOver = false;
      const waits = task({
        name: 'waits',
        flows: {},
        body: () => new Promise<void>((resolve) => gates.push(resolve)),
      });
      const { done } = runtime.run(async (graph) => {
        for (const to of sums) for (let i = 0; i < 3; i++) graph.insert(one, { to });
        const { tasks, room } = runtime.engine;
        // A row that came back after the window was filled would let an end in.
        while (tasks.live > 0) await new Promise(setImmediate);
        const body = task({
          name: 'body',
          flows: {},
          body: async () => {
            while (tasks.live < room.limit) graph.insert(waits, {});
            await new Promise<void>((resolve) => gates.push(resolve));
          },
        });
        graph.insert(body, {});
        while (gates.length === 0) await new Promise(setImmediate);
        isOver = true;
      });
      const outcome = done.then(
        () => 'over',
        (error: HeadraceError) => error.code,
      );
      // The end of the program has waited for rows, and given up, before the event loop goes on.
      while (!isOver) await new Promise(setImmediate);
      for (const open of gates) open();
      expect(await soon(runtime, outcome)).toBe('ERR_WINDOW_FULL');
      for (const sum of sums)
        await expect(soon(runtime, sum.read())).rejects.toMatchObject({
          code: 'ERR_DATUM_POISONED',
        });
      await nothingLeft(runtime, sums);
    });
  });
});

it('a set that is refused leaves a reduction open', async () => {
  await onMachine({ workers: 1, checked: true }, async (runtime) => {
    const total = runtime.data(new Float64Array(1));
    const x = runtime.data(new Float64Array(1));
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    let refused: HeadraceError | undefined;
    const contribute = task({
      name: 'contribute',
      flows: { to: reduce('f64', 'sum'), x: read('f64') },
      body: ({ to }) => void to[0]++,
    });
    const setter = task({
      name: 'setter',
      flows: { x: readWrite('f64') },
      body: async () => {
        await gate;
        await total.set(Float64Array.of(5)).catch((error: HeadraceError) => {
          refused = error;
        });
        end();
      },
    });
    const run = runtime.run(async (graph) => {
      graph.insert(setter, { x });
      for (let i = 0; i < 4; i++) graph.insert(contribute, { to: total, x });
      open();
      await ended;
    });
    await soon(runtime, run);
    expect(refused?.code).toBe('ERR_AWAITS_ITSELF');
    expect((await total.read())[0]).toBe(4);
  });
});
