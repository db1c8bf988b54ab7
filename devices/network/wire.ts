// The control messages between ranks, packed. A message is a row of records. A record is float64 words: kind, number of
// words in all, its fields, then payload bytes padded to whole words. Records to one rank travel together, in the order
// written, until `flush`.
// Invariant: a record never spans two messages; messages for which the port has no room are kept in order and sent later.
import type { NetworkPort } from './port.js';

/** Kinds of records. */
export const Wire = {
  /** A version will not come: era, number of the datum, sequence, origin; text is the reason. */
  noVersion: 1,
  /** All of a run's tasks on a rank are over: epoch, failed, tasks, digest, then the transfers with each rank. */
  end: 2,
  /** Rank 0's answer to all `end`s: epoch, verdict, era; text. */
  verdict: 3,
  /** A run failed on this rank: epoch; text is JSON with code, message. */
  fail: 4,
  /** A rank's graph so far: epoch, tasks, digest; text is the last task's class. */
  check: 5,
  /** A request for the time: the asker's time. */
  clock: 6,
  /** The answer: the asker's time, and the time here. */
  time: 7,
  /** A rank waits for others while nothing moves. */
  waiting: 8,
  /** Rank 0 wants a rank's calls: number of the run (0: the program itself), the first position. */
  ask: 9,
  /** The answer: both again; text is JSON. */
  calls: 10,
  /** Rank 0: the ranks do not make the same calls: the rank concerned; text is the message. */
  apart: 11,
  /** The answer: the rank has received it. */
  heard: 12,
  /** A rank has closed its runtime and is quiet: calls made, their digest. */
  leaving: 13,
  /** Rank 0: all have. */
  left: 14,
  /** A new era begins on a rank: era, and the number of calls that the rank has made. */
  enters: 15,
  /** Rank 0: the position of the first call that all ranks make in the era: era, position. */
  opens: 16,
  /** A rank would play a plan in place of a run: number of the run, the plan, and a digest of its parameters. A plan 0: it will not. */
  wouldPlay: 17,
  /** Rank 0: a rank waits for such a vote. */
  asksForVotes: 18,
  /** Rank 0: all ranks play in place of a run, or none does: number of the run, 1 or 0. */
  allPlay: 19,
} as const;

/** Bytes of a text, at most: longer texts are cut. A message holds 64 KiB. */
const LONGEST_TEXT = 48_000;

const encoder = new TextEncoder();
// A text keeps the byte order mark that it begins with.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A record as the receiver sees it; valid during the call only. */
export interface WireRecord {
  readonly kind: number;
  /** All words of the message, and where the record starts and ends in it. */
  readonly words: Float64Array;
  readonly at: number;
  readonly end: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The message under construction for one rank. */
interface Outgoing {
  readonly rank: number;
  words: Float64Array;
  /** The same memory. */
  bytes: Uint8Array;
  /** Words written. */
  used: number;
}

/** Words of the first buffer for a rank: it grows with the messages, up to the longest one. */
const FIRST_WORDS = 256;

export class WireWriter {
  private readonly port: NetworkPort;
  /** By rank, for ranks that this one has written to. */
  private readonly outgoing: Map<number, Outgoing> = new Map();
  /** The one that was looked up last. */
  private recent: Outgoing | undefined;
  /** Those with something to flush. */
  private readonly dirty: Outgoing[] = [];
  private readonly waiting: { rank: number; bytes: Uint8Array }[] = [];
  private readonly capacity: number;
  /** Records written, for figures. */
  records = 0;

  constructor(port: NetworkPort) {
    this.port = port;
    this.capacity = port.longestMessage / 8;
  }

  private to(rank: number): Outgoing {
    if (this.recent?.rank === rank) return this.recent;
    let out = this.outgoing.get(rank);
    if (out === undefined) {
      const words = new Float64Array(Math.min(FIRST_WORDS, this.capacity));
      out = { rank, words, bytes: new Uint8Array(words.buffer), used: 0 };
      this.outgoing.set(rank, out);
    }
    this.recent = out;
    return out;
  }

