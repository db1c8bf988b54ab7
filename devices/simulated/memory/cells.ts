// The contents of one memory space in weak memory, per cell of the allocator's unit: its stamp, its last writer, its
// readers since, and the requests of the network on it.
//
// The contents of host memory are its bytes: each cell's stamp and part stand in its first two words, so that code
// that moves bytes (a message with a small payload, a JavaScript body) moves the stamps too.
import { ALIGNMENT } from '../../memory/zone.js';

const DEVICE_STRIDE = 2;
const NOBODY = -1;

/** Writes of the network that need a flush: the device itself is sure to see them, or they were copied before the flush. */
export const Unflushed = { no: 0, forOthers: 1, copied: 2 } as const;

export class Cells {
  readonly units: number;
  /** Bytes of a host space. */
  readonly bytes: Uint8Array | undefined;
  readonly writer: Int16Array;
  readonly writtenAt: Int32Array;
  /** Last read since the write, per reader: cell * clocks + reader. */
  readonly readAt: Int32Array;
  /** Requests of the network that read the cell, and that write it. */
  readonly netReads: Uint8Array;
  readonly netWrites: Uint8Array;
  /** An `Unflushed`. */
  readonly unflushed: Uint8Array;
  private readonly words: Int32Array;
  private readonly stride: number;

  constructor(bytes: number, isHost: boolean, clocks: number) {
    this.units = Math.floor(bytes / ALIGNMENT);
    this.bytes = isHost ? new Uint8Array(this.units * ALIGNMENT) : undefined;
    this.stride = isHost ? ALIGNMENT / 4 : DEVICE_STRIDE;
    this.words =
      this.bytes === undefined
        ? new Int32Array(this.units * DEVICE_STRIDE)
        : new Int32Array(this.bytes.buffer);
    this.writer = new Int16Array(this.units).fill(NOBODY);
    this.writtenAt = new Int32Array(this.units);
    this.readAt = new Int32Array(this.units * clocks);
    this.netReads = new Uint8Array(this.units);
    this.netWrites = new Uint8Array(this.units);
    this.unflushed = new Uint8Array(this.units);
  }

  /** All devices see the network's writes. A copy of older contents stays one. */
  flush(): void {
    const { unflushed } = this;
    for (let u = 0; u < unflushed.length; u++)
      if (unflushed[u] === Unflushed.forOthers) unflushed[u] = Unflushed.no;
  }

  stamp(unit: number): number {
    return this.words[unit * this.stride];
  }

  /** The unit of its datum that a cell holds. */
  part(unit: number): number {
    return this.words[unit * this.stride + 1];
  }

  set(unit: number, stamp: number, part: number): void {
    this.words[unit * this.stride] = stamp;
    this.words[unit * this.stride + 1] = part;
  }

  /** Stamps and parts of a range, in turn. */
  copyOut(first: number, units: number): Int32Array {
    const list = new Int32Array(units * 2);
    for (let u = 0; u < units; u++) {
      list[2 * u] = this.stamp(first + u);
      list[2 * u + 1] = this.part(first + u);
    }
    return list;
  }

  copyIn(first: number, contents: Int32Array): void {
    for (let u = 0; 2 * u < contents.length; u++)
      this.set(first + u, contents[2 * u], contents[2 * u + 1]);
  }
}
