// Fills chunks with records and hands full ones to a sink. A record never straddles two chunks.
import { encodeHeader, RecordKind, type TraceHeader, UNIT } from './format.js';
import type { TraceSink } from './sinks.js';

/** Options of a recorder. */
export interface TraceRecorderOptions {
  /** Bytes per chunk, a multiple of 64 (default 1 MiB). The sink sees a trace in pieces of at most this size. */
  readonly chunkBytes?: number;
  /** Least time between two rounds of counter samples in nanoseconds (default 100 000). */
  readonly counterInterval?: number;
}

/** The chunk being filled. Subclasses add the kinds of records; only they write to its arrays. */
export class UnitWriter {
  /** Records written so far. */
  tasks = 0;
  transfers = 0;

  /** The chunk as numbers of every size. */
  protected u8: Uint8Array;
  protected u16: Uint16Array;
  protected u32: Uint32Array;
  protected i32: Int32Array;
  protected f64: Float64Array;
  /** Byte at which the next record begins, and the end of the chunk. */
  protected at = 0;
  protected readonly limit: number;

  readonly #sink: TraceSink;
  // Units handed to the sink.
  #units = 0;
  #finished = false;

  constructor(sink: TraceSink, header: TraceHeader, chunkBytes: number = 1 << 17) {
    const bytes = Math.max(16 * 1024, chunkBytes) & ~63;
    const chunk = new ArrayBuffer(bytes);
    this.#sink = sink;
    this.limit = bytes;
    this.u8 = new Uint8Array(chunk);
    this.u16 = new Uint16Array(chunk);
    this.u32 = new Uint32Array(chunk);
    this.i32 = new Int32Array(chunk);
    this.f64 = new Float64Array(chunk);
    sink.write(encodeHeader(header));
  }

  /** Hands the records so far to the sink. */
  flush(): void {
    if (this.at === 0) return;
    this.#units += this.at / UNIT;
    if (this.#sink.exchange) this.#goOnWith(this.#sink.exchange(this.u8, this.at));
    else this.#sink.write(this.u8.subarray(0, this.at));
    this.at = 0;
  }

  /**
   * Ends the trace and closes the sink. Further records are an error of the caller. Idempotent.
   * Throws `TraceError` ERR_TRACE_WRITE when the sink could not keep everything; the run itself is not affected.
   */
  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    const p = this.unit(RecordKind.end, 0);
    const d = (p >>> 3) + 1;
    this.f64[d] = this.tasks;
    this.f64[d + 1] = this.transfers;
    this.f64[d + 2] = this.#units + this.at / UNIT;
    // Not through `exchange`: a short trace needs no thread to write it.
    this.#sink.write(this.u8.subarray(0, this.at));
    this.at = 0;
    this.#sink.close();
  }

  /** Takes a record of `units`, with its old content, and returns its byte offset. The arrays may change. */
  protected take(units: number): number {
    let p = this.at;
    if (p + units * UNIT > this.limit) {
      this.flush();
      p = 0;
    }
    this.at = p + units * UNIT;
    return p;
  }

  /** Takes a one-unit record, cleared, and returns its byte offset. */
  protected unit(kind: number, word1: number): number {
    const p = this.take(1);
    const w = p >>> 2;
    this.u32[w] = kind | (1 << 8);
    this.u32[w + 1] = word1;
    const d = (p >>> 3) + 1;
    this.f64[d] = 0;
    this.f64[d + 1] = 0;
    this.f64[d + 2] = 0;
    return p;
  }

  #goOnWith(chunk: Uint8Array): void {
    if (chunk === this.u8) return;
    const { buffer, byteOffset, byteLength } = chunk;
    this.u8 = chunk;
    this.u16 = new Uint16Array(buffer, byteOffset, byteLength / 2);
    this.u32 = new Uint32Array(buffer, byteOffset, byteLength / 4);
    this.i32 = new Int32Array(buffer, byteOffset, byteLength / 4);
    this.f64 = new Float64Array(buffer, byteOffset, byteLength / 8);
  }
}