  private grow(out: Outgoing, words: number): void {
    const { words: old } = out;
    out.words = new Float64Array(Math.min(Math.max(2 * old.length, words), this.capacity));
    out.words.set(old);
    out.bytes = new Uint8Array(out.words.buffer);
  }

  /** Starts a record of `fields` words (kind and count included) and payload bytes; returns the word it starts at. */
  begin(rank: number, kind: number, fields: number, payloadBytes: number): number {
    const words = fields + ((payloadBytes + 7) >> 3);
    const out = this.to(rank);
    if (out.used + words > this.capacity) this.flushOne(out);
    const at = out.used;
    if (at + words > out.words.length) this.grow(out, at + words);
    if (at === 0) this.dirty.push(out);
    out.used = at + words;
    out.words[at] = kind;
    out.words[at + 1] = words;
    this.records++;
    return at;
  }

  /** The words of the message under construction for a rank. */
  words(rank: number): Float64Array {
    return this.to(rank).words;
  }

  /** The same memory as bytes. */
  payload(rank: number, word: number, bytes: number): Uint8Array {
    return this.to(rank).bytes.subarray(word * 8, word * 8 + bytes);
  }

  /** A record of plain numbers with a text behind. */
  write(rank: number, kind: number, fields: readonly number[], text = ''): void {
    // Most records have no text, and the encoder allocates for an empty one, too.
    const encoded = text === '' ? undefined : textBytes(text);
    const length = encoded === undefined ? 0 : encoded.length;
    const at = this.begin(rank, kind, 3 + fields.length, length);
    const words = this.words(rank);
    for (let i = 0; i < fields.length; i++) words[at + 2 + i] = fields[i];
    words[at + 2 + fields.length] = length;
    if (encoded !== undefined) this.payload(rank, at + 3 + fields.length, length).set(encoded);
  }

  /** Messages that the port had no room for. */
  get unsent(): number {
    return this.waiting.length;
  }

  /** Hands everything to the port. */
  flush(): void {
    while (this.waiting.length > 0) {
      const { rank, bytes } = this.waiting[0];
      if (!this.port.post(rank, bytes)) break;
      this.waiting.shift();
    }
    for (const out of this.dirty) this.flushOne(out);
    this.dirty.length = 0;
  }

  private flushOne(out: Outgoing): void {
    const { rank, used } = out;
    if (used === 0) return;
    const bytes = out.bytes.subarray(0, used * 8);
    if (this.waiting.length > 0 || !this.port.post(rank, bytes)) {
      this.waiting.push({ rank, bytes: bytes.slice() });
    }
    out.used = 0;
  }
}

/** Calls `take` for every record of a message. */
export function eachRecord(message: Uint8Array, take: (record: WireRecord) => void): void {
  const words = new Float64Array(message.buffer, message.byteOffset, message.byteLength >> 3);
  const record: Mutable<WireRecord> = { kind: 0, words, at: 0, end: 0 };
  for (let at = 0; at < words.length; at = record.end) {
    record.kind = words[at];
    record.at = at;
    record.end = at + words[at + 1];
    take(record);
  }
}

/** Bytes behind the fields of a record. */
export function payloadOf(record: WireRecord, word: number, bytes: number): Uint8Array {
  const { words } = record;
  return new Uint8Array(words.buffer, words.byteOffset + word * 8, bytes);
}

/** UTF-8 bytes of a text, cut to the length that fits a record. */
function textBytes(text: string): Uint8Array {
  const bytes = encoder.encode(text.slice(0, LONGEST_TEXT));
  if (bytes.length <= LONGEST_TEXT) return bytes;
  let end = LONGEST_TEXT;
  // The bytes of one character stay together.
  while ((bytes[end] & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}

/** The text of `bytes` bytes at a word of a record. */
function textAt(record: WireRecord, word: number, bytes: number): string {
  // TextDecoder refuses shared memory.
  return decoder.decode(payloadOf(record, word, bytes).slice());
}

/** Text of a record written by `write` with `fields` numbers. */
export function textOf(record: WireRecord, fields: number): string {
  const at = record.at + 2 + fields;
  return textAt(record, at + 1, record.words[at]);
}
