// Take-overs that fail. A take-over is recorded when it is inserted: from there on its view has the region. If the region has no
// value where it is taken from, the take-over does not run, and the record is corrected when the engine sees that: the view does
// not have the region. The rest of the view is as it was. So a task of the runtime makes the view usable again (`mend`) before
// the next task that needs it.
// Invariants:
// - a view is mended only when all its take-overs were issued or have failed and, of what it did not get, it has nothing any more;
// - what was written after a take-over was inserted is not corrected.
import type { TaskId } from '../../../devices/handles.js';
import { Execution, TaskStage, type TaskTable } from '../../../stages/task-table.js';
import type { Region } from './region.js';

/** What a view did not get. */
export interface Loss {
  readonly region: Region;
  /** Number of writes (versions.ts) before the take-over. */
  readonly since: number;
}

/** A take-over, and what it loses if it fails. */
export interface Taking<V> {
  readonly view: V;
  readonly loss: Loss;
}

/** The take-overs that may fail. */
export class Takings<V> {
  private readonly tasks: Pick<TaskTable, 'contains' | 'execution' | 'stage' | 'mask'>;
  /** In the order of insertion, and others that have left the window since the last one. */
  private readonly live: Map<TaskId, Taking<V>> = new Map();

  constructor(tasks: Pick<TaskTable, 'contains' | 'execution' | 'stage' | 'mask'>) {
    this.tasks = tasks;
  }

  /** Task `id`, which is inserted next, is a take-over. */
  begin(id: TaskId, taking: Taking<V>): void {
    for (const oldest of this.live.keys()) {
      if (this.tasks.contains(oldest)) break;
      this.live.delete(oldest);
    }
    this.live.set(id, taking);
  }

  /** The task `id` has failed; undefined if it is no take-over. */
  end(id: TaskId): Taking<V> | undefined {
    const taking = this.live.get(id);
    if (taking !== undefined) this.live.delete(id);
    return taking;
  }

  /** Whether a take-over into a view was not issued yet: it may still fail in a way that leaves the rest of the view good. */
  has(view: V): boolean {
    const { execution, stage, mask } = this.tasks;
    for (const [id, taking] of this.live) {
      if (taking.view !== view || !this.tasks.contains(id)) continue;
      const row = id & mask;
      if (execution[row] === Execution.none && stage[row] !== TaskStage.done) return true;
    }
    return false;
  }
}
