// The look ahead: the next use of every copy on a device, as far as the program is known: the tasks that were inserted and
// not issued, in program order. A stage looks before copies leave a full device. Eviction reads the result
// (devices/memory/eviction.ts). Programs whose data fit the devices pay nothing.
//
// Invariant: the knowledge is from the current pass. A use that was issued since counts as a near one, and its copy
// is pinned in most cases. A wrong answer changes the number of bytes that move, never the correctness.
import type { SpaceId, TaskId } from '../devices/handles.js';
import { type Forecast, makeRoom, NextUses } from '../devices/memory/eviction.js';
import type { MemorySpace } from '../devices/memory/space.js';
import type { StageContext } from './context.js';
import { homeOfWritten } from './home.js';
import { isCommand, TaskStage } from './task-table.js';

/** Limit of tasks per look: a look costs about ten microseconds, as long as moving half a megabyte. */
const SIGHT = 1024;

/** A forecast that is brought up to date before copies leave. */
export interface Outlook extends Forecast {
  look(): void;
}

/** The uses that a look finds, and the time of the last one. */
export class LookAhead {
  readonly uses: NextUses;
  private readonly x: StageContext;
  private lookedAt = -1;
  private whole: Outlook | undefined;

  constructor(x: StageContext) {
    this.x = x;
    this.uses = new NextUses(x.directory.spaces, SIGHT);
  }

  /** From now on `whole` says the next uses; undefined: the look ahead does again. */
  know(whole: Outlook | undefined): void {
    this.whole = whole;
    this.x.counters.forecast = whole ?? this.uses;
  }

  /** Looks, at most once a pass. */
  look(): void {
    const { x, uses, whole } = this;
    if (whole !== undefined) {
      whole.look();
      return;
    }
    if (x.now === this.lookedAt) return;
    this.lookedAt = x.now;
    const { tasks, directory, classes } = x;
    uses.begin(directory.bytes.length);
    let at = 0;
    for (let id = tasks.head; id !== tasks.next && at < SIGHT; id = ((id + 1) | 0) as TaskId) {
      const row = id & tasks.mask;
      if (isCommand(tasks.execution[row]) || tasks.stage[row] > TaskStage.exec) continue;
      const modes = classes[tasks.classOf[row]].modes;
      const s = this.deviceOf(row, modes);
      if (s <= 0) continue;
      const first = tasks.flowStart[row];
      for (let i = 0; i < modes.length; i++) uses.add(tasks.flowDatum[first + i], s, at);
      at++;
    }
  }

  /** The device of a task, or -1 when it is open. */
  private deviceOf(row: number, modes: readonly number[]): SpaceId {
    const { tasks, directory } = this.x;
    if (tasks.device[row] >= 0) return tasks.device[row];
    return homeOfWritten(directory, modes, tasks.flowDatum, tasks.flowStart[row]);
  }
}

/** Offset of a block of `bytes` in `space`, or -1: clean copies leave as needed, the one needed last first. */
export function roomFor(x: StageContext, space: MemorySpace, bytes: number): number {
  const offset = space.zone.allocate(bytes);
  if (offset >= 0) return offset;
  // Values rest on the host, and eviction there asks for no next use.
  if (space.index > 0) x.ahead.look();
  return makeRoom(space, x.counters, bytes);
}
