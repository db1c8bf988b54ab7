// Whether this process is one of several, and joining them: the only place that looks at how it was launched.
import { availableParallelism } from 'node:os';
import { HeadraceError } from '../devices/errors.js';
import type { NativeBackend } from '../devices/native-backend.js';
import { checkMpi, launchedRanks, openNativeNetwork } from '../devices/native-network.js';
import type { NetworkPort } from '../devices/network-port.js';
import type { ResolvedOptions } from './options.js';

const CHUNK_BYTES = 512 * 1024;

/** The network port, or undefined in a single process. Collective over all ranks. */
export async function openRanks(
  backend: NativeBackend,
  options: ResolvedOptions,
): Promise<NetworkPort | undefined> {
  const { comm, driver, gpus } = options;
  const isReal = gpus > 0 && driver !== 'emulated';
  if (comm === 'off') return undefined;
  if (comm === 'ipc' && isReal) {
    throw unavailable(
      'ipc',
      `memory of ${driver} devices cannot be mapped by another process yet`,
      "use comm: 'auto'",
    );
  }
  if (launchedRanks() === 1) {
    // Asking for a way that is not there is an error also where nobody is there to talk to.
    if (comm !== 'auto') checkMpi();
    return undefined;
  }
  const port = await openNativeNetwork({
    spaces: backend.exported(),
    doorbell: backend.doorbell(),
    chunkBytes: CHUNK_BYTES,
    failFlush: Number(process.env['HEADRACE_FAIL_FLUSH'] ?? 0),
    cores: availableParallelism(),
    threads: 1 + options.workers,
  });
  if (comm === 'direct' && isReal) {
    const why = port.gpuAware
      ? 'the library claims to take device pointers, but that has not been proven here'
      : `${port.library} does not take device pointers`;
    await port.close();
    throw unavailable('direct', why, "use comm: 'auto'; data then travel through host memory");
  }
  if (port.size === 1) {
    await port.close();
    return undefined;
  }
  return port;
}

function unavailable(comm: string, why: string, remedy: string): HeadraceError {
  return new HeadraceError('ERR_COMM_UNAVAILABLE', `comm: '${comm}' is not available: ${why}`, {
    remedy,
  });
}
