// Records of tasks that share most fields: one class, one lane, and the times that the engine takes once for many. A task
// in a group has only its id, the times of its body, its data and its parameters. The caller that opened the group
// writes these as words: a call per task would cost more than the record.
import { RecordKind, TaskGroup, type TraceHeader, UNIT } from './format.js';
import type { GroupHead } from './recorder-input.js';
import type { TraceSink } from './sinks.js';
import { SurroundingsRecorder } from './surroundings-recorder.js';
import type { TraceRecorderOptions } from './unit-writer.js';

/** Times between `inserted` and the others fit 32 bits of nanoseconds below this. */
export const SHORT_LIFE = 0xfffffffe;

/** Limit of data of a task in a group. */
export const MOST_DATA = 6;
/** Limit of parameters of a task in a group. */
export const MOST_PARAMETERS = 6;

/** The part of a recorder that records tasks in groups. Between `openGroup` and `closeGroup` no other record is written. */
export class GroupRecorder extends SurroundingsRecorder {
  /** No time of a run is earlier than this. */
  readonly origin: number;
  #groupAt = 0;

  constructor(sink: TraceSink, header: TraceHeader, options: TraceRecorderOptions = {}) {
    super(sink, header, options);
    this.origin = header.clockOrigin;
  }

  /** The chunk of the open group, as words: valid until the group is closed. */
  get words(): Uint32Array {
    return this.u32;
  }

  /** Limit of tasks of a kind in one group: see `openGroup`. */
  roomForGroup(isReleased: boolean, data: number, parameters: number): number {
    const words = (255 * UNIT - TaskGroup.tasks) >> 2;
    return Math.min(TaskGroup.most, Math.floor(words / wordsOf(isReleased, data, parameters)));
  }

  /**
   * Begins a record of at most `room` retired tasks that passed alloc, stage-in and comm-in when they were ready, and
   * stage-out when they were finalized.
   *
   * @returns index in `words` of the first task's words, one task after the other: id, the predecessor, begin
   * and end of the body in whole nanoseconds from `inserted` rounded down, data, parameters
   */
  openGroup(head: GroupHead, room: number): number {
    const { modes, parameters, isReleased } = head;
    const words = room * wordsOf(isReleased, modes.length, parameters);
    const p = this.take(Math.ceil((TaskGroup.tasks + 4 * words) / UNIT));
    const base = Math.floor(head.inserted);
    const u32 = this.u32;
    const w = p >>> 2;
    let accesses = modes.length << 12;
    for (let i = 0; i < modes.length; i++) accesses |= modes[i] << (2 * i);
    const layout = parameters | (isReleased ? TaskGroup.released : 0);
    u32[w] = RecordKind.taskGroup | (head.taskClass << 16);
    u32[w + 1] = head.device | (head.lane << 8) | (head.flags << 16);
    u32[w + 2] = (layout << 8) | (accesses << 16);
    u32[w + 3] = head.ready - base;
    this.f64[(p >>> 3) + 2] = base;
    u32[w + 6] = head.issued - base;
    u32[w + 7] = head.finalized - base;
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
