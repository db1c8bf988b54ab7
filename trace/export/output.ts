// The output of exports: bytes or text, buffered in one chunk, so that a file of any size is written in bounded memory.
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import { TraceError } from '../errors.js';
import { describeThrown } from '../thrown.js';

/** Takes the bytes of an export in order; it has finished with them when `write` returns. */
export type ByteConsumer = (bytes: Uint8Array) => void;

const encoder = new TextEncoder();

/** A buffered stream of bytes and text. */
export class Output {
  readonly #consume: ByteConsumer;
  readonly #chunk: Uint8Array;
  #used = 0;
  /** Bytes so far, those still buffered included. */
  bytes = 0;

  constructor(consume: ByteConsumer, chunkBytes: number = 1 << 20) {
    this.#consume = consume;
    this.#chunk = new Uint8Array(chunkBytes);
  }

  /** Appends text as UTF-8. */
  text(text: string): void {
    // A UTF-16 unit is at most three bytes of UTF-8.
    if (text.length * 3 > this.#chunk.length) {
      this.raw(encoder.encode(text));
      return;
    }
    if (this.#used + text.length * 3 > this.#chunk.length) this.flush();
    const { written } = encoder.encodeInto(text, this.#chunk.subarray(this.#used));
    this.#used += written;
    this.bytes += written;
  }

  /** Appends bytes; the caller may reuse them afterwards. */
  raw(bytes: Uint8Array): void {
    this.bytes += bytes.length;
    if (this.#used + bytes.length > this.#chunk.length) this.flush();
    if (bytes.length > this.#chunk.length) {
      this.#consume(bytes);
      return;
    }
    this.#chunk.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  /** Hands the buffered bytes to the consumer. */
  flush(): void {
    if (this.#used === 0) return;
    this.#consume(this.#chunk.subarray(0, this.#used));
    this.#used = 0;
  }
}

/**
 * Runs an export into a file; `-` is standard output. Returns the bytes written.
 * `onUnfinished` gets true when a file is begun, and false when it is complete.
 * Throws `TraceError` ERR_TRACE_WRITE when the file cannot be created or written.
 */
export function writeTo(
  path: string,
  produce: (output: Output) => void,
  onUnfinished?: (path: string, unfinished: boolean) => void,
): number {
  let fd: number;
  try {
    fd = path === '-' ? 1 : openSync(path, 'w');
    if (path !== '-' && fstatSync(fd).isFile()) onUnfinished?.(path, true);
  } catch (cause) {
    throw writeError(path, cause);
  }
  try {
    const output = new Output((bytes) => writeFully(fd, path, bytes));
    produce(output);
    output.flush();
    onUnfinished?.(path, false);
    return output.bytes;
  } finally {
    if (path !== '-') closeSync(fd);
  }
}

/** Runs an export into memory. */
export function writeToMemory(produce: (output: Output) => void): Uint8Array {
  const parts: Uint8Array[] = [];
  const output = new Output((bytes) => {
    parts.push(bytes.slice());
  });
  produce(output);
  output.flush();
  return Buffer.concat(parts);
}

function writeFully(fd: number, path: string, bytes: Uint8Array): void {
  let done = 0;
  while (done < bytes.length) {
    try {
      done += writeSync(fd, bytes, done, bytes.length - done);
    } catch (cause) {
      // A pipe that is full for the moment: its reader is slower than this program.
      if ((cause as NodeJS.ErrnoException).code === 'EAGAIN') continue;
      throw writeError(path, cause);
    }
  }
}

function writeError(path: string, cause: unknown): TraceError {
  const why = describeThrown(cause);
  return new TraceError('ERR_TRACE_WRITE', `cannot write ${path}: ${why}`, path, cause);
}
