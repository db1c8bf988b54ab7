// Handles of tasks that are held back on several ranks. Such a task may have no number of its own: it runs on another rank, or is played, or
// movements come between it and the task before. So its handle says its place among all that were held back, and its rank.
//
// Invariant: all ranks find the same rank in the handles of the same task, whatever became of it.
import type { TaskHandle, TaskId } from '../../devices/handles.js';
import { MAX_RANKS } from '../../devices/network/keys.js';
import type { RunState } from '../engine/run-state.js';
import { handleElsewhere, rankOfHandle } from '../ranks/cross-rank-order.js';

/** First of these handles: beyond those of tasks of other ranks. */
const HELD = 2 ** 41;

/** Tasks that were inserted after all: the handles that they have now. */
interface Inserted {
  readonly first: number;
  readonly run: RunState;
  readonly handles: readonly TaskHandle[];
}

/** The handles of tasks that are held back one after the other. */
export class HandlesInOrder {
  private readonly first: number;
  private readonly ranks: readonly number[];

  /** `place`: that of the first task. `ranks`: where each of them runs. */
  constructor(place: number, ranks: readonly number[]) {
    this.first = HELD + place * MAX_RANKS;
    this.ranks = ranks;
  }

  at(n: number): TaskHandle {
    return (this.first + n * MAX_RANKS + this.ranks[n]) as TaskHandle;
  }
}

export class HeldHandles {
  /** Tasks that were held back so far. */
  private count = 0;
  private inserted: Inserted[] = [];
  private readonly rank: number;
  private readonly tasks: { readonly head: TaskId };

  /** `rank`: this one. */
  constructor(rank: number, tasks: { readonly head: TaskId }) {
    this.rank = rank;
    this.tasks = tasks;
  }

  /** Places for that many tasks; returns the first. */
  take(tasks: number): number {
    const first = this.count;
    this.count += tasks;
    return first;
  }

  /** The tasks from place `first` on were inserted into a run, with these handles. */
  insertedNow(first: number, run: RunState, handles: readonly TaskHandle[]): void {
    // The tasks of a run that is over are over.
    this.inserted = this.inserted.filter(({ run: { over } }) => !over);
    this.inserted.push({ first, run, handles });
  }

  isOne(handle: number): boolean {
    return handle >= HELD && handle < HELD + this.count * MAX_RANKS && Number.isInteger(handle);
  }

  /** The handle of the task as others have it. A task that is over has that of another one. */
  taskOf(handle: TaskHandle): TaskHandle {
    if (!this.isOne(handle)) return handle;
    const place = Math.floor((handle - HELD) / MAX_RANKS);
    const rank = (handle - HELD) % MAX_RANKS;
    if (rank !== this.rank) return handleElsewhere(rank);
    for (const { first, handles } of this.inserted) {
      const now = handles[place - first];
      if (now !== undefined && rankOfHandle(now, rank) === rank) return now;
    }
    return ((this.tasks.head - 1) | 0) as TaskId;
  }
}
