// The way of one version between ranks on lanes. The remote writes it when it hands the send or receive to the stages
// (scheduler/ranks/lane-movements.ts), and stage exec commands it (stages/exec-message.ts).
//
// Invariant: the parcel of a live send or receive that has been handed over is in `StageContext.parcels`, at the number that its task
// has as its parameter. Rows change when the window grows.

/** How a long version comes. */
export interface ParcelArrival {
  /** A `WireMode`. */
  readonly mode: number;
  /** A `VisibleTo`: the flush that the bytes need if they come directly. */
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
  /** Of a receive whose announcement has come, or that has memory on a device before: how the bytes travel, and the flush that they need. */
  readonly arrival: ParcelArrival | undefined;
  /** Of a send or offer: pairs (rank, key of its receive). */
  readonly destinations: readonly number[];
  /** Place of the first pair of a rank that pulls the version. From there on each pair has a command of its own. */
  readonly apart: number;
  /** Of a receive: it has a lane. Without one it takes it when it has its memory. */
  hasLane: boolean;
  /** Of an offer from the host: its copy counts as offered. */
  isHeld: boolean;
  /** Place of the first pair that was not commanded yet. */
  next: number;
  /** Of an offer: commands whose end has not come, and the first bad outcome among the others. */
  open: number;
  outcome: number;
}
