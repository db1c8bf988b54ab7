// Detects whether this process is one of several ranks, and joins them.
import { HeadraceError } from '../../devices/errors.js';
import { doctorCommand } from '../../devices/installation.js';
import { launchOf } from '../../devices/launch.js';
import type { NativeBackend } from '../../devices/native/backend.js';
import type { NativeNetwork } from '../../devices/native/network.js';
import { checkMpi, openNativeNetwork } from '../../devices/native/open-network.js';
import type { NetworkPort } from '../../devices/network/port.js';
import type { ResolvedOptions } from '../program/options.js';
import { ownCores } from '../program/own-cores.js';

const CHUNK_BYTES = 512 * 1024;
const GPU = 1;
const SPIN_NS = 10_000_000;

/**
 * How long threads of this process spin before they sleep, if several ranks wait for each other. The value is 10 ms if
 * each of this rank's threads (engine, comm thread, workers, GPUs) has its own core: waking a thread takes longer than a
 * message between two ranks (on a virtual machine 100 us and more), and a large transfer takes some milliseconds. 0: the
 * threads wait as in a single process.
 */
export function spinNanoseconds({ comm, workers, gpus }: ResolvedOptions): number {
  if (comm === 'off' || launchOf().size === 1) return 0;
  return 2 + workers + gpus <= ownCores() ? SPIN_NS : 0;
}

/** Lanes of this process: a single rank needs none. */
export function laneCount({ comm, lanes }: ResolvedOptions): number {
  return comm === 'off' || launchOf().size === 1 ? 0 : lanes;
}

/** The network port, or undefined in a single process. Collective over all ranks. */
export async function openRanks(
  backend: NativeBackend,
  options: ResolvedOptions,
): Promise<NetworkPort | undefined> {
  const { comm, driver, gpus, flush } = options;
  const isReal = gpus > 0 && driver !== 'emulated';
  if (comm === 'off') return undefined;
  const { size, localSize } = launchOf();
  if (size === 1) {
    // An unavailable way is an error also in a single process.
    if (comm !== 'auto') checkMpi();
    return undefined;
  }
  // Within one host ranks open memory instead of sending it, so the abilities of the MPI library do not matter.
  const asksMpi = comm === 'direct' || (comm === 'auto' && localSize < size);
  const port = await openNativeNetwork({
    spaces: backend.exported(),
    direct: asksMpi ? 'proven' : 'never',
    flush,
    doorbell: backend.doorbell(),
    lanes: laneCount(options) === 0 ? 0n : backend.lanes(),
    treeFrom: options.treeFrom,
    chunkBytes: CHUNK_BYTES,
    crowded: spinNanoseconds(options) === 0,
    mailboxes: comm === 'auto' || comm === 'ipc',
    same: { treeFrom: options.treeFrom, inlineBytes: options.inlineBytes },
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

/** The reason why the chosen way does not exist for real GPUs; '' if it exists. */
function missing(port: NativeNetwork, comm: ResolvedOptions['comm']): string {
  if (comm === 'direct' && !port.reachable(port.rank, GPU)) return port.directProblem;
  if (comm !== 'ipc') return '';
  const others = port.neighbours().filter((rank) => rank !== port.rank);
  if (others.length === 0) return 'no other rank is on this host';
  return others.every((rank) => port.mappable(rank, GPU)) ? '' : port.mappingProblem;
}
