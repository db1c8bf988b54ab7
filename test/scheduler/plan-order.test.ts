// The two rules of plans on several ranks (scheduler/plans/messages.ts). The lists have the order of the program, whatever the priorities;
// otherwise ranks could wait for each other in a circle. And no rank is far ahead of one to which it sends.
import '../support/removable-guards.js';
import { afterEach, expect, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { World } from '../../devices/simulated/machine/world.js';
import { read, readWrite, task } from '../../scheduler/index.js';
import type { Playables } from '../../scheduler/plans/playable.js';
import { joined, rankMachine } from '../support/simulated-ranks.js';

const machine = { ...rankMachine, workers: 2, lanes: 8 };
const axpy = task({
  name: 'axpy',
  flows: { y: readWrite('f64'), x: read('f64') },
  kernel: 'axpy',
});

/** Places in the lists at which an insertion comes before one that was inserted earlier; on each of two ranks. */
async function disorder(): Promise<number[]> {
  const world = new World();
  const backends = [0, 1].map(() => new SimulatedBackend({ machine, world }));
  return Promise.all(
    joined(world, backends, { workers: 2, lanes: 8 }).map(async (runtime) => {
      const data = Array.from({ length: 12 }, (_, d) =>
        runtime.data(new Float64Array(4), { name: `d${d}`, rank: d & 1 }),
      );
      const plan = await runtime.plan((graph) => {
        for (let n = 0; n < 120; n++) {
          const y = data[(n * 7) % 12];
          const x = data[(n * 5 + 1) % 12];
          if (x !== y) graph.insert(axpy, { y, x }, { priority: n });
        }
      });
      const { queues } = (plan as unknown as { forms: Playables }).forms.plain.program;
      let found = 0;
      for (const { insertion } of queues) {
        const own = insertion.filter((n) => n >= 0);
        found += own.filter((n, i) => i > 0 && n < own[i - 1]).length;
      }
      await runtime.close();
      return found;
    }),
  );
}

const { slow, sends } = Object.fromEntries(
  ['slow', 'sends'].map((name) => [
    name,
    task({ name, flows: { y: readWrite('f64'), x: read('f64') }, kernel: name }),
  ]),
);

/**
 * Iterations by which rank 0 is ahead of a slow task of rank 1 that reads what it sends, at most. Messages in the other direction
 * depend on neither.
 */
async function ahead(): Promise<number> {
  const world = new World();
  let sent = 0;
  let received = 0;
  let most = 0;
  const backends = [0, 1].map(
    () =>
      new SimulatedBackend({
        machine: { ...machine, gpus: 1, kernels: { '*': 1e-7, slow: 1e-3 } },
        world,
        kernels: {
          empty: () => 0,
          axpy: () => 0,
          sends: () => {
            most = Math.max(most, ++sent - received);
            return 0;
          },
          slow: () => {
            received++;
            return 0;
          },
        },
      }),
  );
  await Promise.all(
    joined(world, backends, { workers: 2, gpus: 1, lanes: 8 }).map(async (runtime) => {
      const [x, y, z, v, w] = [0, 0, 1, 1, 1].map((owner) =>
        runtime.data(new Float64Array(4), { rank: owner }),
      );
      const u = runtime.data(new Float64Array(4), { rank: 0 });
      const plan = await runtime.plan((graph) => {
        graph.insert(sends, { y, x }, { device: 'host' });
        graph.insert(slow, { y: z, x: y }, { device: 'host' });
        // On queues of their own.
        graph.insert(axpy, { y: w, x: v }, { device: 0 });
        graph.insert(axpy, { y: u, x: w }, { device: 0 });
      });
      await plan.run({ times: 60 });
      await runtime.close();
    }),
  );
  return most;
}

afterEach(() => {
  setGuard('planRankOrder', true);
  setGuard('planRunAhead', true);
});

test('every queue has its commands in program order', async () => {
  expect(await disorder()).toEqual([0, 0]);
});

test('without planRankOrder: a task with a larger priority comes before earlier ones', async () => {
  setGuard('planRankOrder', false);
  expect(Math.max(...(await disorder()))).toBeGreaterThan(0);
});

test('messages of at most two iterations wait at a slow receiver', async () => {
  // Besides these two, one that the slow task is reading, and one that was computed and not sent.
  expect(await ahead()).toBeLessThanOrEqual(4);
});

test('without planRunAhead: a rank fills the memory of the receiver', async () => {
  setGuard('planRunAhead', false);
  expect(await ahead()).toBeGreaterThan(30);
});
