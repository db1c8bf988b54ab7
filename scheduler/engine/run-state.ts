// The engine's side of a run: how many of its tasks are live, whether more may come, and how it ends.
// Invariant: `live` counts inserted tasks that are not retired; the run is over when it is sealed, live is 0,
// and no play stands for tasks of it.
import type { HeadraceError } from '../../devices/errors.js';

/** Slot of the runtime's own tasks (reads, releases); never cancelled. */
export const INTERNAL_RUN = 0;
/** Runs that may be open at a time, the runtime's own among them. */
export const RUN_SLOTS = 64;

export class RunState {
  readonly slot: number;
  inserted = 0;
  retired = 0;
  /** The number of inserted sends and receives. */
  movements = 0;
  /** Tasks that a play stands for; they count as inserted when it is over. */
  standing = 0;
  /** No more tasks will be inserted by the program. */
  sealed = false;
  /** First failure, or the abort. */
  error: HeadraceError | undefined;
  /** The task that failed, and the time of the pass that saw it; only if a task failed. */
  failedTask = 0;
  failedAt = -1;
  /** Called once, when the run is over. */
  onOver: (() => void) | undefined;
  /** Called after each engine pass in which tasks retired. */
  onProgress: (() => void) | undefined;
  over = false;
  cancelledTasks = 0;
  /** The graph of its program, into which the bodies of its tasks insert. */
  graph: object | undefined;

  constructor(slot: number) {
    this.slot = slot;
  }

  get live(): number {
    return this.inserted - this.retired;
  }

  /** All that was inserted, or is played in place of it, is over. */
  get isDone(): boolean {
    return this.inserted === this.retired && this.standing === 0;
  }
}
