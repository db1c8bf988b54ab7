// The number of cores for this process: ranks of one host share its cores.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { launchOf } from '../../devices/launch.js';

/** Cores in a list such as `0-3,8`. */
export function countCores(list: string): number {
  let count = 0;
  for (const range of list.trim().split(',')) {
    const [first, last = first] = range.split('-').map(Number);
    if (range !== '' && first !== undefined && last !== undefined) count += last - first + 1;
  }
  return count;
}

/** Cores that the launcher of this process may use; the launcher may have bound this process to fewer. */
function coresOfLauncher(): number {
  try {
    const status = readFileSync(`/proc/${process.ppid}/status`, 'utf8');
    return countCores(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? '');
  } catch {
    return 0;
  }
}

/**
 * This rank's share of the host's cores, at least 1: the cores of the launcher divided among the ranks of the host, but
 * at most the cores to which the launcher has bound this process. srun names its step's cores on the host, and it may not
 * bind. Without a launcher: all cores of this process.
 */
export function ownCores(): number {
  const here = availableParallelism();
  const { localSize, hostCores, size } = launchOf();
  if (size === 1) return here;
  if (hostCores === undefined && localSize === 1) return here;
  const together = hostCores ?? Math.max(here, coresOfLauncher());
  return Math.max(1, Math.min(here, Math.floor(together / localSize)));
}
