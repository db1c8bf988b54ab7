// The names of versions that travel between ranks, and the news that one of them will not come.

import { textOf, type WireRecord } from './wire.js';

/** Another rank tells this one that a version will not come. */
export interface NoVersion {
  /** With `origin`, the name of the version. */
  readonly key: number;
  /** Position of the call to which the transfer belongs; -1: it is one of those that both sides count. */
  readonly call: number;
  readonly from: number;
  readonly origin: number;
  /** Why the sender could not send it; '' if the datum has no value there. */
  readonly reason: string;
}

/** Transfers of one datum from one rank to another that may be under way: more than a rank can be ahead with. */
const KEY_SEQUENCE = 2 ** 22;
/** A call names its datum. Part of the datum's number keeps ranks apart that make different calls. */
const KEY_DATUM = 512;

/** Largest number of ranks. */
export const MAX_RANKS = 1024;

/** The sequence of a transfer that belongs to the call at a position; -1 - sequence is the position again. */
export function sequenceOfCall(position: number): number {
  return -1 - position;
}

/** Names the `sequence`-th transfer of datum `gid` from a rank to the receiver, or the one of a call. */
export function keyOf(gid: number, sequence: number): number {
  if (sequence < 0) return -1 - (-1 - sequence) * KEY_DATUM - (gid & (KEY_DATUM - 1));
  return gid * KEY_SEQUENCE + (sequence & (KEY_SEQUENCE - 1));
}

/** Keys of the transfers of calls at positions before `first` are above this number and below 0. */
export function keysBefore(first: number): number {
  return -1 - first * KEY_DATUM;
}

/** The era on lanes: with the rank of origin, which is no part of the key. From a later era it is larger. */
export function laneEra(era: number, origin = 0): number {
  return era * MAX_RANKS + origin;
}

const LOW_BITS = 0x7fff;

/** The number of the message that brings the version with that key to a receive of a task; equal on both ranks. */
export function messageNumber(key: number): number {
  const gid = Math.floor(key / KEY_SEQUENCE);
  return (gid & LOW_BITS) * (LOW_BITS + 1) + (key & LOW_BITS);
}

/** Fields of a `noVersion` record: era, number of the datum, sequence, origin; its text is the reason. */
const NEWS_FIELDS = 4;

/** Reads the news that a version will not come. */
export function noVersionOf(from: number, record: WireRecord): NoVersion {
  const { words, at } = record;
  const [, gid, sequence, origin] = words.subarray(at + 2, at + 2 + NEWS_FIELDS);
  return {
    key: keyOf(gid, sequence),
    call: sequence < 0 ? -1 - sequence : -1,
    from,
    origin,
    reason: textOf(record, NEWS_FIELDS),
  };
}
