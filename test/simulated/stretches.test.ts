// Runs that repeat a stretch, on simulated machines whose memory has bytes: random programs give what they give without recognition,
// whatever the machine's delays, and the order of all accesses is right. And the guards: without them a program hangs, or holds
// back more than the window.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import { planMachine, planRuntime } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, copy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import { Random } from '../../devices/simulated/machine/random.js';
import { Edges } from '../../devices/simulated/memory/edges.js';
import { type Datum, type Graph, readWrite, type TaskHandle, task } from '../../index.js';

const N = 8;

interface Step {
  readonly kind: 'axpy' | 'copy';
  readonly y: number;
  readonly x: number;
  /** The number of the iteration is part of its parameter. */
  readonly counts: boolean;
  readonly onHost: boolean;
  readonly priority: number;
  /** Follows the task of the same iteration with half its number. */
  readonly follows: boolean;
}

/** What a program does besides, before an iteration. */
const ASIDE = ['task', 'parameter', 'read', 'value', 'space', 'set', 'run', 'close'] as const;

/** A run whose iterations are equal, but for a few. */
class Repeating {
  readonly data: number;
  private readonly r: Random;
  private readonly steps: readonly Step[];
  private readonly iterations: number;
  private readonly aside: ReadonlyMap<number, (typeof ASIDE)[number]>;

  constructor(seed: number) {
    const r = new Random(seed);
    this.r = r;
    const data = r.between(3, 8);
    this.data = data;
    const steps = Array.from({ length: r.between(3, 90) }, (): Step => {
      const y = r.below(data);
      return {
        kind: r.chance(0.8) ? 'axpy' : 'copy',
        y,
        x: (y + r.between(1, data - 1)) % data,
        counts: r.chance(0.1),
        onHost: r.chance(0.05),
        priority: r.chance(0.05) ? 1 : 0,
        follows: r.chance(0.05),
      };
    });
    this.steps = steps;
    this.iterations = Math.ceil(r.between(1500, 3500) / steps.length);
    const many = r.pick([0, 2, 5, 20]);
    this.aside = new Map(
      Array.from({ length: many }, () => [r.below(this.iterations), r.pick(ASIDE)] as const),
    );
  }

  /** The values that it reads. */
  async carryOut(
    runtime: ReturnType<typeof planRuntime>,
    data: readonly Datum<'f64'>[],
    tell: (outcome: string) => void,
  ): Promise<string[]> {
    const { r } = this;
    const seen: Promise<string>[] = [];
    const look = async (d: number): Promise<string> => (await data[d].read()).join();
    const runs: Promise<void>[] = [];
    for (let k = 0; k < 2; k++) {
      const isAsync = [...this.aside.values()].some((a) => a === 'value' || a === 'space');
      const each = (graph: Graph, t: number): unknown => {
        const waits = this.beside(this.aside.get(t), graph, { runtime, data, seen, look, t });
        if (waits === undefined) this.iterate(graph, data, t);
        return waits;
      };
      const run = runtime.run(
        isAsync
          ? async (graph) => {
              for (let t = 0; t < this.iterations; t++) {
                const waits = each(graph, t);
                if (waits === undefined) continue;
                await waits;
                this.iterate(graph, data, t);
              }
            }
          : (graph) => {
              for (let t = 0; t < this.iterations; t++) each(graph, t);
            },
      );
      runs.push(run.done.then(({ recognition }) => tell(recognition ?? '')));
      if (r.chance(0.7)) await run;
      seen.push(look(k));
    }
    await Promise.all(runs);
    for (let d = 0; d < data.length; d++) seen.push(look(d));
    return Promise.all(seen);
  }

  private iterate(graph: Graph, data: readonly Datum<'f64'>[], t: number): void {
    const handles: TaskHandle[] = [];
    for (const [n, { kind, y, x, counts, onHost, priority, follows }] of this.steps.entries()) {
      const options = {
        ...(onHost ? { device: 'host' as const } : {}),
        ...(priority !== 0 ? { priority } : {}),
        ...(follows && n > 1 ? { after: [handles[n >> 1]] } : {}),
      };
      const a = counts ? t * 2 ** -16 : 2 ** -12;
      handles.push(
        kind === 'axpy'
          ? graph.insert(axpy, { y: data[y], x: data[x], n: N, a }, options)
          : graph.insert(copy, { y: data[y], x: data[x], bytes: 8 * N }, options),
      );
    }
  }

