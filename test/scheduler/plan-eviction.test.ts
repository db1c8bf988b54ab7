// Eviction in plans (scheduler/plans/planner.ts): the planner knows all uses, and never moves more bytes than with the look ahead of the
// engine.
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { DatumId, SpaceId } from '../../devices/handles.js';
import { planKernels } from '../../devices/simulated/cases/plan-cases.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { Random } from '../../devices/simulated/machine/random.js';
import { type Plan, type PlanGraph, Runtime } from '../../scheduler/index.js';
import type { Insertions } from '../../scheduler/plans/insertions.js';
import { PlanningEngine } from '../../scheduler/plans/planning-engine.js';
import { WholeFuture } from '../../scheduler/plans/whole-future.js';
import { rankMachine } from '../support/simulated-ranks.js';
import { axpy } from '../support/tasks.js';

afterEach(() => void vi.restoreAllMocks());

const BLOCK = 512;
const N = BLOCK / 8;

/** Datum that is written, and datum that is read. */
type Step = readonly [y: number, x: number];

/** Plans the steps on a GPU that holds `room` of the data. */
async function planned(steps: readonly Step[], room: number): Promise<Plan['report']> {
  const machine = {
    ...rankMachine,
    workers: 1,
    gpus: 1,
    computeStreams: 1,
    gpuMemory: room * BLOCK,
  };
  const runtime = Runtime.over(new SimulatedBackend({ machine, kernels: planKernels }), {
    workers: 1,
    gpus: 1,
    gpuMemory: room * BLOCK,
    checked: true,
  });
  const count = 1 + Math.max(...steps.flat());
  const data = Array.from({ length: count }, (_, d) => runtime.data(new Float64Array(N).fill(d)));
  const { report } = await runtime.plan((graph: PlanGraph) => {
    for (const [y, x] of steps)
      graph.insert(axpy, { y: data[y], x: data[x], n: N, a: 1 }, { device: 0 });
  });
  await runtime.close();
  return report;
}

/** The same with the look ahead of the engine. */
async function lookingAhead(steps: readonly Step[], room: number): Promise<Plan['report']> {
  vi.spyOn(PlanningEngine.prototype, 'foresee').mockImplementation(() => {});
  const report = await planned(steps, room);
  vi.restoreAllMocks();
  return report;
}

const moved = ({ bytes }: Plan['report']): number => (bytes.h2d + bytes.d2h + bytes.d2d) / BLOCK;

/** The least number of blocks that a memory with `room` must take in for these reads (Belady). */
function least(reads: readonly number[], room: number): number {
  const here = new Set<number>();
  let taken = 0;
  for (const [i, x] of reads.entries()) {
    if (here.has(x)) continue;
    taken++;
    if (here.size === room) {
      const next = (d: number): number => {
        const at = reads.indexOf(d, i);
        return at < 0 ? Number.POSITIVE_INFINITY : at;
      };
      here.delete([...here].reduce((a, b) => (next(b) > next(a) ? b : a)));
    }
    here.add(x);
  }
  return taken;
}

describe('the future of a plan', () => {
  test('has the next use of every copy among the tasks that were not issued', () => {
    const [DATA, SPACES] = [4, 3];
    const anyTask = fc.record({
      device: fc.nat(SPACES - 1),
      data: fc.uniqueArray(fc.nat(DATA - 1), { minLength: 1, maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(anyTask, { maxLength: 30 }), fc.array(fc.nat(4)), (tasks, steps) => {
        const insertions = {
          count: tasks.length,
          classOf: (n: number) => ({ modes: tasks[n].data }),
          datum: (n: number, i: number) => tasks[n].data[i],
        } as unknown as Insertions;
        let issued = 0;
        const devices = tasks.map(({ device }) => device);
        const of = { data: DATA, spaces: SPACES };
        const future = new WholeFuture(insertions, devices, of, (n) => n < issued);
        for (const more of steps) {
          issued = Math.min(tasks.length, issued + more);
          future.look();
          for (let d = 0; d < DATA; d++)
            for (let s = 1; s < SPACES; s++) {
              const use = tasks.findIndex(
                ({ device, data }, n) => n >= issued && device === s && data.includes(d),
              );
              expect(future.nextUse(d as DatumId, s as SpaceId)).toBe(
                use < 0 ? Number.POSITIVE_INFINITY : use - issued,
              );
            }
        }
      }),
    );
  });
});

describe('a plan that evicts', () => {
  test.each(Array.from({ length: 12 }, (_, i) => i + 1))(
    'moves no more than with the look ahead, and at least what every rule must move; seed %i',
    async (seed) => {
      const random = new Random(seed);
      const data = 12 + random.below(12);
      const room = 5 + random.below(6);
      // Datum 0 is written by all tasks, so it stays; the others are read.
      const reads = Array.from({ length: 150 }, () => 1 + random.below(data));
      const steps = reads.map((x) => [0, x] as const);
      const found = await planned(steps, room);
      expect(moved(found)).toBeLessThanOrEqual(moved(await lookingAhead(steps, room)));
      expect(found.bytes.h2d / BLOCK).toBeGreaterThanOrEqual(1 + least(reads, room - 1));
    },
  );

  test.each(Array.from({ length: 12 }, (_, i) => i + 1))(
    'moves no more where all data are written, too; seed %i',
    async (seed) => {
      const random = new Random(100 + seed);
      const data = 12 + random.below(12);
      const room = 6 + random.below(6);
      const steps = Array.from({ length: 120 }, () => {
        const y = random.below(data);
        return [y, (y + 1 + random.below(data - 1)) % data] as const;
      });
      const found = await planned(steps, room);
      expect(moved(found)).toBeLessThanOrEqual(moved(await lookingAhead(steps, room)));
    },
  );

  test('keeps a part of data that are read in turn, although they lie beyond the look ahead', async () => {
    // 1500 data in turn, three times, and room for 1201.
    const [data, room] = [1500, 1201];
    const reads = Array.from({ length: 3 * data }, (_, i) => 1 + (i % data));
    const steps = reads.map((x) => [0, x] as const);
    const found = (await planned(steps, room)).bytes.h2d / BLOCK;
    const before = (await lookingAhead(steps, room)).bytes.h2d / BLOCK;
    expect(found).toBeLessThan(0.8 * before);
    expect(found).toBeLessThan(1.2 * least(reads, room - 1));
  }, 60_000);
});
