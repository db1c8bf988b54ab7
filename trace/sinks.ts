// Where finished chunks go. A sink must be done with the bytes when `write` returns: the recorder reuses them.
// A sink never throws from `write`: a full disk must not end the run. It remembers the first failure for `close`.
import { closeSync, openSync, writeSync } from 'node:fs';
import { TraceError } from './errors.js';

/** Takes the bytes of a trace in order. */
export interface TraceSink {
  /** Consumes or copies `bytes` before it returns; never throws. */
  write(bytes: Uint8Array): void;
  /** Ends the trace. Throws `TraceError` with the first failure, if any. */
  close(): void;
}

/** Writes each chunk to a file at once. */
export class FileSink implements TraceSink {
  readonly path: string;
  /** Bytes that could not be written. */
  lost = 0;
  #fd: number;
  #written = 0;
  #failure: unknown;

  /** Creates or truncates the file; throws `TraceError` ERR_TRACE_WRITE when that is not possible. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#fd = openSync(path, 'w');
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
    // After a failure nothing more is written: a hole in the middle would make the rest unreadable.
    if (this.#failure !== undefined) {
      this.lost += bytes.length;
      return;
    }
    let done = 0;
    try {
      while (done < bytes.length) done += writeSync(this.#fd, bytes, done, bytes.length - done);
    } catch (cause) {
      this.#failure = cause;
      this.lost += bytes.length - done;
    }
    this.#written += done;
  }

  close(): void {
    if (this.#fd < 0) return;
    const fd = this.#fd;
    this.#fd = -1;
    try {
      closeSync(fd);
    } catch (cause) {
      this.#failure ??= cause;
    }
    if (this.#failure !== undefined) {
      throw new TraceError(
        'ERR_TRACE_WRITE',
        `the trace ${this.path} is incomplete: ${reason(this.#failure)}; ${this.#written} bytes were written ` +
          `and ${this.lost} lost. The run itself is not affected; free disk space and run again.`,
        this.path,
        this.#failure,
      );
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
