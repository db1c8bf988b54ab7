// The way of one small version between ranks: what the remote tells stage exec (stages/exec-message.ts).

/** A version's way to other ranks, or to this one. */
export interface Parcel {
  readonly isSend: boolean;
  readonly era: number;
  /** Of a receive: its key. */
  readonly key: number;
  /** Of a send: pairs (rank, key of its receive). */
  readonly destinations: readonly number[];
  /** Place of the first pair that was not commanded yet. */
  next: number;
}
