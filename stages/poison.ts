// Data without a usable value: how they come to be, how they recover, and what their readers are told.
//
// The rule (docs/guide.md, "Abort and failure"): in program order, a writer of a datum that fails, is cancelled or is dropped
// leaves it without a value, whatever it had before; the next task that writes all of it, or `set`, gives it one again, and
// `restore` the one from before where that is still there.
//
// Program order is kept by the moment: a dropped writer poisons its outputs when all that was inserted before it and uses
// them was issued or is over (scheduler/dropped-tasks.ts); a writer that was issued cures them then, in the order of issue,
// and poisons them when it is seen to have failed, unless a later writer has had its word by then. Completions may be
// seen in another order than they happened.
// Invariant: `poisonedBy[d]` is the last writer of `d` that decided on it: one that overwrites all of it and was issued, or
// one that failed. What issued tasks computed from a failed writer is marked besides (scheduler/failure-effects.ts).
import { Status } from '../devices/backend.js';
import { type Directory, Poison } from '../devices/directory.js';
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import type { StageContext } from './context.js';
import { Outcome } from './stage.js';
import { AccessMode } from './task-table.js';

/** In the column of queues: the task was not issued. A JavaScript body that is queued counts as issued. */
const NOT_ISSUED = -1;

/** Marks what the task in `row` should have written, and did not or not all of it. */
export function poisonOutputs(x: StageContext, row: number, status: number): void {
  if (!guards.poisonOutputs) return;
  const { tasks, directory: dir } = x;
  const id = tasks.idOf(row);
  const modes = x.classes[tasks.classOf[row]].modes;
  const first = tasks.flowStart[row];
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.read) continue;
    const d = tasks.flowDatum[first + i];
    const by = dir.poisonedBy[d];
    // While this task is in the window, later ones are, too: other ids are of long ago.
    const isLater = ((by - id) | 0) > 0 && tasks.contains(by) && guards.laterWriterDecides;
    const poison = poisonOf(dir, d, modes[i], status, tasks.queue[row] !== NOT_ISSUED);
    // The older value that a later, cancelled task would have changed is the one that this task did not write.
    if (isLater && dir.poison[d] === Poison.outdated) dir.setPoison(d, poison);
    if (isLater) continue;
    dir.poisonedBy[d] = id;
    if (status !== Status.cancelled || dir.poison[d] === Poison.none || poison < dir.poison[d])
      dir.setPoison(d, poison);
  }
}

/** What datum `d` is after a task that should have written it and was issued, or was dropped before. */
function poisonOf(
  dir: Directory,
  d: number,
  mode: number,
  status: number,
  isIssued: boolean,
): number {
  if (status !== Status.cancelled) return Poison.writerFailed;
  // Where it is only overwritten the older copies were given up when the task was issued.
  const isGone = isIssued ? mode === AccessMode.write : dir.validMask[d] === 0;
  return isGone ? Poison.writerCancelled : Poison.outdated;
}

/** The latest version of datum `d` was not written, or not here; `id` is the last task that was inserted. */
export function markUnwritten(dir: Directory, d: number, id: number): void {
  dir.poisonedBy[d] = id;
  if (dir.poison[d] === Poison.none)
    dir.setPoison(d, dir.validMask[d] === 0 ? Poison.writerCancelled : Poison.outdated);
}

/** Task `id` writes all of datum `d` without reading it, and was issued: from here on in program order it is good. */
export function cure(dir: Directory, d: number, id: number): void {
  dir.poisonedBy[d] = id;
  if (dir.poison[d] !== Poison.none) dir.setPoison(d, Poison.none);
}

/** The first datum that the task in `row` reads and that has no usable value, or -1. */
export function poisonedInput(x: StageContext, row: number): number {
  const { tasks, directory: dir } = x;
  const { modes, restores } = x.classes[tasks.classOf[row]];
  const first = tasks.flowStart[row];
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.write) continue;
    const d = tasks.flowDatum[first + i];
    if (dir.poison[d] === Poison.none) continue;
    if (dir.poison[d] !== Poison.outdated || restores !== true) return d;
  }
  return -1;
}

const WHY: readonly string[] = [
  '',
  'the task that wrote it failed',
  'the task that should have written it was cancelled',
  'a transfer of its only copy failed',
  'the task that should have written it did not run',
];
/** Of data whose older value is still there. */
const REWRITE = 'write all of it again before reading it';
const RESTORE =
  'write all of it again before reading it, or take the value from before with restore()';

/** Fails a task that would read a datum without a usable value. */
export function failPoisoned(x: StageContext, row: number, d: number, stage: string): number {
  const datum = x.directory.info[d]?.name ?? `#${d}`;
  const poison = x.directory.poison[d];
  x.hooks.fail(
    row,
    new HeadraceError(
      'ERR_DATUM_POISONED',
      `datum '${datum}' has no usable value: ${WHY[poison]}`,
      {
        datum,
        task: x.describe(row),
        stage,
        remedy: poison === Poison.outdated ? RESTORE : REWRITE,
      },
    ),
  );
  return Outcome.fail;
}