  private beside(
    what: (typeof ASIDE)[number] | undefined,
    graph: Graph,
    at: {
      readonly runtime: ReturnType<typeof planRuntime>;
      readonly data: readonly Datum<'f64'>[];
      readonly seen: Promise<string>[];
      readonly look: (d: number) => Promise<string>;
      readonly t: number;
    },
  ): Promise<unknown> | undefined {
    const { runtime, data, seen, look, t } = at;
    const [y, x] = data;
    const one = (to: Graph, n: number, a: number): void => void to.insert(axpy, { y, x, n, a });
    if (what === 'task') one(graph, N, 0.25);
    else if (what === 'parameter') one(graph, N - 1, 2 ** -12);
    else if (what === 'read') seen.push(look(t % data.length));
    else if (what === 'set') void y.set(new Float64Array(N).fill(t));
    else if (what === 'run') void runtime.run((other) => one(other, N, 0.5));
    else if (what === 'close') runtime.data(new Float64Array(N)).close();
    else if (what === 'space') return graph.space();
    else if (what === 'value') {
      const value = graph.value(x);
      seen.push(value.then(String));
      return value;
    }
    return undefined;
  }
}

/** What a random program reads, with the tasks of it that were played. */
async function found(seed: number, plans: 'auto' | 'off', delays: boolean) {
  const machine = new PlanProgram(seed);
  const edges = new Edges(planMachine(machine));
  const runtime = planRuntime(machine, { plans, edges, ...(delays ? { seed } : {}) });
  const program = new Repeating(seed);
  const data = Array.from({ length: program.data }, (_, d) =>
    runtime.data(new Float64Array(N).fill(d)),
  );
  let played = 0;
  const values = await program.carryOut(runtime, data, (outcome) => {
    if (outcome.startsWith('played')) played++;
  });
  await runtime.close();
  expect(edges.problems, `seed ${seed}`).toEqual([]);
  return { values, played };
}

test.each([false, true])(
  'random programs give what insertion gives, with delays: %s',
  async (delays) => {
    let played = 0;
    const first = delays ? 100 : 1;
    for (let seed = first; seed < first + 14; seed++) {
      const auto = await found(seed, 'auto', delays);
      expect(auto.values, `seed ${seed}`).toEqual((await found(seed, 'off', false)).values);
      played += auto.played;
    }
    expect(played).toBeGreaterThan(9);
  },
  120_000,
);

/** Two plays of one plan: the second, which waits for the first, is taken back. Whether the first keeps its memory. */
async function takenBack(): Promise<boolean> {
  const runtime = planRuntime(new PlanProgram(1), { plans: 'auto' });
  const [x, ...ys] = Array.from({ length: 9 }, () => runtime.data(new Float64Array(N).fill(1)));
  const program = (graph: Graph): void => {
    for (let i = 0; i < 80; i++) graph.insert(axpy, { y: ys[i % 8], x, n: N, a: 1 });
  };
  for (let k = 0; k < 5; k++) await runtime.run(program);
  const { sections } = Reflect.get(runtime, 'engine');
  const runs = [runtime.run(program), runtime.run(program)];
  const entered: { section: object }[] = Reflect.get(sections, 'entered');
  const plays = entered.map(({ section }) => section);
  expect(plays.map((play) => Reflect.get(play, 'isPlaying'))).toEqual([true, false]);
  const placement = Reflect.get(plays[0], 'placement');
  const before = placement.base.slice();
  Reflect.get(plays[1], 'withdraw').call(plays[1]);
  const keeps = before.join() === placement.base.join();
  if (keeps) {
    await Promise.all(runs);
    await runtime.close();
  } else {
    // What is left of the program must not go on in a state that is wrong.
    Reflect.get(runtime, 'backend').die();
    for (const run of runs) run.done.catch(() => {});
  }
  return keeps;
}

const WINDOW = 64;

