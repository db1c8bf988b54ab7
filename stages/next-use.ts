// When the copies on a device are needed next, as far as the program is known: tasks that were inserted and not issued, in
// program order. Looked for only when something has to leave a device that is full, so that other programs pay nothing.
//
// Invariant: what is known is from the current pass. A use that was issued since counts as one that is near; the copy
// is pinned in most cases, and whatever is answered decides how much is moved, never whether it is right.
import { NO_HOME } from '../devices/directory.js';
import type { Forecast } from '../devices/eviction.js';
import type { StageContext } from './context.js';
import { AccessMode, TaskStage } from './task-table.js';

/** Tasks looked at, at most: a look costs about ten microseconds, as long as moving half a megabyte. */
const SIGHT = 1024;

export class NextUse implements Forecast {
  private readonly x: StageContext;
  /** Per copy: which look saw it, times SIGHT, plus the place in it of the task that uses the copy first. */
  private seen: Float64Array = new Float64Array(0);
  private look = 0;
  private lookedAt = -1;

  constructor(x: StageContext) {
    this.x = x;
  }

  nextUse(d: number, s: number): number {
    if (this.x.now !== this.lookedAt) this.lookAhead();
    const seen = this.seen[d * this.x.directory.spaces + s];
    return seen >= this.look ? seen - this.look : Number.POSITIVE_INFINITY;
  }

  private lookAhead(): void {
    const { tasks, directory: dir, classes, now } = this.x;
    if (this.seen.length < dir.state.length) this.seen = new Float64Array(dir.state.length);
    this.lookedAt = now;
    this.look += SIGHT;
    let at = this.look;
    const end = at + SIGHT;
    for (let id = tasks.head; id !== tasks.next && at < end; id = (id + 1) | 0) {
      const row = id & tasks.mask;
      if (tasks.queue[row] >= 0 || tasks.stage[row] > TaskStage.exec) continue;
      const modes = classes[tasks.classOf[row]].modes;
      const s = this.deviceOf(row, modes);
      if (s <= 0) continue;
      const first = tasks.flowStart[row];
      for (let i = 0; i < modes.length; i++) {
        const c = tasks.flowDatum[first + i] * dir.spaces + s;
        if (this.seen[c] < this.look) this.seen[c] = at;
      }
      at++;
    }
  }

  /** Where a task will run, or -1 when that is open: as placement decides, by what it writes first. */
  private deviceOf(row: number, modes: readonly number[]): number {
    const { tasks, directory: dir } = this.x;
    if (tasks.device[row] >= 0) return tasks.device[row];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      const d = tasks.flowDatum[first + i];
      return dir.home[d] !== NO_HOME ? dir.home[d] : dir.owner(d);
    }
    return -1;
  }
}
