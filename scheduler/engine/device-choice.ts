// The choice of the device for a task.
//
// Rule: the user's device comes first. Otherwise the task runs on the device that the user advised for its first written
// datum, or on the device that owns this datum now; otherwise on the device with most of its input bytes; otherwise on
// the least loaded device. A device whose memory can never hold the task's data is no candidate. The choice changes
// nothing: the dispatcher keeps `load`.
import { FIRST_GPU, HOST, NO_SPACE, type SpaceId } from '../../devices/handles.js';
import type { Directory } from '../../devices/memory/directory.js';
import { homeOfWritten } from '../../stages/home.js';
import { AccessMode, type TaskClassRow, type TaskTable } from '../../stages/task-table.js';

export class DeviceChoice {
  private readonly tasks: TaskTable;
  private readonly directory: Directory;
  /** Largest task each space can hold, in bytes. */
  private readonly capacity: Float64Array;
  /** Tasks placed on each space and not yet retired. */
  readonly load: Int32Array;

  /** `capacity`: bytes that the largest task may touch, per space. */
  constructor(tasks: TaskTable, directory: Directory, capacity: Float64Array) {
    this.tasks = tasks;
    this.directory = directory;
    this.capacity = capacity;
    this.load = new Int32Array(capacity.length);
  }

  /** The space on which the task in `row` should run. */
  device(row: number, cls: TaskClassRow, bytes: number): SpaceId {
    const { tasks, directory: dir } = this;
    const hint = tasks.device[row];
    if (hint >= 0) return hint;
    const spaces = dir.spaces;
    if (spaces === 1) return HOST;
    const first = tasks.flowStart[row];
    if (cls.beside !== undefined) return this.beside(first, cls, cls.beside, bytes);
    const modes = cls.modes;
    let gpus = 0;
    for (let s = FIRST_GPU; s < spaces; s++) if (this.canRun(cls, s, bytes)) gpus++;
    if (gpus === 0) return HOST;
    const home = homeOfWritten(dir, modes, tasks.flowDatum, first);
    if (home > 0 && this.canRun(cls, home, bytes)) return home;
    let best: SpaceId = NO_SPACE;
    let bestBytes = 0;
    for (let s = FIRST_GPU; s < spaces; s++) {
      if (!this.canRun(cls, s, bytes)) continue;
      let there = 0;
      for (let i = 0; i < modes.length; i++) {
        const d = tasks.flowDatum[first + i];
        if (modes[i] !== AccessMode.write && (dir.validMask[d] >> s) & 1) there += dir.bytes[d];
      }
      if (
        best < 0 ||
        there > bestBytes ||
        (there === bestBytes && this.load[s] < this.load[best])
      ) {
        best = s;
        bestBytes = there;
      }
    }
    return best;
  }

  /** The space of the first of these data that is anywhere. */
  private beside(
    first: number,
    cls: TaskClassRow,
    flows: readonly number[],
    bytes: number,
  ): SpaceId {
    const { tasks, directory: dir } = this;
    for (const i of flows) {
      const owner = dir.owner(tasks.flowDatum[first + i]);
      if (owner >= 0) return this.canRun(cls, owner, bytes) ? owner : HOST;
    }
    return HOST;
  }

  /** Whether a class has a body for space `s` and the space could ever hold `bytes`. */
  canRun(cls: TaskClassRow, s: SpaceId, bytes: number): boolean {
    return (
      (cls.kernels[s] >= 0 || (s === 0 && cls.body !== undefined)) && bytes <= this.capacity[s]
    );
  }
}
