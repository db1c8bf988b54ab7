// The end of the last part of a datum. What only the part had was taken over, and from then on the datum is to be like one that
// never had parts: tasks reduce into it, and `restore` is possible.
//
// Its record of versions stays while it may still be needed: if a take-over into the datum fails, the datum lacks some elements and
// keeps the others (losses.ts). It ends when the next task that uses the datum finds all take-overs done.
// Invariants:
// - a datum whose record has ended has the newest version of all its elements, or its memory is of no use;
// - `restore` brings no elements back that a part had newer ones of: it undoes only what tasks behind the end of the parts did.
import { guards } from '../../../devices/guards.js';
import type { TaskId } from '../../../devices/handles.js';
import { type Directory, Poison } from '../../../devices/memory/directory.js';
import type { Datum } from '../datum.js';
import type { Family, View } from './view.js';

/** Whether the program or a plan has a part. */
export function isOpen({ isHeld, plans }: View<Datum>): boolean {
  return isHeld || plans > 0;
}

/** Whether a view is a part, or the program or a plan has parts of it. */
export function hasParts(view: View<Datum> | undefined): boolean {
  if (view === undefined) return false;
  const { whole, parts } = view.family;
  if (view !== whole) return true;
  for (const part of parts.values()) if (isOpen(part)) return true;
  return false;
}

/** Whether tasks or calls have used open parts, other than `but`: the same on all ranks. */
export function hasUsedParts({ parts }: Family<Datum>, but?: View<Datum>): boolean {
  for (const part of parts.values()) if (!part.isOwn && part !== but) return true;
  return false;
}

/** The parts of a datum end before task `next`: what tasks before it leave in the memory of the datum may be older than them. */
export function seal(directory: Directory, datum: Datum, next: TaskId): void {
  if (!guards.partsSealed) return;
  datum.partsUntil = next;
  if (directory.poison[datum.row] === Poison.outdated)
    directory.setPoison(datum.row, Poison.writerCancelled);
}