/** A run of many equal steps on a machine with a small window; the most tasks that it had inserted and that were not over. */
async function mostUnderWay(): Promise<number> {
  const seed = Array.from({ length: 500 }, (_, i) => i).find(
    (s) => new PlanProgram(s).window === WINDOW,
  );
  const runtime = planRuntime(new PlanProgram(seed ?? 0), { plans: 'auto' });
  const { runs } = Reflect.get(runtime, 'engine') as {
    runs: ({ live: number; standing: number } | undefined)[];
  };
  const [x, ...ys] = Array.from({ length: 9 }, () => runtime.data(new Float64Array(N)));
  let most = 0;
  await runtime.run((graph) => {
    for (let i = 0; i < 6000; i++) {
      graph.insert(axpy, { y: ys[i % 8], x, n: N, a: 1 });
      most = Math.max(most, runs[1]?.live ?? 0, runs[1]?.standing ?? 0);
    }
  });
  expect((await ys[0].read())[0]).toBe(0);
  await runtime.close();
  return most;
}

const late = task({ name: 'late', flows: { y: readWrite('f64') }, body: () => {} });

/** A body inserts a task while its program repeats a stretch that it has begun before. */
async function besideBody(): Promise<{ values: number[]; handles: TaskHandle[] }> {
  const runtime = planRuntime(new PlanProgram(1), { plans: 'auto' });
  const [x, z, ...ys] = Array.from({ length: 10 }, (_, v) =>
    runtime.data(new Float64Array(N).fill(v + 1)),
  );
  const handles: TaskHandle[] = [];
  const step = (graph: Graph): TaskHandle[] =>
    ys.map((y) => graph.insert(axpy, { y, x, n: N, a: 1 }));
  const spawns = task({
    name: 'spawns',
    flows: { z: readWrite('f64') },
    body: () => {
      if (current !== undefined) handles.push(...step(current));
    },
  });
  let current: Graph | undefined;
  await runtime.run((graph) => {
    for (let t = 0; t < 200; t++) step(graph);
  });
  await runtime.run((graph) => {
    current = graph;
    for (let t = 0; t < 20; t++) graph.insert(axpy, { y: z, x, n: N, a: 1 });
    graph.insert(spawns, { z });
    for (let t = 0; t < 100; t++) handles.push(...step(graph));
  });
  const values = await Promise.all(ys.map(async (y) => (await y.read())[0]));
  await runtime.close();
  return { values, handles };
}

describe('guards', () => {
  afterEach(() => {
    for (const name of guardNames) setGuard(name, true);
  });

  test('a play that is taken back leaves the memory of another one alone', async () => {
    expect(await takenBack()).toBe(true);
  });

  test('without withdrawsOwn: it gives that memory back', async () => {
    setGuard('withdrawsOwn', false);
    expect(await takenBack()).toBe(false);
  });

  test('no more tasks are held back than the window has', async () => {
    expect(await mostUnderWay()).toBeLessThan(4 * WINDOW);
  });

  test('without stretchLimit: all tasks are held back', async () => {
    setGuard('stretchLimit', false);
    expect(await mostUnderWay()).toBeGreaterThan(1000);
  });

  test('a body may insert tasks that are like those of a stretch', async () => {
    const { values, handles } = await besideBody();
    expect(values).toEqual([3, 4, 5, 6, 7, 8, 9, 10].map((v) => v + 200 + 101));
    expect(new Set(handles).size).toBe(handles.length);
  });

  test('without stretchBodies: a body inserts while the tasks of its program are held back', async () => {
    setGuard('stretchBodies', false);
    const outcome = await besideBody().catch((error: unknown) => error);
    const isRight =
      typeof outcome === 'object' &&
      outcome !== null &&
      'handles' in outcome &&
      new Set(outcome.handles as TaskHandle[]).size === (outcome.handles as TaskHandle[]).length;
    expect(isRight).toBe(false);
  });
});

test('a run with JavaScript bodies in its stretches is inserted', async () => {
  const runtime = planRuntime(new PlanProgram(1), { plans: 'auto' });
  const [x, y, z] = [1, 2, 3].map((v) => runtime.data(new Float64Array(N).fill(v)));
  const { recognition } = await runtime.run((graph) => {
    for (let t = 0; t < 400; t++) {
      for (let i = 0; i < 4; i++) graph.insert(axpy, { y, x, n: N, a: 1 });
      graph.insert(late, { y: z });
    }
  });
  expect(recognition).toBe('its tasks have come 1 of 4 times');
  expect((await y.read())[0]).toBe(2 + 1600);
  await runtime.close();
});
