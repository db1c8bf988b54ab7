// Oracles of order as parameterised graphs: tasks run in the right order, and each exactly once.
import { type ParameterisedGraph, parameterised, range, readWrite, task } from '../../../index.js';
import { add, copy, fill, permutation } from '../tasks.js';
import { COUNT, differences, type Oracle } from './oracle.js';

/** Readers of a version see it, whatever the numbers of the tasks; the next version is that of the writer behind them. */
export const writeAfterRead: Oracle = async (runtime, options) => {
  const { ranks } = runtime;
  const readers = 5;
  const value = runtime.data('f64', COUNT, { name: 'value', rank: ranks - 1 });
  const seen = range(0, readers).map((i) => runtime.data('f64', COUNT, { rank: i % ranks }));
  const graph: ParameterisedGraph<{ readonly v: number }> = parameterised('readers', (g, { v }) => {
    const { old, reader, next } = g.declare({
      next: { runs: fill, indices: [] },
      reader: { runs: copy, indices: ['i'] },
      old: { runs: fill, indices: [] },
    });
    g.define(old, {
      ranges: {},
      on: () => value,
      flows: {
        to: {
          from: () => value,
          to: () => [next.to({}), range(0, readers).map((i) => reader.from({ i }))],
        },
      },
      params: () => ({ count: COUNT, value: v }),
    });
    g.define(reader, {
      ranges: { i: () => range(0, readers) },
      on: ({ i }) => seen[i],
      flows: {
        to: { from: ({ i }) => seen[i], to: ({ i }) => seen[i] },
        from: { from: () => old.to({}) },
      },
      params: () => ({ bytes: 8 * COUNT }),
    });
    g.define(next, {
      ranges: {},
      on: () => value,
      flows: { to: { from: () => old.to({}), to: () => value } },
      params: () => ({ count: COUNT, value: v + 1 }),
    });
  });
  const problems: string[] = [];
  for (let round = 0; round < 6; round++) {
    const v = 2 * round + 1;
    await runtime.run(graph, { v }, options);
    for (const [i, one] of [...seen, value].entries())
      problems.push(
        ...differences(
          `round ${round}, datum ${i}`,
          [...(await one.read())],
          new Array(COUNT).fill(i === readers ? v + 1 : v),
        ),
      );
  }
  for (const one of [value, ...seen]) one.close();
  return problems;
};

/** A value decides at run time which of two graphs comes next. */
export const choice: Oracle = async (runtime, options) => {
  const steps = 14;
  const { ranks } = runtime;
  const ran: string[] = [];
  const visit = task({
    name: 'visit',
    flows: { side: readWrite('f64'), state: readWrite('f64') },
    params: { isLeft: 'bool' },
    body: ({ side, state, isLeft }) => {
      ran.push(isLeft ? 'left' : 'right');
      side[0]++;
      state[0] = (5 * state[0] + (isLeft ? 3 : 1)) % 64;
    },
  });
  const sides = [0, 1].map((i) => runtime.data(Float64Array.of(0), { rank: i % ranks }));
  const state = runtime.data(Float64Array.of(1), { rank: ranks - 1 });
  const graph: ParameterisedGraph<{ readonly isLeft: boolean }> = parameterised(
    'choice',
    (g, { isLeft }) => {
      const { go } = g.declare({ go: { runs: visit, indices: [] } });
      const side = sides[isLeft ? 0 : 1];
      g.define(go, {
        ranges: {},
        on: () => side,
        flows: {
          side: { from: () => side, to: () => side },
          state: { from: () => state, to: () => state },
        },
        params: () => ({ isLeft }),
      });
    },
  );
  await runtime.run(async (g) => {
    for (let step = 0; step < steps; step++)
      graph.insertInto(g, { isLeft: (await g.value(state)) % 4 === 1 });
  }, options);
  const expected: string[] = [];
  for (let step = 0, value = 1; step < steps; step++) {
    expected.push(value % 4 === 1 ? 'left' : 'right');
    value = (5 * value + (value % 4 === 1 ? 3 : 1)) % 64;
  }
  const seen = (await Promise.all(sides.map((side) => side.read()))).map(([value]) => value);
  const times = ['left', 'right'].map((side) => expected.filter((one) => one === side).length);
  const mine = expected.filter((side) => (side === 'left' ? 0 : 1) % ranks === runtime.rank);
  for (const one of [...sides, state]) one.close();
  return [...differences('sides', seen, times), ...differences('tasks', ran, mine)];
};

