// Announcements: a version exists on another rank and can be had. How they are named, and how they are read from the wire.
import { Announce, AnnounceFlag, payloadOf, textAt, type WireRecord } from './network-wire.js';

/** A version another rank has announced to this one. */
export interface Announcement {
  readonly key: number;
  readonly from: number;
  readonly origin: number;
  readonly bytes: number;
  readonly offer: number;
  readonly space: number;
  readonly offset: number;
  readonly fromDevice: boolean;
  readonly priority: number;
  /** Pairs (rank, sequence) to pass it on to. */
  readonly children: readonly number[];
  /** The bytes themselves, when small: valid during the call that brings them, unless `keepPayload` copied them. */
  payload: Uint8Array | undefined;
  /** There is nothing to have: the datum's writer failed, or the sender could not send it. */
  readonly isPoisoned: boolean;
  /** Why the sender could not; '' where the datum has no value there. */
  readonly reason: string;
}

const KEY_SEQUENCE = 4096;
const KEY_RANK = 1024;

/** Largest number of ranks keys have room for. */
export const MAX_RANKS: number = KEY_RANK;

/** Names the `sequence`-th transfer of datum `gid` from `origin` to the receiver. */
export function keyOf(gid: number, origin: number, sequence: number): number {
  return (gid * KEY_RANK + origin) * KEY_SEQUENCE + (sequence & (KEY_SEQUENCE - 1));
}

/** Copies the payload of an announcement that is not used up at once. */
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
  const isPoisoned = (flags & AnnounceFlag.poisoned) !== 0;
  return {
    key: keyOf(words[at + Announce.gid], origin, words[at + Announce.sequence]),
    from,
    origin,
    bytes,
    offer: words[at + Announce.offer],
    space: words[at + Announce.space],
    offset: words[at + Announce.offset],
    fromDevice: (flags & AnnounceFlag.fromDevice) !== 0,
    priority: words[at + Announce.priority],
    children: count === 0 ? [] : Array.from(words.subarray(first, first + count)),
    isPoisoned,
    reason: isPoisoned ? textAt(record, first + count, bytes) : '',
    payload:
      (flags & AnnounceFlag.inline) === 0 ? undefined : payloadOf(record, first + count, bytes),
  };
}
