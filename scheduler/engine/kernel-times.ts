// How long the kernels of a task class take, on the host and on GPUs: means over some of its tasks. The planner asks for them.
//
// A queue that keeps times reads the clock twice per command. So times are kept for a while only: from the first use of a class until
// ENOUGH of its tasks have ended on each kind of device, or TASKS tasks of all classes. At other times a task costs one comparison.
// Invariant: a time counts only if the command began after the queues had begun to keep times. Other slots have older times.
import type { Backend } from '../../devices/backend.js';
import { HOST, type QueueId, type SpaceId } from '../../devices/handles.js';
import type { TaskClassRow } from '../../stages/task-table.js';

/** Tasks of a class whose times are taken, and tasks of all classes after which those that are still to come are given up. */
const ENOUGH = 64;
const TASKS = 2 ** 14;

interface Mean {
  /** Tasks seen. The first one finds cold caches and loads code: its time does not count. */
  seen: number;
  /** Nanoseconds. */
  sum: number;
}

/** Kernels of a class are the same function on all GPUs. */
function kindOf(space: SpaceId): 0 | 1 {
  return space === HOST ? 0 : 1;
}

export class KernelTimes {
  /** Ends of tasks are to be told. */
  isOpen = false;
  private readonly backend: Backend;
  /** By name and number of flows of the class, kernel, and kind of device: the classes of a plan have other rows. */
  private readonly means: Map<string, Mean> = new Map();
  /** By class and kind of device. */
  private readonly ofClass: (Mean | undefined)[] = [];
  /** Classes and kinds of devices, as in `ofClass`, that have not seen enough tasks. */
  private readonly wanted: Set<number> = new Set();
  private openedAt = 0;
  private left = 0;

  constructor(backend: Backend) {
    this.backend = backend;
  }

  /** Tasks of a class come next. */
  open(cls: TaskClassRow): void {
    cls.kernels.forEach((kernel, s) => {
      if (kernel < 0) return;
      const key = keyOf(cls, kernel, s as SpaceId);
      const mean = this.means.get(key) ?? { seen: 0, sum: 0 };
      this.means.set(key, mean);
      const at = 2 * cls.id + kindOf(s as SpaceId);
      this.ofClass[at] = mean;
      if (mean.seen <= ENOUGH) this.wanted.add(at);
    });
    this.left = TASKS;
    if (this.isOpen || this.wanted.size === 0) return;
    this.isOpen = true;
    this.backend.setTiming(true);
    this.openedAt = this.backend.now();
  }

  /** A task of class `cls`, record `seq` of queue `q`, has ended well. `keeps`: the queues keep times for others, too. */
  ended(cls: number, q: QueueId, seq: number, keeps: boolean): void {
    const { backend } = this;
    const at = 2 * cls + kindOf(backend.queues[q].space);
    const mean = this.ofClass[at];
    if (mean !== undefined && mean.seen <= ENOUGH) {
      const start = backend.startOf(q, seq);
      const took = backend.endOf(q, seq) - start;
      if (start >= this.openedAt && took >= 0) {
        if (mean.seen++ > 0) mean.sum += took;
        if (mean.seen > ENOUGH) this.wanted.delete(at);
      }
    }
    if (--this.left > 0 && this.wanted.size > 0) return;
    this.wanted.clear();
    this.isOpen = false;
    if (!keeps) backend.setTiming(false);
  }

  /** Whether tasks of the class were measured on a device. */
  knows(cls: TaskClassRow): boolean {
    return cls.kernels.some((kernel, s) => this.mean(cls, kernel, s as SpaceId) !== undefined);
  }

  /** Mean seconds of a kernel of a class; undefined if no task was measured. */
  mean(
    cls: Pick<TaskClassRow, 'name' | 'modes'>,
    kernel: number,
    space: SpaceId,
  ): number | undefined {
    const mean = this.means.get(keyOf(cls, kernel, space));
    return mean === undefined || mean.seen < 2 ? undefined : (mean.sum / (mean.seen - 1)) * 1e-9;
  }
}

function keyOf(
  { name, modes }: Pick<TaskClassRow, 'name' | 'modes'>,
  kernel: number,
  space: SpaceId,
): string {
  return `${kindOf(space)} ${kernel} ${modes.length} ${name}`;
}
