// The valid ends of a case: a good end, or the typed error of an injected fault.
import type { SimulatedCase } from '../cases/case.js';
import type { CaseTask } from '../cases/program.js';

/** Its body fails, or that of a task that it inserts. */
function failsInside(t: CaseTask): boolean {
  return t.fails === true || t.inserts?.some(failsInside) === true;
}

/** Codes with which a rank's run may end; '' is a good end. */
export function expectedOutcomes(c: SimulatedCase): string[] {
  const has = (kind: string): boolean =>
    c.faults.some((fault) => fault.kind === kind) ||
    c.network?.faults.some((fault) => fault.kind === kind) === true;
  const allowed: string[] = [];
  if (c.tooLarge) allowed.push('ERR_TASK_TOO_LARGE');
  const cancels = c.steps?.some(([what]) => what === 'cancel') === true;
  const fails = c.tasks.some(failsInside);
  if (c.cancelAt !== undefined || cancels) allowed.push('ERR_ABORTED');
  if (c.shortOfHost) allowed.push('ERR_OUT_OF_HOST_MEMORY');
  if (has('kernel') || fails) allowed.push('ERR_TASK_FAILED');
  if (has('transfer')) allowed.push('ERR_TRANSFER_FAILED');
  if (has('deviceLost')) allowed.push('ERR_DEVICE_LOST');
  if (has('peerLost')) allowed.push('ERR_PEER_LOST');
  if (has('flush')) allowed.push('ERR_FLUSH_FAILED', 'ERR_FLUSH_TIMEOUT');
  // One run reads data that another one should have written.
  if (allowed.length > 0 && c.steps !== undefined) allowed.push('ERR_DATUM_POISONED');
  // A failure on one rank fails the run on all.
  if (allowed.length > 0 && (c.ranks ?? 1) > 1) allowed.push('ERR_PEER_FAILED');
  if (!c.tooLarge) allowed.push('');
  return allowed;
}

/** Codes with which reading a datum back may fail. */
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

/** Codes with which writing a datum from the program may fail. */
export function expectedSetErrors(c: SimulatedCase): string[] {
  const codes = expectedReadErrors(c, true);
  return c.faults.length > 0 || c.shortOfHost || (c.ranks ?? 1) > 1 ? codes : [];
}