/** On each rank n tasks release one, without data: it runs once, after all n. */
export const gather: Oracle = async (runtime, options) => {
  const n = 30;
  const { rank, ranks } = runtime;
  let done = 0;
  const seen: number[] = [];
  const single = task({ name: 'single', flows: {}, body: () => void done++ });
  const last = task({ name: 'last', flows: {}, body: () => void seen.push(done) });
  const graph = parameterised('gather', (g) => {
    const { one, all } = g.declare({
      all: { runs: last, indices: ['r'], controls: ['come'] },
      one: { runs: single, indices: ['r', 'i'], controls: ['go'] },
    });
    g.define(one, {
      ranges: { r: () => range(0, ranks), i: () => range(0, n) },
      on: ({ r }) => r,
      flows: {},
      controls: { go: { to: ({ r }) => all.come({ r }) } },
    });
    g.define(all, {
      ranges: { r: () => range(0, ranks) },
      on: ({ r }) => r,
      flows: {},
      controls: { come: { from: ({ r }) => range(0, n).map((i) => one.go({ r, i })) } },
    });
  });
  await runtime.run(graph, undefined, options);
  return differences(`rank ${rank}`, seen, [n]);
};

/** Tasks linked along a random permutation run in its order, wherever they run. */
export const permutationChain: Oracle = async (runtime, options) => {
  const n = 60;
  const { ranks } = runtime;
  const order = permutation(n, 7);
  const at = new Map(order.map((i, place) => [i, place]));
  const visit = task({
    name: 'visit',
    flows: { log: readWrite('f64') },
    params: { i: 'i32' },
    body: ({ log, i }) => {
      log[0]++;
      log[log[0]] = i;
    },
  });
  const log = runtime.data(new Float64Array(n + 1), { name: 'log', rank: ranks - 1 });
  const graph = parameterised('permutation', (g) => {
    const { step } = g.declare({ step: { runs: visit, indices: ['i'] } });
    const along = (i: number, by: number): number | undefined => order[(at.get(i) as number) + by];
    g.define(step, {
      ranges: { i: () => range(0, n) },
      on: ({ i }) => i % ranks,
      flows: {
        log: {
          from: ({ i }) => {
            const before = along(i, -1);
            return before === undefined ? log : step.log({ i: before });
          },
          to: ({ i }) => {
            const next = along(i, 1);
            return next === undefined ? log : step.log({ i: next });
          },
        },
      },
      params: ({ i }) => ({ i }),
    });
  });
  await runtime.run(graph, undefined, options);
  const [, ...seen] = await log.read();
  log.close();
  return differences('order', seen, order);
};

/** A token visits the host and every GPU of every rank in turn; each adds the ramp. */
export const pingPong: Oracle = async (runtime, options) => {
  const { ranks, gpus } = runtime;
  const places = ['host' as const, ...gpus.keys()];
  const visits = 5 * places.length * ranks;
  const ramp = Float64Array.from({ length: COUNT }, (_, i) => i);
  const ramps = range(0, ranks).map((rank) => runtime.data(ramp, { rank }));
  const token = runtime.data(new Float64Array(COUNT), { name: 'token' });
  const graph = parameterised('ping-pong', (g) => {
    const { visit } = g.declare({ visit: { runs: add, indices: ['v'] } });
    g.define(visit, {
      ranges: { v: () => range(0, visits) },
      on: ({ v }) => v % ranks,
      device: ({ v }) => places[v % places.length],
      flows: {
        to: {
          from: ({ v }) => (v === 0 ? token : visit.to({ v: v - 1 })),
          to: ({ v }) => (v + 1 === visits ? token : visit.to({ v: v + 1 })),
        },
        from: { from: ({ v }) => ramps[v % ranks] },
      },
      params: () => ({ count: COUNT }),
    });
  });
  await runtime.run(graph, undefined, options);
  const seen = [...(await token.read())];
  for (const one of [token, ...ramps]) one.close();
  return differences(
    'token',
    seen,
    [...ramp].map((i) => visits * i),
  );
};
