// Insertions that are held back because a plan may be played in their place (scheduler/recognition/).
import type { DatumId, TaskHandle } from '../../devices/handles.js';

export interface HeldInsertions {
  /** Inserts them now: what follows comes after them in program order, or asks about them. */
  settle(): void;
  /** A datum is closed, or belongs to another device now. */
  changed(d: DatumId): void;
  /** The engine has made a pass, and tasks may be inserted. */
  passed(): void;
  /** Whether it is the handle of a task that was held back on several ranks. */
  isHandle(handle: number): boolean;
  /** Handles with those that such tasks have now. */
  tasksOf(handles: readonly TaskHandle[]): readonly TaskHandle[];
}
