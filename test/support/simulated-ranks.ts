// Simulated ranks for tests: their machine, and runtimes that a network in virtual time joins.
import type { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import type { MachineDescription } from '../../devices/simulated/machine/machine.js';
import type { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import { Runtime, type RuntimeOptions } from '../../scheduler/index.js';

export const link = { bandwidth: 1e9, latency: 1e-6 };

/** A rank with one worker, whose kernels take a microsecond. */
export const rankMachine: MachineDescription = {
  name: 'rank',
  gpus: 0,
  gpuMemory: 2 ** 20,
  hostMemory: 2 ** 24,
  workers: 1,
  computeStreams: 1,
  h2d: link,
  d2h: link,
  d2d: link,
  network: link,
  engine: { command: 2e-7, wake: 2e-6, launch: 1e-6 },
  kernels: { '*': { product: [0], factor: 1e-6, rate: 1 } },
};

/** A runtime per backend. The first backend's delays are those of the network. */
export function joined(
  world: World,
  backends: readonly SimulatedBackend[],
  options: RuntimeOptions,
): Runtime[] {
  const { adversary } = backends[0];
  const { ports } = new SimulatedNetwork(world, [...backends], { link, adversary });
  return backends.map((backend, rank) => Runtime.over(backend, options, ports[rank]));
}
