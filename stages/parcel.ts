// The way of one version between ranks on lanes: what the remote tells stage exec (stages/exec-message.ts).

/** How an announced version comes. */
export interface ParcelArrival {
  readonly way: 'direct' | 'staged' | 'ipc';
  /** A `WireMode`. */
  readonly mode: number;
  /** A `VisibleTo`. */
  readonly scope: number;
}

/** A version's way to other ranks, or to this one. */
export interface Parcel {
  /** An offer announces a long version, and ends when no rank needs the bytes any more. */
  readonly kind: 'send' | 'receive' | 'offer';
  readonly era: number;
  /** Of a receive: its key. Of an offer that passes a version on: the key with which it came. */
  readonly key: number;
  /** Of an offer: the number for its end. */
  readonly number: number;
  /** Of a receive whose announcement has come: how the bytes travel, and the flush that they need. */
  readonly arrival: ParcelArrival | undefined;
  /** Of a send or offer: pairs (rank, key of its receive). */
  readonly destinations: readonly number[];
  /** Place of the first pair of a rank that pulls the version. From there on each pair has a command of its own. */
  readonly apart: number;
  /** Place of the first pair that was not commanded yet. */
  next: number;
  /** Of an offer: commands whose end has not come, and the first bad outcome among the others. */
  open: number;
  outcome: number;
}
