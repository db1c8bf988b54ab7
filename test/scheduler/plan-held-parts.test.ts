// The parts of a plan end with it: those that its program has made, and those by way of which it copies.
import '../support/removable-guards.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import type { Datum, Graph, Runtime } from '../../index.js';
import type { Plan } from '../../scheduler/plans/plan.js';
import type { PlanGraph } from '../../scheduler/plans/plan-graph.js';
import { MACHINES, nothingLeft, onMachine } from '../support/machines.js';
import { codeOf } from '../support/outcomes.js';
import { partKernels } from '../support/part-programs.js';
import { onRanks } from '../support/simulated-ranks.js';
import { add, fail, fill } from '../support/tasks.js';

interface World {
  readonly runtime: Runtime;
  readonly x: Datum<'f64'>;
  readonly y: Datum<'f64'>;
}

/** x is a matrix of 4 x 2, and y a vector. */
function worldOf(runtime: Runtime): World {
  return {
    runtime,
    x: runtime.data(new Float64Array(8).fill(1), { name: 'x', rows: 4 }),
    y: runtime.data(new Float64Array(8).fill(2), { name: 'y', rank: runtime.ranks - 1 }),
  };
}

/** Reads and writes parts that overlap, which needs a part of the runtime's own. */
function insertAll(graph: Pick<Graph, 'insert'> | PlanGraph, { x, y }: World): void {
  graph.insert(fill, { to: x.block({ rows: 3 }), count: 6, value: 5 } as never);
  graph.insert(add, { to: y, from: x.block({ row: 1, rows: 3 }), count: 6 } as never);
  graph.insert(add, { to: x.block({ column: 1, columns: 1 }), from: y, count: 4 } as never);
}

const planOf = (world: World): PromiseLike<Plan> =>
  world.runtime.plan((graph) => insertAll(graph, world), { name: 'step' });

/** Parts of x that are open. */
const open = ({ x }: World): number =>
  [...(x.view?.family.parts.values() ?? [])].filter(({ plans, isHeld }) => isHeld || plans > 0)
    .length;

const values = async (datum: Datum): Promise<string> => [...(await datum.read())].join(' ');
const AFTER = '5 5 5 1 12 12 8 8';

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-held-parts-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = path.join(folder, 'step.plan');

describe.each(MACHINES)('on $name', ({ options }) => {
  const onWorld = (program: (world: World) => Promise<void>): Promise<void> =>
    onMachine(options, async (runtime) => {
      const world = worldOf(runtime);
      await program(world);
      await nothingLeft(runtime, [world.x, world.y]);
    });

  it.each(['played', 'playing', 'not played'])(
    'the parts of a plan end when it is closed: %s',
    async (how) => {
      await onWorld(async (world) => {
        const { x } = world;
        const plan = await planOf(world);
        expect(open(world)).toBeGreaterThan(3);
        const play = how === 'not played' ? undefined : plan.run();
        if (how === 'played') await play;
        expect(await codeOf(x.restore())).toBe('ERR_PART');
        plan.close();
        expect(open(world)).toBe(0);
        await x.restore();
        await play;
        const used = how === 'not played' ? '1 1 1 1 1 1 1 1' : AFTER;
        expect(await values(x)).toBe(used);
        await world.runtime.run((graph) => void graph.insert(fill, { to: x, count: 1, value: 0 }));
        expect(x.view).toBeUndefined();
      });
    },
  );

  it('a part that two plans use ends with the last of them', async () => {
    await onWorld(async (world) => {
      const plans = [await planOf(world), await planOf(world)];
      plans[0].close();
      plans[0].close();
      await plans[1].run();
      expect(await values(world.x)).toBe(AFTER);
      plans[1].close();
      expect(open(world)).toBe(0);
    });
  });

  it('a loaded plan has its parts open, and one that cannot be loaded has none', async () => {
    await onWorld(async (world) => {
      const { runtime, x, y } = world;
      const plan = await planOf(world);
      await plan.save(file);
      plan.close();
      const load = (data: Datum[], classes: (typeof add)[]): Promise<Plan> =>
        runtime.loadPlan(file, { data, classes }) as Promise<Plan>;
      expect(await codeOf(load([x, y], [add]))).toBe('ERR_PLAN_MISMATCH');
      expect(open(world)).toBe(0);
      const loaded = await load([x, y], [add, fill as never]);
      await loaded.run();
      expect(await values(x)).toBe(AFTER);
      loaded.close();
      expect(open(world)).toBe(0);
    });
  });

  it('those of a plan that could not be made end at once', async () => {
    await onWorld(async (world) => {
      const plan = world.runtime.plan((graph) => {
        insertAll(graph, world);
        graph.insert(fail, {} as never);
      });
      expect(await codeOf(plan)).toBe('ERR_MISSING_ARGUMENT');
      expect(open(world)).toBe(0);
    });
  });

  it.each<[string, (world: World) => unknown]>([
    ['makes it', ({ x }) => x.block({ rows: 3 })],
    ['reads it', ({ x }) => x.view?.family.parts.get('0 0 3 2')?.datum.read()],
    [
      'uses it in a task',
      ({ runtime, x, y }) => {
        const from = x.view?.family.parts.get('0 0 3 2')?.datum as Datum<'f64'>;
        return runtime.run((graph) => void graph.insert(add, { to: y, from, count: 6 }));
      },
    ],
  ])('a part stays if the program %s', async (_, use) => {
    await onWorld(async (world) => {
      const plan = await planOf(world);
      const part = world.x.view?.family.parts.get('0 0 3 2')?.datum as Datum<'f64'>;
      await use(world);
      plan.close();
      expect(open(world)).toBe(1);
      expect(await values(part)).toBe('1 1 1 1 1 1');
      part.close();
      expect(open(world)).toBe(0);
    });
  });

  it('a part that the program has made before stays, and a plan that lost it is not played', async () => {
    await onWorld(async (world) => {
      const part = world.x.block({ rows: 3 });
      const [first, second] = [await planOf(world), await planOf(world)];
      first.close();
      expect(part.closed).toBe(false);
      part.close();
      expect(() => second.run()).toThrow("uses datum 'x[0..2, 0..1]', which is closed");
      second.close();
      expect(open(world)).toBe(0);
    });
  });
});

