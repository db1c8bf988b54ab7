// Insertions that are held back because a plan may be played in their place (scheduler/recognition/).
import type { DatumId } from '../../devices/handles.js';

export interface HeldInsertions {
  /** Inserts them now: what follows comes after them in program order, or asks about them. */
  settle(): void;
  /** A datum is closed, or belongs to another device now. */
  changed(d: DatumId): void;
}
