// The program of the background writer's thread: it writes chunks of shared memory at their places in the file, in the
// order in which they were handed over. A Worker cannot load TypeScript, so its source is the text of `writeChunks`, which
// therefore uses only its arguments and globals.

/** States of a chunk; `writeChunks` spells the numbers out as well. */
export const ChunkState = {
  free: 0,
  /** Belongs to the thread that records. */
  filling: 1,
  /** Complete, the writer has not begun it. */
  handed: 2,
  /** The writer writes it. */
  writing: 3,
} as const;

/** The memory that both threads see; all arrays are views of SharedArrayBuffers. */
export interface WriterMemory {
  readonly fd: number;
  /** All chunks, one after the other. */
  readonly bytes: Uint8Array;
  readonly chunkBytes: number;
  /** Per chunk: a `ChunkState`, the bytes used, the place in the file. */
  readonly state: Int32Array;
  readonly used: Int32Array;
  readonly position: Float64Array;
  /** The chunks in the order they were handed over, a ring. */
  readonly order: Int32Array;
  /** One word: the number of chunks handed over so far, or -1: the writer ends. */
  readonly handed: Int32Array;
  /** One word: the number of them that the writer has finished. */
  readonly landed: Int32Array;
  /** One word: not 0 when a write failed: the length of `reason`, UTF-8, plus one. */
  readonly failed: Int32Array;
  readonly reason: Uint8Array;
  /** One word: bytes that could not be written. */
  readonly lost: Float64Array;
}

/** Writes the chunks handed over until `handed` is -1. `write` is `fs.writeSync`. */
export function writeChunks(
  memory: WriterMemory,
  write: (
    fd: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ) => number,
): void {
  const { fd, bytes, chunkBytes, state, used, position, order } = memory;
  const { handed, landed, failed, reason, lost } = memory;
  const handedOver = 2;
  const writing = 3;
  const free = 0;
  for (let next = 0; ; ) {
    const count = Atomics.load(handed, 0);
    if (count < 0) return;
    if (count === next) {
      Atomics.wait(handed, 0, next);
      continue;
    }
    const chunk = order[next % order.length];
    // The other thread may have taken the chunk back.
    if (Atomics.compareExchange(state, chunk, handedOver, writing) === handedOver) {
      const length = used[chunk];
      let done = 0;
      try {
        // After a failure nothing more is written: a hole in the middle would make the rest unreadable.
        while (done < length && failed[0] === 0) {
          const from = chunk * chunkBytes + done;
          done += write(fd, bytes, from, length - done, position[chunk] + done);
        }
      } catch (cause) {
        const text = cause instanceof Error ? cause.message : String(cause);
        Atomics.store(failed, 0, new TextEncoder().encodeInto(text, reason).written + 1);
      }
      lost[0] += length - done;
      Atomics.store(state, chunk, free);
    }
    Atomics.store(landed, 0, ++next);
    Atomics.notify(landed, 0);
  }
}
