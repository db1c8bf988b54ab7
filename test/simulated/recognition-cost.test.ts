// Recognition keeps out of the way of programs that it does not help: few runs are looked at when all are new, plans that are never
// played are given up, and insertions are not held back while the program computes. And the guards of each.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import { planRuntime } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import { Random } from '../../devices/simulated/machine/random.js';
import type { Graph } from '../../index.js';

const DATA = 8;
const PASSED_OVER = 'it was not looked at: the runs before were all new';
const COMPUTES = 'its program computes between its insertions';

/** A small machine with data, and what tests look at. */
function small() {
  const seed = Array.from({ length: 500 }, (_, i) => i).find(
    (s) => new PlanProgram(s).window >= 1024,
  );
  const runtime = planRuntime(new PlanProgram(seed ?? 0), { plans: 'auto' });
  const [x, ...ys] = Array.from({ length: DATA + 1 }, () =>
    runtime.data(new Float64Array(8).fill(1)),
  );
  const insert = (graph: Graph, i: number, priority = 0): void =>
    void graph.insert(axpy, { y: ys[i % DATA], x, n: 8, a: 1 }, priority === 0 ? {} : { priority });
  const sequences = (): readonly { planned?: object }[] =>
    Reflect.get(Reflect.get(runtime, 'recognition'), 'known').all;
  const plans = (): number => sequences().filter(({ planned }) => planned !== undefined).length;
  return { runtime, ys, insert, plans };
}

/** How many of 100 new runs are looked at. */
async function looked(): Promise<number> {
  const { runtime, insert } = small();
  let seen = 0;
  for (let k = 1; k <= 100; k++) {
    const { recognition } = await runtime.run((graph) => {
      for (let i = 0; i < 100; i++) insert(graph, i * k, k);
    });
    if (recognition !== PASSED_OVER) seen++;
  }
  await runtime.close();
  return seen;
}

/** Plans that are left when a run was played, and many others come. */
async function plansLeft(kind: 'run' | 'stretch'): Promise<number> {
  const { runtime, insert, plans } = small();
  for (let k = 0; k < 5; k++)
    await runtime.run((graph) => {
      for (let i = 0; i < (kind === 'run' ? 60 : 4000); i++) insert(graph, i);
    });
  expect(plans()).toBe(1);
  // As if many insertions had been waited for.
  Reflect.get(Reflect.get(runtime, 'recognition'), 'account').idle = 7000;
  if (kind === 'run')
    for (let k = 1; k <= 500; k++)
      await runtime.run((graph) => {
        for (let i = 0; i < 50; i++) insert(graph, i * k, k);
      });
  else
    await runtime.run((graph) => {
      const r = new Random(1);
      for (let i = 0; i < 30_000; i++) insert(graph, r.below(DATA), 1 + r.below(7));
    });
  const left = plans();
  await runtime.close();
  return left;
}

/** What comes of a run that was recognised before, if its program computes; and whether its tasks may begin meanwhile. */
async function whileComputing(kind: 'run' | 'stretch') {
  const { runtime, ys, insert } = small();
  const backend = Reflect.get(runtime, 'backend') as { now(): number; workTime(): number };
  const now = backend.now.bind(backend);
  let computed = 0;
  backend.now = () => now() + computed;
  backend.workTime = backend.now;
  const tasks = kind === 'run' ? 96 : 8000;
  for (let k = 0; k < 5; k++)
    await runtime.run((graph) => {
      for (let i = 0; i < tasks; i++) insert(graph, i);
    });
  const { tasks: table } = Reflect.get(runtime, 'engine') as { tasks: { next: number } };
  const before = table.next;
  const { holds } = Reflect.get(runtime, 'recognition');
  let begins = false;
  const { recognition } = await runtime.run((graph) => {
    for (let i = 0; i < 192; i++) {
      if (i === tasks) return;
      insert(graph, i);
      if (i % 48 === 40) computed += 3e6;
      begins ||= table.next !== before || holds[0]?.held.play?.stands === true;
    }
  });
  const values = await Promise.all(ys.map(async (y) => (await y.read())[0]));
  await runtime.close();
  const each = (5 * tasks + Math.min(192, tasks)) / DATA;
  expect(values).toEqual(ys.map(() => 1 + each));
  return { recognition, begins };
}

describe('recognition', () => {
  afterEach(() => {
    for (const name of guardNames) setGuard(name, true);
  });

  test('looks at few runs when all are new', async () => {
    expect(await looked()).toBeLessThan(25);
  });

  test('without looksRarely: at all of them', async () => {
    setGuard('looksRarely', false);
    expect(await looked()).toBe(100);
  });

  test.each(['run', 'stretch'] as const)(
    'gives up the plan of a %s that does not come',
    async (kind) => {
      expect(await plansLeft(kind)).toBe(0);
    },
  );

  test('without idlePlans: keeps it for ever', async () => {
    setGuard('idlePlans', false);
    expect(await plansLeft('run')).toBe(1);
    expect(await plansLeft('stretch')).toBe(1);
  });

  test('does not hold a run back while its program computes', async () => {
    expect(await whileComputing('run')).toEqual({ recognition: COMPUTES, begins: true });
  });

  test('plays a stretch at once if its program computes', async () => {
    expect(await whileComputing('stretch')).toEqual({ recognition: 'played', begins: true });
  });

  test('without heldSoon: both wait for more', async () => {
    setGuard('heldSoon', false);
    for (const kind of ['run', 'stretch'] as const)
      expect(await whileComputing(kind)).toEqual({ recognition: 'played', begins: false });
  });
});
