// How a case may end: well, or with the typed error of what was made to go wrong in it.
import type { SimulatedCase } from './case.js';

/** Codes a rank's run may end with; '' is a good end. */
export function expectedOutcomes(c: SimulatedCase): string[] {
  const has = (kind: string): boolean =>
    c.faults.some((fault) => fault.kind === kind) ||
    c.network?.faults.some((fault) => fault.kind === kind) === true;
  const allowed: string[] = [];
  if (c.tooLarge) allowed.push('ERR_TASK_TOO_LARGE');
  if (c.cancelAt !== undefined) allowed.push('ERR_ABORTED');
  if (c.shortOfHost) allowed.push('ERR_OUT_OF_HOST_MEMORY');
  if (has('kernel')) allowed.push('ERR_TASK_FAILED');
  if (has('transfer')) allowed.push('ERR_TRANSFER_FAILED');
  if (has('deviceLost')) allowed.push('ERR_DEVICE_LOST');
  if (has('peerLost')) allowed.push('ERR_PEER_LOST');
  if (has('flush')) allowed.push('ERR_FLUSH_FAILED', 'ERR_FLUSH_TIMEOUT');
  // What fails on one rank fails on all.
  if (allowed.length > 0 && (c.ranks ?? 1) > 1) allowed.push('ERR_PEER_FAILED');
  if (!c.tooLarge) allowed.push('');
  return allowed;
}

/** Codes reading a datum back may fail with. */
export function expectedReadErrors(c: SimulatedCase, hasFailed: boolean): string[] {
  const faults = c.faults.length + (c.network?.faults.length ?? 0);
  if (!hasFailed && faults === 0 && !c.shortOfHost) return [];
  return [
    'ERR_OUT_OF_HOST_MEMORY',
    'ERR_DATUM_POISONED',
    'ERR_DATUM_LOST',
    'ERR_TRANSFER_FAILED',
    'ERR_DEVICE_LOST',
    'ERR_PEER_LOST',
    'ERR_PEER_FAILED',
    'ERR_FLUSH_FAILED',
    'ERR_FLUSH_TIMEOUT',
  ];
}
