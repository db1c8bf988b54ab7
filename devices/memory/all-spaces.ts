// What a pass asks of all memory spaces together, in one place: it looks at a single space only if there is a reason to.
//
// Invariant: bit s of `wakes` is set from `wakeLine` of space s on, until the engine serves its waiters.

import type { SpaceId } from '../handles.js';
import { Tally } from '../tally.js';

export class AllSpaces {
  /** Tasks in the lines of all spaces. */
  readonly waiting: Tally = new Tally();
  /** Copies that left to make room, so far. */
  evictions = 0;
  private wakes = 0;

  /** The waiters of some space must be served. */
  get mustServe(): boolean {
    return this.wakes !== 0;
  }

  mustServeLine(s: SpaceId): boolean {
    return ((this.wakes >>> s) & 1) !== 0;
  }

  setServeLine(s: SpaceId, on: boolean): void {
    if (on) this.wakes |= 1 << s;
    else this.wakes &= ~(1 << s);
  }
}
