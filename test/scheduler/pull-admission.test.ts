// Pulled inputs that stand in line for the memory of a GPU while a run fails.
import { expect, test } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { World } from '../../devices/simulated/machine/world.js';
import {
  type Datum,
  type Graph,
  type Runtime,
  read,
  readWrite,
  task,
} from '../../scheduler/index.js';
import { joined, rankMachine } from '../support/simulated-ranks.js';

const MEMORY = 2 ** 20;

const touching = task({
  name: 'touching',
  flows: { to: readWrite('f64') },
  params: { us: 'f64' },
  kernel: 'touching',
});
const failing = task({
  name: 'failing',
  flows: { to: readWrite('f64') },
  params: { us: 'f64' },
  kernel: 'failing',
});
const pulling = task({
  name: 'pulling',
  flows: { from: read('f64', { fetch: 'pull' }), to: readWrite('f64') },
  params: { us: 'f64' },
  kernel: 'touching',
});

/**
 * The GPU of rank 1 keeps a datum that a task uses before and behind the failure. The first pulled input has the share of the memory
 * meanwhile, and the second one would fit only in place of the datum. Returns the bytes that the last run copies to GPUs.
 */
async function copiedBehind(runtime: Runtime, runs: number): Promise<number> {
  const data = (name: string, share: number, rank: number): Datum<'f64'> =>
    runtime.data(new Float64Array(1 + Math.floor((share * MEMORY) / 8)), { name, rank });
  const [first, second] = ['first', 'second'].map((name) => data(name, 0.4, 0));
  const [a, b, c] = ['a', 'b', 'c'].map((name) => data(name, 0, 1));
  const kept = data('kept', 0.4, 1);
  const use = (graph: Graph): void => void graph.insert(touching, { to: kept, us: 1 });
  await runtime.run(use);
  // The host has the value, too, so the copy on the GPU is dropped where another datum needs its memory.
  await kept.read();
  const parts = [
    (graph: Graph): void => {
      graph.insert(failing, { to: c, us: 5000 }, { device: 'host' });
      graph.insert(pulling, { from: first, to: a, us: 10_000 });
    },
    (graph: Graph): void => void graph.insert(pulling, { from: second, to: b, us: 1 }),
  ];
  const programs =
    runs === 2 ? parts : [(graph: Graph): void => void parts.map((part) => part(graph))];
  const ends = await Promise.allSettled(programs.map((program) => runtime.run(program).done));
  expect(ends.map(({ status }) => status)).toEqual(Array(runs).fill('rejected'));
  const report = await runtime.run(use);
  await runtime.close();
  return report.bytes.h2d;
}

test.each([1, 2])('take none of it when the run fails that has it (%i runs)', async (runs) => {
  const world = new World();
  const backends = [0, 1].map(
    () =>
      new SimulatedBackend({
        machine: { ...rankMachine, gpus: 1, gpuMemory: MEMORY },
        world,
        kernels: { touching: () => 0, failing: () => 1 },
      }),
  );
  const runtimes = joined(world, backends, { checked: true, inlineBytes: 64 });
  const copied = await Promise.all(runtimes.map((runtime) => copiedBehind(runtime, runs)));
  expect(copied).toEqual([0, 0]);
});
