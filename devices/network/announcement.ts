// Announcements: a version exists on another rank and can be fetched. Their names, and their form on the wire.
import { Announce, AnnounceFlag, payloadOf, textAt, type WireRecord } from './wire.js';

/** A version that another rank has announced to this one. */
export interface Announcement {
  /** With `origin`, its name. */
  readonly key: number;
  /** Position of the call to which the transfer belongs; -1: it is one of those that both sides count. */
  readonly call: number;
  readonly from: number;
  readonly origin: number;
  readonly bytes: number;
  readonly offer: number;
  readonly space: number;
  readonly offset: number;
  readonly priority: number;
  /** Pairs (rank, sequence) to pass it on to. */
  readonly children: readonly number[];
  /** The bytes themselves, when small: valid during the call that brings them, unless `keepPayload` copied them. */
  payload: Uint8Array | undefined;
  /** There are no bytes: the datum's writer failed, or the sender could not send it. */
  readonly isPoisoned: boolean;
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

/** Numbers of messages on lanes: apart from the numbers of offers. */
const LANE_MESSAGES = 2 ** 30;
const LOW_BITS = 0x7fff;

/** The number of the message that brings the version with that key to a receive of a task; equal on both ranks. */
export function messageNumber(key: number): number {
  const gid = Math.floor(key / KEY_SEQUENCE);
  return LANE_MESSAGES + (gid & LOW_BITS) * (LOW_BITS + 1) + (key & LOW_BITS);
}

/** Copies the payload of an announcement that is not used at once. */
export function keepPayload(announcement: Announcement): void {
  const { payload } = announcement;
  if (payload === undefined) return;
  announcement.payload = new Uint8Array(payload.length);
  announcement.payload.set(payload);
}

/** Reads an announcement; its payload is a view of the message. */
export function announcementOf(from: number, record: WireRecord): Announcement {
  const { words, at } = record;
  const count = words[at + Announce.children];
  const bytes = words[at + Announce.bytes];
  const flags = words[at + Announce.flags];
  const first = at + Announce.firstChild;
  const origin = words[at + Announce.origin];
  const sequence = words[at + Announce.sequence];
  const isPoisoned = (flags & AnnounceFlag.poisoned) !== 0;
  return {
    key: keyOf(words[at + Announce.gid], sequence),
    call: sequence < 0 ? -1 - sequence : -1,
    from,
    origin,
    bytes,
    offer: words[at + Announce.offer],
    space: words[at + Announce.space],
    offset: words[at + Announce.offset],
    priority: words[at + Announce.priority],
    children: count === 0 ? [] : Array.from(words.subarray(first, first + count)),
    isPoisoned,
    reason: isPoisoned ? textAt(record, first + count, bytes) : '',
    payload:
      (flags & AnnounceFlag.inline) === 0 ? undefined : payloadOf(record, first + count, bytes),
  };
}