test('without partHolds: a plan that is closed takes a part of the program with it', async () => {
  setGuard('partHolds', false);
  try {
    await onMachine(MACHINES[0].options, async (runtime) => {
      const world = worldOf(runtime);
      const part = world.x.block({ rows: 3 });
      const plan = await planOf(world);
      plan.close();
      expect(await codeOf(part.read())).toBe('ERR_DATUM_CLOSED');
    });
  } finally {
    setGuard('partHolds', true);
  }
});

/** On one rank the program has a part of a plan that is closed; then tasks use another part. What the ranks have, and the bytes sent. */
async function heldOnOne(ranks: number, seed: number): Promise<string[]> {
  return await onRanks({ ranks, seed, kernels: partKernels }, async (runtime) => {
    const world = worldOf(runtime);
    const { x, y } = world;
    const plan = await planOf(world);
    const play = plan.run({ times: 2 });
    if (seed > 1) await play;
    if (runtime.rank === seed % ranks) x.block({ rows: 3 });
    plan.close();
    await play;
    const rank = ranks - 1;
    for (let round = 0; round < 2; round++) {
      await runtime.run((graph) => {
        graph.insert(add, { to: y, from: x, count: 8 }, { rank });
        graph.insert(fill, { to: x.part(0, 2), count: 2, value: round }, { rank: 0 });
        graph.insert(add, { to: y, from: x, count: 8 }, { rank });
      });
      x.part(0, 2).close();
    }
    return `${await values(x)}, ${await values(y)}`;
  });
}

describe.each([1, 2, 3, 4])('on %i ranks', (ranks) => {
  it.each([1, 2, 3])('ranks may have a part of a plan that is closed: %i', async (seed) => {
    const all = await heldOnOne(ranks, seed);
    expect(new Set(all).size).toBe(1);
    expect(all[0]).toMatch(/^1 1 5 /);
  });

  it('a datum is without parts when the plan is closed, also behind a failed run', async () => {
    await onRanks({ ranks, seed: 7, kernels: partKernels }, async (runtime) => {
      const world = worldOf(runtime);
      const { x, y } = world;
      const failing = async (): Promise<void> => {
        const run = runtime.run((graph) => {
          insertAll(graph, world);
          graph.insert(fail, { of: y, code: 3 });
        });
        expect(await codeOf(run)).toMatch(/ERR_TASK_FAILED|ERR_PEER_FAILED/);
        for (const datum of [x, y]) await datum.set(new Float64Array(8).fill(1));
      };
      for (const fails of [false, true]) {
        const plan = await planOf(world);
        await plan.run();
        if (fails) await failing();
        plan.close();
        if (!fails) expect(open(world)).toBe(0);
        await runtime.run((graph) => insertAll(graph, world));
        for (const { datum } of [...(x.view?.family.parts.values() ?? [])]) datum.close();
        await x.read();
        await x.restore();
      }
    });
  });
});

test('without planPartUses: ranks infer different copies', async () => {
  setGuard('planPartUses', false);
  try {
    await expect(heldOnOne(2, 1)).rejects.toThrow();
  } finally {
    setGuard('planPartUses', true);
  }
});
