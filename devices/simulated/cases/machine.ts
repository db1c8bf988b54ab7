// The machine of a rank of a simulated case.

import { ALIGNMENT } from '../../memory/zone.js';
import { SimulatedBackend } from '../machine/backend.js';
import { type MachineDescription, queuesOf } from '../machine/machine.js';
import type { World } from '../machine/world.js';
import type { WeakMemory } from '../memory/weak-memory.js';
import type { SimulatedCase } from './case.js';

export function machineOf(c: SimulatedCase): MachineDescription {
  const link = { bandwidth: 1e9, latency: 1e-6 };
  return {
    name: 'case',
    gpus: c.gpus,
    gpuMemory: c.gpuUnits * ALIGNMENT,
    hostMemory: c.hostUnits * ALIGNMENT,
    workers: c.workers,
    computeStreams: c.streams,
    h2d: link,
    d2h: link,
    d2d: c.peers ? link : null,
    network: link,
    lanes: c.network?.lanes ?? 0,
    engine: { command: 2e-7, wake: 2e-6, launch: 1e-6 },
    kernels: { '*': { product: [0], factor: 1e-6, rate: 1 } },
  };
}

/** Records per queue: 128, or the least power of two that holds one task with all its waits. */
function ringsOf(c: SimulatedCase): number {
  if (!c.smallRings) return 128;
  const least = queuesOf(machineOf(c)).length + 4;
  return 2 ** Math.ceil(Math.log2(least));
}

/** The backend of a rank of the case. */
export function backendOf(
  c: SimulatedCase,
  rank: number,
  world: World,
  memory: WeakMemory,
): SimulatedBackend {
  return new SimulatedBackend({
    machine: machineOf(c),
    world,
    ringRecords: ringsOf(c),
    adversary: { ...c.adversary, seed: c.adversary.seed + rank },
    faults: c.faults.filter((fault) => (fault.rank ?? 0) === rank),
    watcher: memory.watcher(rank),
    hostBytes: memory.hostBytes(rank),
  });
}
