// The versions of data that a rank has while it inserts its own tasks only. A version is named by the position of the task that wrote
// it, which all ranks know without seeing that task.

import { resized } from '../../devices/resized.js';
import type { Datum } from '../program/datum.js';

const ROWS = 256;
/** The version from before the graph. Every position is larger. */
export const BEFORE: number = -Infinity;

/** @internal */
export class LocalVersions {
  private positions: Float64Array = new Float64Array(ROWS).fill(BEFORE);

  /** The version that tasks inserted from now on find here. */
  of({ row }: Datum): number {
    return row < this.positions.length ? this.positions[row] : BEFORE;
  }

  /** The task at a position has written it, here or elsewhere. */
  set({ row }: Datum, position: number): void {
    if (row >= this.positions.length)
      this.positions = resized(
        this.positions,
        Math.max(row + 1, 2 * this.positions.length),
        BEFORE,
      );
    this.positions[row] = position;
  }
}
