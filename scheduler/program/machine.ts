// Opens the machine of a runtime: the backend with its workers and GPUs, and the network to the other ranks.
import type { Backend } from '../../devices/backend.js';
import { firstGpuOf, ranksOnGpus } from '../../devices/launch.js';
import { openNativeBackend } from '../../devices/native/backend.js';
import type { NetworkPort } from '../../devices/network/port.js';
import { ringFor, SHORTEST_RING } from '../../devices/submission.js';
import { laneCount, openRanks, spinNanoseconds } from '../ranks/open.js';
import type { ResolvedOptions } from './options.js';
import { ownCores } from './own-cores.js';

/** What a runtime runs on. */
export interface Machine {
  readonly backend: Backend;
  /** Undefined in a single process. */
  readonly port: NetworkPort | undefined;
}

/** Record slack per ring: waits and long argument lists count as records too. */
const RING_FACTOR = 4;

/** Records per ring: a power of two with room for the run-ahead and for a command that waits for every queue. */
function ringRecords(options: ResolvedOptions): number {
  const { workers, scriptWorkers, gpus, computeStreams, runAhead } = options;
  // Each GPU has streams for kernels, for copies to and from the host, and for copies from each other GPU.
  const queues = workers + scriptWorkers + gpus * (computeStreams + 2 + gpus) + laneCount(options);
  return ringFor(Math.max(SHORTEST_RING, runAhead * RING_FACTOR), queues);
}

/** Opens the backend and joins the other ranks. If the ranks cannot be joined, the backend is closed again. */
export async function openMachine(options: ResolvedOptions): Promise<Machine> {
  const scripts = {
    module: new URL('./script-worker.js', import.meta.url),
    checked: options.checked,
  };
  const native = {
    driver: options.driver,
    gpus: options.gpus,
    firstGpu: firstGpuOf(options.driver, options.gpus),
    ...(options.gpuBytes === undefined ? {} : { gpuBytes: options.gpuBytes }),
    gpuRanks: ranksOnGpus(options.driver, options.gpus),
    hostBytes: options.hostBytes,
    pinnedBytes: options.pinnedBytes,
    workers: options.workers,
    scriptWorkers: options.scriptWorkers,
    lanes: laneCount(options),
    cores: ownCores(),
    spinNanoseconds: spinNanoseconds(options),
    computeStreams: options.computeStreams,
    ringRecords: ringRecords(options),
    checked: options.checked,
  };
  const backend = openNativeBackend(native, scripts);
  try {
    return { backend, port: await openRanks(backend, options) };
  } catch (error) {
    backend.close();
    throw error;
  }
}
