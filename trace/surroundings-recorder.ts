// Records of what is not a task or a transfer: names, samples, events, clocks. Names and strings are written once each.
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
import type { TraceSink } from './sinks.js';
import { type TraceRecorderOptions, UnitWriter } from './unit-writer.js';

/** Longest string a record can hold, in UTF-8 bytes; longer ones are cut at a character. */
export const MAX_STRING_BYTES: number = 255 * UNIT - 8;

const encoder = new TextEncoder();

/** The part of a recorder that tells what surrounds the tasks. */
export class SurroundingsRecorder extends UnitWriter {
  /** When the run began, for tasks whose insertion was not timed. */
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
   * Names a task class. Must come before the first task of the class. With `namedByParameters` the parameters are what
   * tells its tasks apart, gemm(4, 3, 2); without, they are values to look up, and a datum it writes names a task.
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
   * @param bytes its size, @param home the rank that owns it
   */
  datum(
    id: number,
    bytes: number,
    home: number,
    name: string,
    i: number = NO_COORDINATE,
    j: number = NO_COORDINATE,
    k: number = NO_COORDINATE,
  ): void {
    const nameId = this.string(name);
    const p = this.unit(RecordKind.datum, id);
    this.u16[(p >>> 1) + 1] = home;
    this.f64[(p >>> 3) + 1] = bytes;
    const w = (p >>> 2) + 4;
    this.u32[w] = nameId;
    this.i32[w + 1] = i;
    this.i32[w + 2] = j;
    this.i32[w + 3] = k;
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

  /** Bytes of one memory space: in use, pinned, dirty, clean, and reserved for copies on their way. */
  memory(
    space: number,
    time: number,
    used: number,
    pinned: number,
    dirty: number,
    clean: number,
    arriving: number,
  ): void {
    this.#counter(CounterKind.memory, space, time, used, pinned, dirty, clean, arriving, 0);
  }

  /** Progress of the rank: lengths of queues now, and tasks inserted and retired since the start. */
  progress(
    time: number,
    ready: number,
    window: number,
    bytesInFlight: number,
    messagesInFlight: number,
    inserted: number,
    retired: number,
  ): void {
    this.#counter(
      CounterKind.progress,
      NO_INDEX,
      time,
      ready,
      window,
      bytesInFlight,
      messagesInFlight,
      inserted,
      retired,
    );
  }

  #counter(
    kind: number,
    space: number,
    time: number,
    a: number,
    b: number,
    c: number,
    d: number,
    e: number,
    f: number,
  ): void {
    const p = this.take(2);
    this.u32[p >>> 2] = RecordKind.counter | (2 << 8) | (kind << 16) | (space << 24);
    this.u32[(p >>> 2) + 1] = 0;
    const f64 = this.f64;
    const at = (p >>> 3) + 1;
    f64[at] = time;
    f64[at + 1] = a;
    f64[at + 2] = b;
    f64[at + 3] = c;
    f64[at + 4] = d;
    f64[at + 5] = e;
    f64[at + 6] = f;
  }

  /** Something that happened at one moment; `kind` is an `EventKind`. Give what applies. */
  event(
    kind: number,
    time: number,
    space: number = NO_INDEX,
    task: number = NONE,
    datum: number = NONE,
    bytes = 0,
    text?: string,
  ): void {
    if (kind === EventKind.runBegin) this.runBegin = time;
    const textId = text === undefined ? NONE : this.string(text);
    const p = this.unit(RecordKind.event, task);
    this.u8[p + 2] = kind;
    this.u8[p + 3] = space;
    this.f64[(p >>> 3) + 1] = time;
    this.f64[(p >>> 3) + 2] = bytes;
    this.u32[(p >>> 2) + 6] = datum;
    this.u32[(p >>> 2) + 7] = textId;
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
   * @param error half the round trip, in nanoseconds: the offset is right within this
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
