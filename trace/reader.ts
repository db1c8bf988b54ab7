// Reads a trace as a stream: one pass, one chunk of memory, a callback per record. The record objects of
// callbacks are reused for the next record of the kind; copy the fields that must outlive the call.
// A cut or damaged tail is not an error: all records before it are delivered and the outcome names the missing parts.
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { checkHeader } from './check-header.js';
import { TraceError } from './errors.js';
import { BYTE_ORDER_MARK, MAGIC, type TraceHeader, UNIT, VERSION } from './format.js';
import { Pass } from './pass.js';
import type { TraceOutcome, TraceVisitor } from './records.js';
import { describeThrown } from './thrown.js';

/** A source of bytes: fills `into` from `at` on, returns the number of bytes (0 at the end). */
interface Source {
  readonly name: string;
  readonly size: number;
  read(into: Uint8Array, at: number, length: number, position: number): number;
  close(): void;
}

const CHUNK = 1 << 20;
const decoder = new TextDecoder();

/** One trace of one rank, opened. */
export class TraceReader {
  readonly header: TraceHeader;
  /** Its source, for messages. */
  readonly name: string;
  /** Bytes of the file. */
  readonly size: number;
  readonly #source: Source;
  readonly #dataStart: number;

  private constructor(source: Source) {
    this.#source = source;
    this.name = source.name;
    this.size = source.size;
    const { header, dataStart } = readHeader(source);
    this.header = header;
    this.#dataStart = dataStart;
  }

  /**
   * Opens a file. Throws `TraceError`: ERR_TRACE_READ (cannot be opened), ERR_TRACE_FOREIGN (not a trace),
   * ERR_TRACE_VERSION (newer major version), ERR_TRACE_HEADER (header damaged or cut).
   */
  static open(path: string): TraceReader {
    const source = fileSource(path);
    try {
      return new TraceReader(source);
    } catch (error) {
      source.close();
      throw error;
    }
  }

  /** Reads from memory; `name` is used in messages. Throws like `open`. */
  static from(bytes: Uint8Array, name = 'trace'): TraceReader {
    return new TraceReader(memorySource(bytes, name));
  }

  /** Closes the file. */
  close(): void {
    this.#source.close();
  }

  /**
   * Reads all records in file order; `onBytes` is told after each chunk how many bytes it had. May be called again. Throws
   * ERR_TRACE_READ when the disk fails.
   */
  read(visitor: TraceVisitor, onBytes?: (bytes: number) => void): TraceOutcome {
    const pass = new Pass(this.header, visitor);
    // One chunk; the unfinished record at its end is moved to the front before the next read.
    const chunk = new Uint8Array(CHUNK + 256 * UNIT);
    let kept = 0;
    let position = this.#dataStart;
    for (;;) {
      // Never beyond the size at opening: a trace that is still being written reads the same every time.
      const wanted = Math.min(CHUNK, this.size - position);
      const got = wanted > 0 ? this.#source.read(chunk, kept, wanted, position) : 0;
      position += got;
      onBytes?.(got);
      const length = kept + got;
      const used = pass.take(chunk, length);
      if (pass.done) break;
      kept = length - used;
      if (got === 0) {
        pass.cut(kept);
        break;
      }
      chunk.copyWithin(0, used, length);
    }
    return pass.outcome();
  }
}

function readHeader(source: Source): { header: TraceHeader; dataStart: number } {
  const preamble = new Uint8Array(UNIT);
  const got = readFully(source, preamble, 0);
  if (got < MAGIC.length || MAGIC.some((byte, i) => preamble[i] !== byte)) {
    throw new TraceError(
      'ERR_TRACE_FOREIGN',
      `${source.name} is not a Headrace trace. Traces are written by "headrace run ... --trace out.hrtrace".`,
      source.name,
    );
  }
  const view = new DataView(preamble.buffer);
  const major = view.getUint16(8, true);
  const minor = view.getUint16(10, true);
  if (got === UNIT && major > VERSION.major) {
    throw new TraceError(
      'ERR_TRACE_VERSION',
      `${source.name} has trace format ${major}.${minor}; this version reads up to ${VERSION.major}.x. ` +
        'Use the Headrace version that wrote it, or a newer one.',
      source.name,
    );
  }
  const length = view.getUint32(12, true);
  const dataStart = UNIT + length;
  if (
    got < UNIT ||
    view.getUint32(16, true) !== BYTE_ORDER_MARK ||
    view.getUint32(20, true) !== UNIT ||
    dataStart > source.size
  ) {
    throw new TraceError(
      'ERR_TRACE_HEADER',
      `${source.name} ends inside its header or the header is damaged; nothing can be recovered.`,
      source.name,
    );
  }
  const json = new Uint8Array(length);
  readFully(source, json, UNIT);
  try {
    return { header: checkHeader(JSON.parse(decoder.decode(json))), dataStart };
  } catch (cause) {
    throw new TraceError(
      'ERR_TRACE_HEADER',
      `${source.name} has a damaged header (${(cause as Error).message}); nothing can be recovered.`,
      source.name,
      cause,
    );
  }
}

function readFully(source: Source, into: Uint8Array, position: number): number {
  let at = 0;
  while (at < into.length) {
    const got = source.read(into, at, into.length - at, position + at);
    if (got === 0) break;
    at += got;
  }
  return at;
}

function fileSource(path: string): Source {
  let fd: number;
  let size: number;
  try {
    // Before it is opened: opening a pipe waits for a writer.
    const stat = statSync(path);
    if (stat.isDirectory()) throw new Error('it is a directory');
    if (!stat.isFile()) {
      throw new Error(
        `it is not a file, and a trace is read more than once: copy it first (cat ${path} > copy.hrtrace)`,
      );
    }
    size = stat.size;
    fd = openSync(path, 'r');
  } catch (cause) {
    const why = describeThrown(cause);
    throw new TraceError('ERR_TRACE_READ', `cannot open ${path}: ${why}`, path, cause);
  }
  return {
    name: path,
    size,
    read(into, at, length, position) {
      try {
        return readSync(fd, into, at, length, position);
      } catch (cause) {
        const why = describeThrown(cause);
        throw new TraceError('ERR_TRACE_READ', `cannot read ${path}: ${why}`, path, cause);
      }
    },
    close() {
      if (fd >= 0) closeSync(fd);
      fd = -1;
    },
  };
}

function memorySource(bytes: Uint8Array, name: string): Source {
  return {
    name,
    size: bytes.length,
    read(into, at, length, position) {
      const part = bytes.subarray(position, position + length);
      into.set(part, at);
      return part.length;
    },
    close() {},
  };
}
