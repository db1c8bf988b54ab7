// Whether this process is one of several, and joining them: the only place that looks at how it was launched.
import { HeadraceError } from '../devices/errors.js';
import { doctorCommand } from '../devices/installation.js';
import type { NativeBackend } from '../devices/native-backend.js';
import {
  checkMpi,
  launched,
  type NativeNetwork,
  openNativeNetwork,
} from '../devices/native-network.js';
import type { NetworkPort } from '../devices/network-port.js';
import type { ResolvedOptions } from './options.js';
import { ownCores } from './own-cores.js';

const CHUNK_BYTES = 512 * 1024;
const GPU = 1;
const SPIN_NS = 10_000_000;

/** The driver's number of this process's first GPU: the ranks of a host share its GPUs out among them. */
export function firstGpu({ gpus, driver }: ResolvedOptions): number {
  return driver === 'emulated' ? 0 : launched().localRank * gpus;
}

/**
 * How long threads of this process spin before they give way, where several ranks wait for each other: 10 ms when each of
 * this rank's threads (engine, comm thread, workers, GPUs) has a core of its own, since waking a sleeping one takes
 * longer than a message between two ranks (on a virtual machine 100 us and more), and a large transfer takes some
 * milliseconds. 0: as threads of a single process do.
 */
export function spinNanoseconds({ comm, workers, gpus }: ResolvedOptions): number {
  if (comm === 'off' || launched().size === 1) return 0;
  return 2 + workers + gpus <= ownCores() ? SPIN_NS : 0;
}

/** The network port, or undefined in a single process. Collective over all ranks. */
export async function openRanks(
  backend: NativeBackend,
  options: ResolvedOptions,
): Promise<NetworkPort | undefined> {
  const { comm, driver, gpus, flush } = options;
  const isReal = gpus > 0 && driver !== 'emulated';
  if (comm === 'off') return undefined;
  const { size, localSize } = launched();
  if (size === 1) {
    // Asking for a way that is not there is an error also where nobody is there to talk to.
    if (comm !== 'auto') checkMpi();
    return undefined;
  }
  // Within one host memory is opened rather than sent, so nobody needs to know what the MPI library can do.
  const asksMpi = comm === 'direct' || (comm === 'auto' && localSize < size);
  const port = await openNativeNetwork({
    spaces: backend.exported(),
    direct: asksMpi ? 'proven' : 'never',
    flush,
    doorbell: backend.doorbell(),
    chunkBytes: CHUNK_BYTES,
    failFlush: Number(process.env['HEADRACE_FAIL_FLUSH'] ?? 0),
    crowded: spinNanoseconds(options) === 0,
  });
  const problem = isReal ? missing(port, comm) : '';
  if (problem !== '' || port.size === 1) await port.close();
  if (problem !== '') {
    throw new HeadraceError(
      'ERR_COMM_UNAVAILABLE',
      `comm: '${comm}' is not available: ${problem}`,
      { remedy: `use comm: 'auto', and see: ${doctorCommand()}` },
    );
  }
  return port.size === 1 ? undefined : port;
}

/** Why the way asked for does not exist for real GPUs; '' when it does. */
function missing(port: NativeNetwork, comm: ResolvedOptions['comm']): string {
  if (comm === 'direct' && !port.reachable(port.rank, GPU)) return port.directProblem;
  if (comm !== 'ipc') return '';
  const others = port.neighbours().filter((rank) => rank !== port.rank);
  if (others.length === 0) return 'no other rank is on this host';
  return others.every((rank) => port.mappable(rank, GPU)) ? '' : port.mappingProblem;
}
