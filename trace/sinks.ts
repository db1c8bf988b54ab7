// Where finished chunks go. A sink never throws while recording: a full disk must not end the run. It remembers the
// first failure for `close`.
import { closeSync, fstatSync, openSync, write, writeSync } from 'node:fs';
import { TraceError } from './errors.js';

/** Takes the bytes of a trace in order. */
export interface TraceSink {
  /** Consumes or copies `bytes` before it returns; never throws. */
  write(bytes: Uint8Array): void;
  /**
   * Takes over a chunk of which the first `used` bytes are the next of the trace, and returns one of the same size to
   * go on with (or the same one, when it is done with it). Never throws. Sinks without it get `write`.
   */
  exchange?(chunk: Uint8Array, used: number): Uint8Array;
  /** Ends the trace. Throws `TraceError` with the first failure, if any. */
  close(): void;
}

// Chunks that may be on their way to the disk at once; beyond that the engine waits for the disk.
const CHUNKS_IN_FLIGHT = 8;

/**
 * Writes a file. Full chunks are written in the background, each at its place, so that a slow disk does not hold up
 * the engine; when too many are under way, or the target is not a regular file, they are written at once.
 */
export class FileSink implements TraceSink {
  readonly path: string;
  /** Bytes that could not be written. */
  lost = 0;
  #fd: number;
  #position = 0;
  #failure: unknown;
  #closed = false;
  #chunks = 0;
  readonly #seekable: boolean;
  readonly #free: Uint8Array[] = [];
  readonly #flying: Map<Uint8Array, { readonly used: number; readonly position: number }> =
    new Map();

  /** Creates or truncates the file; throws `TraceError` ERR_TRACE_WRITE when that is not possible. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#fd = openSync(path, 'w');
      this.#seekable = fstatSync(this.#fd).isFile();
    } catch (cause) {
      throw new TraceError(
        'ERR_TRACE_WRITE',
        `cannot create the trace file ${path}: ${reason(cause)}. Choose a writable path for --trace.`,
        path,
        cause,
      );
    }
  }

  write(bytes: Uint8Array): void {
    const position = this.#position;
    this.#position += bytes.length;
    this.#writeNow(bytes, position);
  }

  exchange(chunk: Uint8Array, used: number): Uint8Array {
    const next =
      this.#seekable && this.#failure === undefined ? this.#nextChunk(chunk.length) : undefined;
    if (next === undefined) {
      this.write(chunk.subarray(0, used));
      return chunk;
    }
    const position = this.#position;
    this.#position += used;
    this.#flying.set(chunk, { used, position });
    write(this.#fd, chunk, 0, used, position, (error, written) => {
      this.#landed(chunk, error, written);
    });
    return next;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // What is still under way is written once more, now: the same bytes at the same place. Only so is the file whole
    // when this returns. The descriptor must outlive the background writes.
    for (const [chunk, { used, position }] of this.#flying) {
      this.#writeNow(chunk.subarray(0, used), position);
    }
    this.#closeWhenIdle();
    if (this.#failure !== undefined) {
      throw new TraceError(
        'ERR_TRACE_WRITE',
        `the trace ${this.path} is incomplete: ${reason(this.#failure)}; ${this.lost} of ${this.#position} bytes ` +
          'were lost. The run itself is not affected; free disk space and run again.',
        this.path,
        this.#failure,
      );
    }
  }

  #nextChunk(length: number): Uint8Array | undefined {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    if (this.#chunks >= CHUNKS_IN_FLIGHT) return undefined;
    this.#chunks++;
    return new Uint8Array(length);
  }

  #landed(chunk: Uint8Array, error: Error | null, written: number): void {
    const flight = this.#flying.get(chunk);
    this.#flying.delete(chunk);
    this.#free.push(chunk);
    // After close the same bytes were written again, and any failure of that was reported.
    if (flight !== undefined && !this.#closed) {
      if (error !== null) this.#fail(error, flight.used);
      else if (written < flight.used) {
        this.#writeNow(chunk.subarray(written, flight.used), flight.position + written);
      }
    }
    this.#closeWhenIdle();
  }

  #writeNow(bytes: Uint8Array, position: number): void {
    // After a failure nothing more is written: a hole in the middle would make the rest unreadable.
    if (this.#failure !== undefined) {
      this.lost += bytes.length;
      return;
    }
    let done = 0;
    try {
      while (done < bytes.length) {
        const at = this.#seekable ? position + done : null;
        done += writeSync(this.#fd, bytes, done, bytes.length - done, at);
      }
    } catch (cause) {
      this.#fail(cause, bytes.length - done);
    }
  }

  #fail(cause: unknown, lost: number): void {
    this.#failure ??= cause;
    this.lost += lost;
  }

  #closeWhenIdle(): void {
    if (!this.#closed || this.#flying.size > 0 || this.#fd < 0) return;
    const fd = this.#fd;
    this.#fd = -1;
    try {
      closeSync(fd);
    } catch (cause) {
      this.#failure ??= cause;
    }
  }
}

/** Keeps the trace in memory: for tests, live views and the simulator. */
export class MemorySink implements TraceSink {
  readonly chunks: Uint8Array[] = [];
  /** Called with each chunk as it comes. */
  onChunk: ((bytes: Uint8Array) => void) | undefined;

  write(bytes: Uint8Array): void {
    const copy = bytes.slice();
    this.chunks.push(copy);
    this.onChunk?.(copy);
  }

  close(): void {}

  /** The whole trace so far as one array. */
  bytes(): Uint8Array {
    const whole = new Uint8Array(this.chunks.reduce((sum, chunk) => sum + chunk.length, 0));
    let at = 0;
    for (const chunk of this.chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }
}

function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
