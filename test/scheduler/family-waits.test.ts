// Bodies that wait for their own families: what would never end is refused, however many tasks lie between.
import { expect, it } from 'vitest';
import {
  type Datum,
  type HeadraceError,
  type Run,
  type Runtime,
  read,
  readWrite,
  task,
} from '../../index.js';
import { onMachine, soon } from '../support/machines.js';

const addTo = task({
  name: 'addTo',
  flows: { to: readWrite('f64'), from: read('f64') },
  body: ({ to, from }) => {
    to[0] += from[0];
  },
});
const bump = task({
  name: 'bump',
  flows: { x: readWrite('f64') },
  body: ({ x }) => void x[0]++,
});
const one = (runtime: Runtime, name: string): Datum<'f64'> =>
  runtime.data(Float64Array.of(1), { name });
const codeOf = async (call: () => unknown): Promise<string> => {
  try {
    await call();
    return 'none';
  } catch (error) {
    return (error as HeadraceError).code;
  }
};

/** Runs the program in a small machine and returns the report. */
async function report(window: number, program: (runtime: Runtime) => Run): Promise<Awaited<Run>> {
  return onMachine({ workers: 1, checked: window < 1000, plans: 'off', window }, (runtime) =>
    soon(runtime, program(runtime)),
  );
}

it.each(['read', 'set', 'restore'] as const)(
  'a spawned body calls %s of a datum that its parent writes',
  async (call) => {
    let code = '';
    await report(64, (runtime) => {
      const x = one(runtime, 'x');
      const child = task({
        name: 'child',
        flows: { t: readWrite('f64') },
        body: async () => {
          code = await codeOf(() => (call === 'set' ? x.set(Float64Array.of(2)) : x[call]()));
        },
      });
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: (_, { spawn, temporary }) => {
          const t = temporary('f64', 1);
          t.set(Float64Array.of(0));
          spawn(child, { t });
        },
      });
      return runtime.run((graph) => void graph.insert(parent, { x }));
    });
    expect(code).toBe('ERR_AWAITS_ITSELF');
  },
);

it('a body awaits a datum that a task writes which it has spawned', async () => {
  let code = '';
  await report(64, (runtime) => {
    const [x, y] = [one(runtime, 'x'), one(runtime, 'y')];
    const parent = task({
      name: 'parent',
      flows: { x: readWrite('f64') },
      body: async (_, { spawn, data }) => {
        spawn(addTo, { to: y, from: data.x });
        code = await codeOf(() => y.read());
      },
    });
    return runtime.run((graph) => void graph.insert(parent, { x }));
  });
  expect(code).toBe('ERR_AWAITS_ITSELF');
});

it('a body may await what its family does not hold up', async () => {
  let value = 0;
  await report(64, (runtime) => {
    const [x, y] = [one(runtime, 'x'), one(runtime, 'y')];
    const parent = task({
      name: 'parent',
      flows: { x: readWrite('f64') },
      body: async (_, { spawn, data }) => {
        spawn(bump, { x: data.x });
        [value] = await y.read();
        spawn(addTo, { to: data.x, from: y });
      },
    });
    return runtime.run((graph) => void graph.insert(parent, { x }));
  });
  expect(value).toBe(1);
});

it('two families that would wait for each other are refused', async () => {
  let code = '';
  await report(64, (runtime) => {
    const [x, y, u, v] = ['x', 'y', 'u', 'v'].map((name) => one(runtime, name));
    let next = (): void => {};
    const turn = new Promise<void>((resolve) => {
      next = resolve;
    });
    const first = task({
      name: 'first',
      flows: { x: readWrite('f64') },
      body: async (_, { spawn, data }) => {
        await null;
        spawn(addTo, { to: data.x, from: v });
        next();
      },
    });
    const second = task({
      name: 'second',
      flows: { x: readWrite('f64') },
      body: async (_, { spawn, data }) => {
        await turn;
        code = await codeOf(() => spawn(addTo, { to: data.x, from: u }));
      },
    });
    return runtime.run((graph) => {
      graph.insert(first, { x });
      graph.insert(addTo, { to: u, from: x });
      graph.insert(second, { x: y });
      graph.insert(addTo, { to: v, from: y });
    });
  });
  expect(code).toBe('ERR_SPAWN_ORDER');
});

it.each(['read', 'spawn'] as const)(
  'a body would wait for itself behind 5000 tasks, by %s',
  async (way) => {
    const codes: string[] = [];
    await report(16_384, (runtime) => {
      const data = Array.from({ length: 5001 }, (_, i) => one(runtime, `x${i}`));
      const last = data[5000];
      let open = (): void => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: async (_, { spawn, data: own }) => {
          await gate;
          const call = () =>
            way === 'read' ? last.read() : spawn(addTo, { to: own.x, from: last });
          codes.push(await codeOf(call));
        },
      });
      return runtime.run((graph) => {
        graph.insert(parent, { x: data[0] });
        for (let i = 0; i < 5000; i++) graph.insert(addTo, { to: data[i + 1], from: data[i] });
        open();
      });
    });
    expect(codes).toEqual([way === 'read' ? 'ERR_AWAITS_ITSELF' : 'ERR_SPAWN_ORDER']);
  },
);
