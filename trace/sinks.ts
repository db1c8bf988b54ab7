// The targets of finished chunks. A sink never throws while recording: a full disk must not end the run. It remembers the
// first failure for `close`.
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import { BackgroundWriter } from './background-writer.js';
import { TraceError } from './errors.js';
import { describeThrown } from './thrown.js';

/** Takes the bytes of a trace in order. */
export interface TraceSink {
  /** Consumes or copies `bytes` before it returns; never throws. */
  write(bytes: Uint8Array): void;
  /**
   * Takes over a chunk whose first `used` bytes are the next of the trace, and returns one of the same size to
   * continue with (or the same one, if it has finished with it). Never throws. Sinks without it get `write`.
   */
  exchange?(chunk: Uint8Array, used: number): Uint8Array;
  /** Ends the trace. Throws `TraceError` with the first failure, if any. */
  close(): void;
}

/**
 * Writes a file. A thread of its own writes full chunks, each at its place, so that neither a slow disk nor
 * the writing itself holds up the engine. If the target is not a regular file, chunks are written at once.
 */
export class FileSink implements TraceSink {
  readonly path: string;
  /** Bytes that could not be written; final after `close`. */
  lost = 0;
  /** Bytes written on the calling thread: the header, the last chunk, and all when nothing else can write them. */
  writtenHere = 0;
  readonly #fd: number;
  readonly #seekable: boolean;
  #position = 0;
  #failure: unknown;
  #closed = false;
  /** Started with the first full chunk: short traces need no thread. */
  #writer: BackgroundWriter | undefined;
  #mayStart: boolean;

  /**
   * Creates or truncates the file; throws `TraceError` ERR_TRACE_WRITE when that is not possible. Without `inBackground` the
   * calling thread writes every chunk.
   */
  constructor(path: string, inBackground = true) {
    this.path = path;
    try {
      this.#fd = openSync(path, 'w');
      this.#seekable = fstatSync(this.#fd).isFile();
      this.#mayStart = inBackground && this.#seekable;
    } catch (cause) {
      throw new TraceError(
        'ERR_TRACE_WRITE',
        `cannot create the trace file ${path}: ${describeThrown(cause)}. Choose a writable path for --trace.`,
        path,
        cause,
      );
    }
  }

  write(bytes: Uint8Array): void {
    const position = this.#position;
    this.#position += bytes.length;
    // In order, so that a failure leaves no hole before it.
    this.#writer?.drain();
    this.#failure ??= this.#writer?.failure;
    this.#writeNow(bytes, position);
  }

  exchange(chunk: Uint8Array, used: number): Uint8Array {
    if (this.#mayStart) this.#start(chunk.length);
    const writer = this.#writer;
    this.#failure ??= writer?.failure;
    const shared = this.#failure === undefined ? writer?.adopt(chunk, used) : undefined;
    if (writer === undefined || shared === undefined) {
      this.write(chunk.subarray(0, used));
      return chunk;
    }
    writer.hand(shared, used, this.#position);
    this.#position += used;
    return writer.take() ?? new Uint8Array(chunk.length);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#writer === undefined) this.#closeFile();
    else {
      this.#writer.finish(() => this.#closeFile());
      this.#failure ??= this.#writer.failure;
      this.lost += this.#writer.lost;
    }
    if (this.#failure !== undefined) {
      throw new TraceError(
        'ERR_TRACE_WRITE',
        `the trace ${this.path} is incomplete: ${describeThrown(this.#failure)}; ${this.lost} of ${this.#position} bytes ` +
          'were lost. The run itself is not affected; free disk space and run again.',
        this.path,
        this.#failure,
      );
    }
  }

  #start(chunkBytes: number): void {
    this.#mayStart = false;
    try {
      this.#writer = new BackgroundWriter(this.#fd, chunkBytes, (bytes, position) =>
        this.#writeNow(bytes, position),
      );
    } catch {
      // The system has no thread or no memory left: chunks are written at once.
    }
  }

  #writeNow(bytes: Uint8Array, position: number): void {
    // After a failure nothing more is written: a hole in the middle would make the rest unreadable.
    let done = 0;
    try {
      while (done < bytes.length && this.#failure === undefined) {
        const at = this.#seekable ? position + done : null;
        done += writeSync(this.#fd, bytes, done, bytes.length - done, at);
      }
    } catch (cause) {
      this.#failure = cause;
    }
    this.writtenHere += done;
    this.lost += bytes.length - done;
  }

  #closeFile(): void {
    try {
      closeSync(this.#fd);
    } catch (cause) {
      this.#failure ??= cause;
    }
  }
}

/** Keeps the trace in memory: for tests, live views and the simulator. */
export class MemorySink implements TraceSink {
  readonly chunks: Uint8Array[] = [];
  /** Called with each chunk as it arrives. */
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
