// How long the kernels of a task class take, on the host and on GPUs: means over some of its tasks. The planner asks for them.
//
// A queue that takes the times of a command reads the clock twice. So times are taken of some tasks only: of a class until ENOUGH of its tasks
// have ended on each kind of device, or TASKS tasks of all classes. Other commands, and those of other classes, cost one comparison.
// Invariant: a time counts only if the command was issued while the class was to be timed. The slots of other commands have older times.
import type { Backend } from '../../devices/backend.js';
import type { QueueId, SpaceId } from '../../devices/handles.js';
import { deviceKind, type TaskClassRow } from '../../stages/task-table.js';

/** Tasks of a class whose times are taken, and tasks of all classes after which those that are still to come are given up. */
const ENOUGH = 64;
const TASKS = 2 ** 14;

interface Mean {
  /** Tasks seen. The first one finds cold caches and loads code: its time does not count. */
  seen: number;
  /** Nanoseconds. */
  sum: number;
}

export class KernelTimes {
  /** Ends of tasks are to be told. */
  isOpen = false;
  private readonly backend: Backend;
  /** By name and number of flows of the class, kernel, and kind of device: the classes of a plan have other rows. */
  private readonly means: Map<string, Mean> = new Map();
  /** The classes of which times are taken. */
  private readonly timed: Set<TaskClassRow> = new Set();
  private left = 0;

  constructor(backend: Backend) {
    this.backend = backend;
  }

  /** Tasks of a class come next. */
  open(cls: TaskClassRow): void {
    let timed = 0;
    cls.kernels.forEach((kernel, s) => {
      if (kernel < 0) return;
      const key = keyOf(cls, kernel, s as SpaceId);
      const mean = this.means.get(key) ?? { seen: 0, sum: 0 };
      this.means.set(key, mean);
      if (mean.seen <= ENOUGH) timed |= deviceKind(s as SpaceId);
    });
    cls.timed = timed;
    if (timed !== 0) this.timed.add(cls);
    this.left = TASKS;
    this.isOpen = this.timed.size > 0;
  }

  /** A task of class `cls`, record `seq` of queue `q`, has ended well. */
  ended(cls: TaskClassRow, q: QueueId, seq: number): void {
    const { backend } = this;
    const { space } = backend.queues[q];
    const kind = deviceKind(space);
    if (((cls.timed ?? 0) & kind) !== 0) {
      const mean = this.means.get(keyOf(cls, cls.kernels[space], space)) as Mean;
      const took = backend.endOf(q, seq) - backend.startOf(q, seq);
      if (mean.seen <= ENOUGH && took >= 0 && mean.seen++ > 0) mean.sum += took;
      if (mean.seen > ENOUGH) this.forget(cls, kind);
    }
    if (--this.left > 0 && this.timed.size > 0) return;
    for (const other of this.timed) other.timed = 0;
    this.timed.clear();
    this.isOpen = false;
  }

  private forget(cls: TaskClassRow, kind: number): void {
    cls.timed = (cls.timed ?? 0) & ~kind;
    if (cls.timed === 0) this.timed.delete(cls);
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
  return `${deviceKind(space)} ${kernel} ${modes.length} ${name}`;
}
