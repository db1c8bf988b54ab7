// Writes a file from a thread of its own, so that it does not hold up a program that never returns to the event loop.
//
// Invariant: a chunk belongs to exactly one thread, and its state word names that thread. Only the recording thread turns
// free into filling into handed and counts `handed`. Only the writer turns handed into writing into free and counts
// `landed`, in that order, so a thread that has seen the count finds the chunk free. Either may turn handed into its own
// state, by a compare-exchange. So the recording thread can take a chunk back from a writer that does not come. Every byte
// handed over has its place in the file. One of the two threads writes it there (both, if the writer died at it: the same
// bytes at the same place), or it counts as lost. Until the writer is known to have finished with a chunk, the chunk is
// not filled anew and the descriptor stays open.
import { Worker } from 'node:worker_threads';
import { ChunkState, type WriterMemory, writeChunks } from './chunk-writer.js';

// Limit of chunks under way to the disk; beyond that the engine waits for the disk. Untouched memory costs nothing,
// and a thread takes as long to start as an engine takes to fill some ten chunks.
const CHUNKS = 256;
/** A writer that lands nothing for so long (ms) while another thread waits for it counts as dead. */
const PATIENCE = 5000;
const REASON_BYTES = 512;

/** A thread that runs `writeChunks`; calls `ended` once when it has ended. */
export type StartWriter = (memory: WriterMemory, ended: () => void) => void;

export class BackgroundWriter {
  readonly #memory: WriterMemory;
  readonly #chunks: Uint8Array[];
  readonly #writeNow: (bytes: Uint8Array, position: number) => void;
  readonly #patience: number;
  #handed = 0;
  #over = false;
  #ended = false;
  #whenEnded: (() => void) | undefined;

  /**
   * Starts the thread; throws when the system has none left.
   * @param writeNow writes bytes on the calling thread, for a writer that died; never throws
   */
  constructor(
    fd: number,
    chunkBytes: number,
    writeNow: (bytes: Uint8Array, position: number) => void,
    start: StartWriter = startThread,
    patience: number = PATIENCE,
  ) {
    const words = (n: number): Int32Array => new Int32Array(new SharedArrayBuffer(4 * n));
    const floats = (n: number): Float64Array => new Float64Array(new SharedArrayBuffer(8 * n));
    const bytes = new Uint8Array(new SharedArrayBuffer(CHUNKS * chunkBytes));
    this.#writeNow = writeNow;
    this.#patience = patience;
    this.#chunks = Array.from({ length: CHUNKS }, (_, i) =>
      bytes.subarray(i * chunkBytes, (i + 1) * chunkBytes),
    );
    this.#memory = {
      fd,
      bytes,
      chunkBytes,
      state: words(CHUNKS),
      used: words(CHUNKS),
      position: floats(CHUNKS),
      order: words(CHUNKS),
      handed: words(1),
      landed: words(1),
      failed: words(1),
      reason: new Uint8Array(new SharedArrayBuffer(REASON_BYTES)),
      lost: floats(1),
    };
    start(this.#memory, () => {
      this.#ended = true;
      this.#whenEnded?.();
    });
  }

  /** The first failure of the thread, if any. */
  get failure(): Error | undefined {
    const { failed, reason } = this.#memory;
    const length = Atomics.load(failed, 0) - 1;
    return length < 0 ? undefined : new Error(new TextDecoder().decode(reason.slice(0, length)));
  }

  /** Bytes that the thread could not write; final after `finish`. */
  get lost(): number {
    return this.#memory.lost[0];
  }

  /** The chunk itself, or a copy of its first `used` bytes if it is not in the shared memory; undefined as `take`. */
  adopt(chunk: Uint8Array, used: number): Uint8Array | undefined {
    if (chunk.buffer === this.#memory.bytes.buffer) return chunk;
    const copy = this.take();
    copy?.set(chunk.subarray(0, used));
    return copy;
  }

  /** A chunk to fill; waits for one. Undefined when the writer is dead: then its unwritten chunks are written first. */
  take(): Uint8Array | undefined {
    const { state, landed } = this.#memory;
    while (!this.#over) {
      const seen = Atomics.load(landed, 0);
      // The lowest, so that as little memory as possible is touched.
      for (let i = 0; i < CHUNKS; i++) {
        if (Atomics.load(state, i) !== ChunkState.free) continue;
        state[i] = ChunkState.filling;
        return this.#chunks[i];
      }
      this.#wait(seen);
    }
    return undefined;
  }

  /** Hands over a chunk that was taken: `used` bytes at `position` of the file. */
  hand(chunk: Uint8Array, used: number, position: number): void {
    const { state, order, handed, chunkBytes } = this.#memory;
    const i = chunk.byteOffset / chunkBytes;
    this.#memory.used[i] = used;
    this.#memory.position[i] = position;
    order[this.#handed % CHUNKS] = i;
    Atomics.store(state, i, ChunkState.handed);
    Atomics.store(handed, 0, ++this.#handed);
    Atomics.notify(handed, 0);
  }

  /** Waits until everything handed over is written or lost. */
  drain(): void {
    while (!this.#over) {
      const seen = Atomics.load(this.#memory.landed, 0);
      if (seen === this.#handed) return;
      this.#wait(seen);
    }
  }

  /**
   * Drains and ends the thread. `done` is called when no thread uses the descriptor any more: at once unless the writer
   * died at a chunk.
   */
  finish(done: () => void): void {
    const { state } = this.#memory;
    this.drain();
    this.#end();
    if (!state.includes(ChunkState.writing) || this.#ended) done();
    else this.#whenEnded = done;
  }

  #wait(seen: number): void {
    const { landed } = this.#memory;
    if (Atomics.wait(landed, 0, seen, this.#patience) === 'timed-out') this.#takeBack();
  }

  /** The writer does not come: writes all its unwritten chunks. */
  #takeBack(): void {
    const { state, landed, order, used, position } = this.#memory;
    this.#end();
    for (let n = Atomics.load(landed, 0); n < this.#handed; n++) {
      const i = order[n % CHUNKS];
      const was = Atomics.compareExchange(state, i, ChunkState.handed, ChunkState.free);
      if (was !== ChunkState.free)
        this.#writeNow(this.#chunks[i].subarray(0, used[i]), position[i]);
    }
  }

  #end(): void {
    this.#over = true;
    Atomics.store(this.#memory.handed, 0, -1);
    Atomics.notify(this.#memory.handed, 0);
  }
}

function startThread(memory: WriterMemory, ended: () => void): void {
  const source = `(${writeChunks})(require('node:worker_threads').workerData, require('node:fs').writeSync)`;
  // The thread does not need the program's loaders, preloads and environment.
  const worker = new Worker(source, { eval: true, workerData: memory, execArgv: [], env: {} });
  // The waiting thread notices a writer that failed to start; the event must have a listener.
  worker.on('error', () => {});
  worker.once('exit', ended);
  worker.unref();
}
