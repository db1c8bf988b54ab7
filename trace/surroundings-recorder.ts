// Records of everything except tasks and transfers: names, samples, events, clocks. Names and strings are written once each.
import {
  CounterKind,
  EventKind,
  NO_COORDINATE,
  NO_INDEX,
  NONE,
  RecordKind,
  type TraceHeader,
  UNIT,
} from './format.js';
import type {
  EventDetails,
  MemorySample,
  PlayedIterations,
  ProgressSample,
} from './recorder-input.js';
import type { TraceSink } from './sinks.js';
import { type TraceRecorderOptions, UnitWriter } from './unit-writer.js';

/** Longest string of a record, in UTF-8 bytes; longer ones are cut at a character. */
export const MAX_STRING_BYTES: number = 255 * UNIT - 8;

const encoder = new TextEncoder();

/** The part of a recorder that records the surroundings of the tasks. */
export class SurroundingsRecorder extends UnitWriter {
  /** The begin of the run, for tasks without a time of insertion. */
  protected runBegin: number;
  readonly #strings: Map<string, number> = new Map();
  readonly #counterInterval: number;
  #nextCounter = Number.NEGATIVE_INFINITY;

  constructor(sink: TraceSink, header: TraceHeader, options: TraceRecorderOptions = {}) {
    super(sink, header, options.chunkBytes);
    this.#counterInterval = options.counterInterval ?? 100_000;
    this.runBegin = header.clockOrigin;
  }

  /** Number of a text; written to the trace the first time. */
  string(text: string): number {
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    const id = this.#strings.size;
    this.#strings.set(text, id);
    let bytes = encoder.encode(text);
    if (bytes.length > MAX_STRING_BYTES) {
      let cut = MAX_STRING_BYTES;
      while ((bytes[cut] & 0xc0) === 0x80) cut--;
      bytes = bytes.subarray(0, cut);
    }
    const units = Math.ceil((8 + bytes.length) / UNIT);
    const p = this.take(units);
    this.u8.fill(0, p, this.at);
    this.u32[p >>> 2] = RecordKind.string | (units << 8) | (bytes.length << 16);
    this.u32[(p >>> 2) + 1] = id;
    this.u8.set(bytes, p + 8);
    return id;
  }

  /**
   * Names a task class. Must come before the first task of the class. With `namedByParameters` the parameters
   * tell its tasks apart, gemm(4, 3, 2); without, they are values to look up, and a written datum names a task.
   */
  taskClass(
    id: number,
    name: string,
    parameterNames: readonly string[] = [],
    namedByParameters = true,
  ): void {
    const nameId = this.string(name);
    const parameters = parameterNames.length === 0 ? NONE : this.string(parameterNames.join(','));
    const p = this.unit(RecordKind.taskClass, nameId);
    this.u16[(p >>> 1) + 1] = id;
    this.u32[(p >>> 2) + 2] = parameters;
    this.u32[(p >>> 2) + 3] = namedByParameters ? 0 : 1;
  }

  /**
   * Names a datum: `name` alone or an element of a collection, name(i, j, k).
   * @param bytes its size
   * @param home the rank that owns it
   * @param coordinates none, or up to three
   */
  datum(
    id: number,
    bytes: number,
    home: number,
    name: string,
    coordinates: readonly number[] = [],
  ): void {
    const nameId = this.string(name);
    const p = this.unit(RecordKind.datum, id);
    this.u16[(p >>> 1) + 1] = home;
    this.f64[(p >>> 3) + 1] = bytes;
    const w = (p >>> 2) + 4;
    this.u32[w] = nameId;
    for (let n = 0; n < 3; n++) this.i32[w + 1 + n] = coordinates[n] ?? NO_COORDINATE;
  }

  /**
   * True when the next round of counter samples is due; the caller then calls `memory` for each space and
   * `progress` once. Keeps samples at most one per `counterInterval`.
   */
  counterDue(time: number): boolean {
    if (time < this.#nextCounter) return false;
    this.#nextCounter = time + this.#counterInterval;
    return true;
  }

  /** The bytes of one memory space now. */
  memory(sample: MemorySample): void {
    const at = this.#counter(CounterKind.memory, sample.space, sample.time);
    const f64 = this.f64;
    f64[at] = sample.used;
    f64[at + 1] = sample.pinned;
    f64[at + 2] = sample.dirty;
    f64[at + 3] = sample.clean;
    f64[at + 4] = sample.arriving;
    f64[at + 5] = 0;
  }

  /** The progress of the rank now. */
  progress(sample: ProgressSample): void {
    const at = this.#counter(CounterKind.progress, NO_INDEX, sample.time);
    const f64 = this.f64;
    f64[at] = sample.ready;
    f64[at + 1] = sample.window;
    f64[at + 2] = sample.bytesInFlight;
    f64[at + 3] = sample.messagesInFlight;
    f64[at + 4] = sample.inserted;
    f64[at + 5] = sample.retired;
  }

  /** Begins a sample; returns the place of its six values among the float64. */
  #counter(kind: number, space: number, time: number): number {
    const p = this.take(2);
    this.u32[p >>> 2] = RecordKind.counter | (2 << 8) | (kind << 16) | (space << 24);
    this.u32[(p >>> 2) + 1] = 0;
    const at = (p >>> 3) + 1;
    this.f64[at] = time;
    return at + 1;
  }

  /** An event at one moment; `kind` is an `EventKind`. */
  event(kind: number, time: number, details: EventDetails = {}): void {
    if (kind === EventKind.runBegin) this.runBegin = time;
    const { space = NO_INDEX, task = NONE, datum = NONE, bytes = 0, text } = details;
    const textId = text === undefined ? NONE : this.string(text);
    const p = this.unit(RecordKind.event, task);
    this.u8[p + 2] = kind;
    this.u8[p + 3] = space;
    this.f64[(p >>> 3) + 1] = time;
    this.f64[(p >>> 3) + 2] = bytes;
    this.u32[(p >>> 2) + 6] = datum;
    this.u32[(p >>> 2) + 7] = textId;
  }

  /** Iterations of a plan that were played; before the records of their tasks. */
  play(play: PlayedIterations): void {
    const name = this.string(play.plan);
    const p = this.unit(RecordKind.play, play.first);
    const w = (p >>> 2) + 2;
    this.u32[w] = play.iterations;
    this.u32[w + 1] = play.tasks;
    this.f64[(p >>> 3) + 2] = play.iteration;
    this.u32[w + 4] = play.before;
    this.u32[w + 5] = name;
  }

  /**
   * A thread wanted to run from `from` to `to` and had no core.
   * @param lane the lane it serves, any lane of a GPU for the GPU's thread, `NO_INDEX` for the engine's thread
   */
  stolen(lane: number, from: number, to: number): void {
    const p = this.unit(RecordKind.stolen, 0);
    this.u8[p + 2] = lane;
    this.f64[(p >>> 3) + 1] = from;
    this.f64[(p >>> 3) + 2] = to;
  }

  /**
   * One measurement of this rank's clock against another's.
   * @param offset nanoseconds to add to this rank's time to get the peer's
   * @param error half the round trip, in nanoseconds, which bounds the error of the offset
   */
  clock(peer: number, time: number, offset: number, error: number): void {
    const p = this.unit(RecordKind.clock, 0);
    this.u16[(p >>> 1) + 1] = peer;
    const d = (p >>> 3) + 1;
    this.f64[d] = time;
    this.f64[d + 1] = offset;
    this.f64[d + 2] = error;
  }
}
