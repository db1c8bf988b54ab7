// What the simulated network tells about its work, for models of memory and order. A network without a watcher pays
// nothing for it.

export interface NetworkWatcher {
  /** The engine of a rank sends a message; returns what it knows at that moment. */
  says(rank: number): Int32Array;
  /** The engine of a rank takes a message that carries that knowledge. */
  hears(rank: number, knowledge: Int32Array): void;
  /** The engine of `rank` starts a request that reads or writes memory of `owner`. */
  starts(
    rank: number,
    request: number,
    owner: number,
    space: number,
    offset: number,
    bytes: number,
    writes: boolean,
  ): void;
  /** The engine of a rank sees that a request is over. */
  sees(rank: number, request: number): void;
  /** The contents of memory as the network reads it now. */
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
  /** What the network wrote to a device so far is visible to `scope`, a `VisibleTo`. */
  flushes(rank: number, space: number, scope: number): void;
  /** A rank is gone, and with it everything under way. */
  stops(): void;
}
