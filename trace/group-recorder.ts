// Records of tasks that have most in common: one class, one lane, and the times that the engine takes once for many. Of
// each task only its id, the times of its body, its data and its parameters are left, which whoever opened the group
// writes as words: a call per task would cost more than the record.
import { RecordKind, TaskGroup, type TraceHeader, UNIT } from './format.js';
import type { TraceSink } from './sinks.js';
import { SurroundingsRecorder } from './surroundings-recorder.js';
import type { TraceRecorderOptions } from './unit-writer.js';

/** Times between `inserted` and the others fit 32 bits of nanoseconds below this. */
export const SHORT_LIFE = 0xfffffffe;

/** Data of a task that a group has room for. */
export const MOST_DATA = 6;
/** Parameters of a task that a group has room for. */
export const MOST_PARAMETERS = 6;

/** The part of a recorder that records tasks in groups. Between `openGroup` and `closeGroup` nothing else is recorded. */
export class GroupRecorder extends SurroundingsRecorder {
  /** No time of a run is earlier than this. */
  readonly origin: number;
  #groupAt = 0;

  constructor(sink: TraceSink, header: TraceHeader, options: TraceRecorderOptions = {}) {
    super(sink, header, options);
    this.origin = header.clockOrigin;
  }

  /** The chunk in which the open group lies, as words: of use until the group is closed. */
  get words(): Uint32Array {
    return this.u32;
  }

  /** How many tasks of a kind one group can hold: see `openGroup`. */
  roomForGroup(isReleased: boolean, data: number, parameters: number): number {
    const words = (255 * UNIT - TaskGroup.tasks) >> 2;
    return Math.min(TaskGroup.most, Math.floor(words / wordsOf(isReleased, data, parameters)));
  }

  /**
   * Begins a record of at most `room` retired tasks that passed alloc, stage-in and comm-in when they were ready, and
   * stage-out when they were finalized. Times are nanoseconds, in the order of the arguments, and the last less than
   * `SHORT_LIFE` after the first; a body that began before `issued` counts as issued when it began.
   *
   * @param flags `TaskFlag` bits and the number of completed stages
   * @param modes an `AccessMode` for each datum of a task, `MOST_DATA` at most
   * @param parameters how many parameters each task has, `MOST_PARAMETERS` at most
   * @param isReleased there is a word for the predecessor that released the task last
   * @returns index in `words` of what is told of the first task, one task after the other: id, the predecessor, begin
   * and end of the body in whole nanoseconds from `inserted` rounded down, data, parameters
   */
  openGroup(
    taskClass: number,
    device: number,
    lane: number,
    flags: number,
    modes: readonly number[],
    parameters: number,
    isReleased: boolean,
    inserted: number,
    ready: number,
    issued: number,
    finalized: number,
    room: number,
  ): number {
    const words = room * wordsOf(isReleased, modes.length, parameters);
    const p = this.take(Math.ceil((TaskGroup.tasks + 4 * words) / UNIT));
    const base = Math.floor(inserted);
    const u32 = this.u32;
    const w = p >>> 2;
    let accesses = modes.length << 12;
    for (let i = 0; i < modes.length; i++) accesses |= modes[i] << (2 * i);
    const layout = parameters | (isReleased ? TaskGroup.released : 0);
    u32[w] = RecordKind.taskGroup | (taskClass << 16);
    u32[w + 1] = device | (lane << 8) | (flags << 16);
    u32[w + 2] = (layout << 8) | (accesses << 16);
    u32[w + 3] = ready - base;
    this.f64[(p >>> 3) + 2] = base;
    u32[w + 6] = issued - base;
    u32[w + 7] = finalized - base;
    this.#groupAt = p;
    return (p + TaskGroup.tasks) >>> 2;
  }

  /** Ends the group after `count` tasks, one at least, whose last word lies before `end`. */
  closeGroup(count: number, end: number): void {
    const p = this.#groupAt;
    const units = Math.ceil((4 * end - p) / UNIT);
    this.at = p + units * UNIT;
    for (let w = end; w < this.at >>> 2; w++) this.u32[w] = 0;
    this.u8[p + 1] = units;
    this.u8[p + 8] = count;
    this.tasks += count;
  }
}

function wordsOf(isReleased: boolean, data: number, parameters: number): number {
  return 3 + (isReleased ? 1 : 0) + data + parameters;
}
