// A rank may be thousands of versions of a datum ahead of the rank that reads them. Each reader gets its own version.
import { expect, it } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import type { MachineDescription } from '../../devices/simulated/machine/machine.js';
import { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import { Runtime, read, readWrite, task } from '../../scheduler/index.js';

const link = { bandwidth: 1e9, latency: 1e-6 };
const machine: MachineDescription = {
  name: 'two ranks',
  gpus: 0,
  gpuMemory: 2 ** 20,
  hostMemory: 2 ** 20,
  workers: 1,
  h2d: link,
  d2h: link,
  d2d: link,
  network: link,
  lanes: 8,
  engine: { command: 2e-7, wake: 2e-6, launch: 1e-6 },
  kernels: { '*': { product: [0], factor: 1e-6, rate: 1 } },
};
/** More than 4096, the number of versions that keys told apart once; two rows each fit the window. */
const VERSIONS = 5000;

it('a reader gets its version although the writer is 5000 versions ahead', async () => {
  const world = new World();
  const hostBytes = (): Uint8Array => new Uint8Array(machine.hostMemory);
  const backends = [0, 1].map(
    () => new SimulatedBackend({ machine, world, hostBytes: hostBytes() }),
  );
  const { adversary } = backends[0];
  const { ports } = new SimulatedNetwork(world, backends, { link, adversary });
  let written = 0;
  const found: number[] = [];
  const count = task({
    name: 'count',
    flows: { x: readWrite('f64') },
    body: ({ x }) => {
      x[0] += 1;
      written++;
    },
  });
  const take = task({
    name: 'take',
    flows: { x: read('f64'), y: readWrite('f64') },
    body: async ({ x, y }) => {
      while (written < VERSIONS) await new Promise((resolve) => setImmediate(resolve));
      y[0] = x[0];
      found.push(x[0]);
    },
  });
  await Promise.all(
    backends.map(async (backend, rank) => {
      const runtime = Runtime.over(backend, { workers: 1 }, ports[rank]);
      const x = runtime.data(new Float64Array(1), { name: 'x', rank: 0 });
      const y = runtime.data(new Float64Array(1), { name: 'y', rank: 1 });
      await runtime.run((graph) => {
        for (let i = 0; i < VERSIONS; i++) {
          graph.insert(count, { x });
          graph.insert(take, { x, y });
        }
      });
      await runtime.close();
    }),
  );
  expect(found).toEqual(Array.from({ length: VERSIONS }, (_, i) => i + 1));
}, 60_000);
