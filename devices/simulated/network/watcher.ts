// The simulated network's reports about its work, for models of memory and order. A network without a watcher has
// no cost from it.

export interface NetworkWatcher {
  /** The engine of a rank sends a message; returns its knowledge at that moment. */
  says(rank: number): Int32Array;
  /** The engine of a rank takes a message that carries that knowledge. */
  hears(rank: number, knowledge: Int32Array): void;
  /** The engine of a rank sees that no rank reads these bytes any more, which a lane has announced. */
  departs(rank: number, space: number, offset: number, bytes: number): void;
  /** The contents of memory at the moment of the network's read. */
  leaves(rank: number, space: number, offset: number, bytes: number): Int32Array;
  /** The network hands contents over to memory; `isCopied`: by the device itself, not a write of the card. */
  arrives(
    rank: number,
    space: number,
    offset: number,
    bytes: number,
    contents: Int32Array,
    isCopied: boolean,
  ): void;
  /** The network's writes to a device so far are visible to `scope`, a `VisibleTo`. */
  flushes(rank: number, space: number, scope: number): void;
  /** A flush covers the network's writes to a device so far; returns their number. */
  flushBegins(): number;
  /**
   * A flush has failed that covers the first `writes`, and with it the receives that waited for it. Their bytes are lost, and none of
   * them comes later. The engine of their rank learns of it later.
   */
  flushFails(rank: number, space: number, writes: number): void;
  /** A rank is gone, and with it everything under way. */
  stops(): void;
}
