// Data without a usable value: how they come to be, how they recover, and what their readers are told.
//
// Invariant: after a failed or cancelled task was retired, every datum whose bytes are not those of some completed
// writer is marked, so that no later task or `read()` can take garbage for a value.
import { Status } from '../devices/backend.js';
import { Poison } from '../devices/directory.js';
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import type { StageContext } from './context.js';
import { Outcome } from './stage.js';
import { AccessMode } from './task-table.js';

/**
 * Marks what a task that was issued, or dropped before, did not write. A failed task may have written half of
 * it; a cancelled one nothing, so that what it would have changed still has its older value.
 */
export function poisonOutputs(x: StageContext, row: number, status: number): void {
  const id = x.tasks.idOf(row);
  if (!guards.poisonOutputs) return;
  const { tasks, directory: dir } = x;
  const modes = x.classes[tasks.classOf[row]].modes;
  const first = tasks.flowStart[row];
  // -1: not issued. A JavaScript body that was queued counts: its outputs were taken over when it was.
  const issued = tasks.queue[row] !== -1;
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.read) continue;
    const d = tasks.flowDatum[first + i];
    // A later writer that failed too, or made it good again, has the last word.
    if (dir.poison[d] !== Poison.none && ((dir.poisonedBy[d] - id) | 0) > 0) continue;
    dir.poisonedBy[d] = id;
    if (status !== Status.cancelled) dir.setPoison(d, Poison.writerFailed);
    else if (dir.poison[d] === Poison.none) {
      // Issued for writing only: the older copies were given up when it was issued. Dropped before: they stand,
      // if there were any.
      const lost = issued ? modes[i] === AccessMode.write : dir.validMask[d] === 0;
      if (lost) dir.setPoison(d, Poison.writerCancelled);
    }
  }
}

/** A task that wrote all of a datum without reading it makes it good again. */
export function cureOutputs(x: StageContext, row: number): void {
  const { tasks, directory: dir } = x;
  if (dir.poisonedData === 0) return;
  const modes = x.classes[tasks.classOf[row]].modes;
  const first = tasks.flowStart[row];
  const id = tasks.idOf(row);
  for (let i = 0; i < modes.length; i++) {
    const d = tasks.flowDatum[first + i];
    if (modes[i] !== AccessMode.write || ((dir.poisonedBy[d] - id) | 0) > 0) continue;
    dir.setPoison(d, Poison.none);
    dir.poisonedBy[d] = id;
  }
}

const WHY: readonly string[] = [
  '',
  'the task that wrote it failed',
  'the task that should have written it was cancelled',
  'a transfer of its only copy failed',
];

/** Fails a task that would read a datum without a usable value. */
export function failPoisoned(x: StageContext, row: number, d: number, stage: string): number {
  const datum = x.directory.info[d]?.name ?? `#${d}`;
  x.hooks.fail(
    row,
    new HeadraceError(
      'ERR_DATUM_POISONED',
      `datum '${datum}' has no usable value: ${WHY[x.directory.poison[d]]}`,
      { datum, task: x.describe(row), stage, remedy: 'write all of it again before reading it' },
    ),
  );
  return Outcome.fail;
}
