// JavaScript's views of host memory, which may be larger than one ArrayBuffer: it is mapped in pieces, each once.
import type { NativeCore } from '../../native/contract.js';

/** Bytes of a piece. */
const PIECE = 2 ** 28;

export class HostViews {
  private readonly core: NativeCore;
  private readonly pieces: (ArrayBuffer | undefined)[] = [];

  constructor(core: NativeCore) {
    this.core = core;
  }

  /** A view of `bytes` bytes from `offset` on. One that lies in two pieces is mapped by itself. */
  at(offset: number, bytes: number): Uint8Array {
    const piece = Math.floor(offset / PIECE);
    const within = offset - piece * PIECE;
    if (within + bytes > PIECE) return new Uint8Array(this.core.hostView(offset, bytes));
    let buffer = this.pieces[piece];
    if (buffer === undefined) {
      const length = Math.min(PIECE, this.core.spaces[0].bytes - piece * PIECE);
      buffer = this.core.hostView(piece * PIECE, length);
      this.pieces[piece] = buffer;
    }
    return new Uint8Array(buffer, within, bytes);
  }
}
