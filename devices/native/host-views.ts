// JavaScript's views of host memory, which may be larger than one ArrayBuffer: it is mapped in pieces, each once.
/** Bytes of a piece. */
const PIECE = 2 ** 28;

/** The host space of a core. */
export interface HostSpace {
  readonly hostBytes: number;
  /** Bytes `offset` to `offset + bytes`. */
  hostView(offset: number, bytes: number): ArrayBuffer;
}

export class HostViews {
  private readonly space: HostSpace;
  private readonly pieces: (ArrayBuffer | undefined)[] = [];

  constructor(space: HostSpace) {
    this.space = space;
  }

  /** A view of `bytes` bytes from `offset` on. One that lies in two pieces is mapped by itself. */
  at(offset: number, bytes: number): Uint8Array {
    const piece = Math.floor(offset / PIECE);
    const within = offset - piece * PIECE;
    if (within + bytes > PIECE) return new Uint8Array(this.space.hostView(offset, bytes));
    let buffer = this.pieces[piece];
    if (buffer === undefined) {
      const length = Math.min(PIECE, this.space.hostBytes - piece * PIECE);
      buffer = this.space.hostView(piece * PIECE, length);
      this.pieces[piece] = buffer;
    }
    return new Uint8Array(buffer, within, bytes);
  }
}
