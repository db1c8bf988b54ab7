// When the commands of a plan would begin on given queues: arithmetic over the bytes that they use. Iterations may follow each other.
//
// A queue works in order. A command begins when its queue is free and what it follows is over; it takes longer by TURN, and by the time
// of the bytes, for each value that another queue has written: the queue has to wait, and the value is in another cache. Both are small
// beside tasks that are worth dealing out. They decide between ways that are as good otherwise.
import type { PlannedParts } from './chains.js';
import type { ControlEdges } from './waits.js';

/** Nanoseconds of a wait for another queue. */
const TURN = 100;
/** Bytes per nanosecond between the caches of two workers. */
const RATE = 20;
const NOBODY = -1;
const NONE: readonly number[] = [];

export class Timeline {
  /** Time at which each queue has done all so far, in nanoseconds. */
  readonly free: Float64Array;
  private readonly parts: PlannedParts;
  private readonly control: ControlEdges;
  /** Nanoseconds of each command. */
  private readonly takes: Float64Array;
  /** Per segment: the end of the last writer, and of the readers since then; and their queues. */
  private readonly writerEnd: Float64Array;
  private readonly writer: Int16Array;
  private readonly readersEnd: Float64Array;
  /** By insertion, if some follow others that share no data. */
  private readonly ends: Float64Array;

  constructor(parts: PlannedParts, control: ControlEdges, takes: Float64Array, queues: number) {
    this.parts = parts;
    this.control = control;
    this.takes = takes;
    const { segments } = parts.ranges;
    this.free = new Float64Array(queues);
    this.writerEnd = new Float64Array(segments);
    this.writer = new Int16Array(segments).fill(NOBODY);
    this.readersEnd = new Float64Array(segments);
    this.ends = new Float64Array(control.size > 0 ? takes.length : 0);
  }

  /** The time at which all that command `c` follows is over. */
  ready(c: number): number {
    const { writerEnd, readersEnd, control } = this;
    const { accesses, ranges, commands } = this.parts;
    const { firstSegment, lastSegment } = ranges;
    let at = 0;
    for (let i = accesses.first[c]; i < accesses.first[c + 1]; i++) {
      const r = accesses.of[i] >> 1;
      const writes = (accesses.of[i] & 1) === 1;
      for (let s = firstSegment[r]; s <= lastSegment[r]; s++) {
        if (writerEnd[s] > at) at = writerEnd[s];
        if (writes && readersEnd[s] > at) at = readersEnd[s];
      }
    }
    if (control.size > 0)
      for (const before of control.get(commands.insertion[c]) ?? NONE)
        at = Math.max(at, this.ends[before]);
    return at;
  }

  /** Nanoseconds that command `c` takes longer on queue `q`, because others have written what it uses. */
  away(c: number, q: number): number {
    const { writer } = this;
    const { accesses, ranges } = this.parts;
    let more = 0;
    for (let i = accesses.first[c]; i < accesses.first[c + 1]; i++) {
      const r = accesses.of[i] >> 1;
      const by = writer[ranges.firstSegment[r]];
      if (by !== q && by !== NOBODY) more += TURN + ranges.bytes[r] / RATE;
    }
    return more;
  }

  /** Puts command `c` on queue `q`, not before `from`. Returns the time of its end. */
  put(c: number, q: number, from: number): number {
    const begin = Math.max(from, this.free[q]);
    const end = begin + this.takes[c] + this.away(c, q);
    this.free[q] = end;
    this.register(c, q, end);
    return end;
  }

  /** Command `c` of queue `q` ends then. */
  register(c: number, q: number, end: number): void {
    const { writerEnd, writer, readersEnd } = this;
    const { accesses, ranges, commands } = this.parts;
    const { firstSegment, lastSegment } = ranges;
    for (let i = accesses.first[c]; i < accesses.first[c + 1]; i++) {
      const r = accesses.of[i] >> 1;
      const writes = (accesses.of[i] & 1) === 1;
      for (let s = firstSegment[r]; s <= lastSegment[r]; s++) {
        if (writes) {
          writerEnd[s] = end;
          writer[s] = q;
          readersEnd[s] = 0;
        } else if (readersEnd[s] < end) readersEnd[s] = end;
      }
    }
    if (this.control.size > 0) this.ends[commands.insertion[c]] = end;
  }
}
