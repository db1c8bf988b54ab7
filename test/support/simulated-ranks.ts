// Simulated ranks for tests: their machine, and runtimes that a network in virtual time joins.
import { setImmediate } from 'node:timers/promises';
import { planKernels } from '../../devices/simulated/cases/plan-cases.js';
import { SimulatedBackend, type SimulatedKernel } from '../../devices/simulated/machine/backend.js';
import type { MachineDescription } from '../../devices/simulated/machine/machine.js';
import { World } from '../../devices/simulated/machine/world.js';
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
  lanes: 8,
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

/** Turns of the event loop after which a program counts as one that hangs. */
const TURNS = 50_000;

/** Ranks, their machines and their runtimes. */
interface GivenRanks {
  readonly ranks: number;
  /** Of the delays of the machines. */
  readonly seed: number;
  readonly machine?: Partial<MachineDescription>;
  readonly options?: RuntimeOptions;
  /** Besides those of random plans. */
  readonly kernels?: Readonly<Record<string, SimulatedKernel>>;
}

/** Runtimes of ranks whose machines have real bytes, and delay what they can. */
export function disturbedRanks({
  ranks,
  seed,
  machine = {},
  options = {},
  kernels = {},
}: GivenRanks): Runtime[] {
  const world = new World();
  const delays = { spread: 3, holdBack: 0.3, stall: 0.1, stallNs: 20_000, spurious: 0.05 };
  const backends = Array.from(
    { length: ranks },
    (_, rank) =>
      new SimulatedBackend({
        // With kernels the memory of the machine has bytes.
        machine: { ...rankMachine, kernels: { '*': 1e-6 }, ...machine },
        ...{ world, kernels: { ...planKernels, ...kernels } },
        adversary: { seed: seed * 10 + rank, ...delays },
      }),
  );
  return joined(world, backends, { checked: true, inlineBytes: 64, treeFrom: 3, ...options });
}

/** What each rank sees: its machine has real bytes, and delays what it can. */
export async function onRanks<T>(
  given: GivenRanks,
  program: (runtime: Runtime) => Promise<T>,
): Promise<T[]> {
  const runtimes = disturbedRanks(given);
  let seen: T[] | undefined;
  let failed: { readonly error: unknown } | undefined;
  Promise.all(
    runtimes.map(async (runtime) => {
      const found = await program(runtime);
      await runtime.close();
      return found;
    }),
  ).then(
    (all) => {
      seen = all;
    },
    (error: unknown) => {
      failed = { error };
    },
  );
  for (let i = 0; i < TURNS && seen === undefined && failed === undefined; i++)
    await setImmediate();
  if (failed !== undefined) throw failed.error;
  if (seen === undefined)
    throw new Error(`still waiting: ${runtimes.map((each) => each.explain()).join('\n')}`);
  return seen;
}
