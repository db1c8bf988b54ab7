// The network as a device: this rank offers versions of data to other ranks and receives versions from them.
//
// One transfer, in messages: the sender announces (activate: key, bytes, and the payload itself if it is small). Once it
// has a buffer, the receiver posts a receive with a tag of its own choice and asks (get). The sender sends from its copy.
// If the receiver can map the sender's memory, it reads the bytes itself and reports that (done). A binomial tree carries
// an offer to many ranks: an announcement names the ranks to which its receiver offers the datum.
// This file takes the messages and hands them to the two directions (offers.ts, fetches.ts).
//
// Invariants: a rank declines announcements of an earlier era (before a failed run was settled); every rank answers every
// offer that was announced to it, in whatever era; a `get` is always answered.
import { HeadraceError } from '../errors.js';
import { announcementOf } from './announcement.js';
import {
  NetworkContext,
  type NetworkListener,
  type NetworkOptions,
  type NetworkSpace,
  type NetworkWay,
} from './context.js';
import { NetworkFetches } from './fetches.js';
import { NetworkOffers } from './offers.js';
import {
  type AnnouncedPlace,
  NetOutcome,
  type NetworkPort,
  type NetworkSink,
  OUTCOME_NAMES,
} from './port.js';
import { flushFor, WAYS, wayBetween } from './ways.js';
import { Announce, eachRecord, payloadOf, Wire, type WireRecord, type WireWriter } from './wire.js';

export class NetworkDevice implements NetworkSink {
  readonly port: NetworkPort;
  readonly wire: WireWriter;
  readonly offers: NetworkOffers;
  readonly fetches: NetworkFetches;
  private readonly n: NetworkContext;
  private readonly listener: NetworkListener;
  private readonly later: { from: number; bytes: Uint8Array }[] = [];

  constructor(
    port: NetworkPort,
    spaces: readonly NetworkSpace[],
    options: NetworkOptions,
    listener: NetworkListener,
  ) {
    this.n = new NetworkContext(port, spaces, options, listener);
    this.port = port;
    this.wire = this.n.wire;
    this.listener = listener;
    this.offers = new NetworkOffers(this.n);
    this.fetches = new NetworkFetches(this.n);
  }

  /** Whether a payload of that size travels in its announcement. */
  isInline(bytes: number): boolean {
    return (
      bytes <= this.n.options.inlineBytes &&
      bytes <= this.wire.roomFor(Announce.firstChild + 2 * this.port.size)
    );
  }

  /** The way of bytes from a space of another rank into `space`. */
  wayFrom(from: AnnouncedPlace, space: number): Exclude<NetworkWay, 'inline'> {
    return wayBetween(this.n, from.rank, from.space, space);
  }

  /** The flush that bytes need which came into `space` by that way, a `VisibleTo`. */
  flushFor(space: number, way: NetworkWay, forwards: boolean): number {
    return flushFor(this.n, space, way, forwards);
  }

  /** Requests and offers under way. */
  get underWay(): number {
    return this.n.underWay + this.offers.open;
  }

  /** Takes what has arrived; true when anything did. */
  poll(): boolean {
    const moved = this.port.poll(this);
    if (moved) this.fetches.flushBatches();
    return moved;
  }

  /** Makes messages and commands visible. */
  publish(): void {
    this.wire.flush();
    this.port.publish();
  }

  message(from: number, bytes: Uint8Array): void {
    let early = false;
    eachRecord(bytes, (record) => {
      if (early) return;
      const isData = record.kind <= Wire.declined;
      if (isData && record.words[record.at + 2] > this.n.era) {
        // The sender has entered a new era before this rank: its messages wait for this rank's.
        early = true;
        const rest = payloadOf(record, record.at, (record.words.length - record.at) * 8);
        this.later.push({ from, bytes: rest.slice() });
        return;
      }
      this.take(from, record);
    });
  }

  private take(from: number, record: WireRecord): void {
    const { words, at } = record;
    const isCurrent = words[at + 2] === this.n.era;
    switch (record.kind) {
      case Wire.activate:
        if (isCurrent) this.listener.announced(announcementOf(from, record));
        else this.fetches.decline(announcementOf(from, record));
        break;
      case Wire.get:
        this.offers.asked(from, record);
        break;
      case Wire.done:
        this.offers.taken(from, words[at + 3]);
        break;
      case Wire.refused:
        this.fetches.refused(words[at + 3]);
        break;
      case Wire.declined:
        this.offers.declined(words[at + 3]);
        break;
      default:
        this.listener.control(from, record);
    }
  }

  done(id: number, outcome: number, start: number, end: number): void {
    const request = this.n.take(id);
    if (request === undefined) return;
    if (request.kind === 'send')
      this.offers.sent(request.offer, request.to, request.way, outcome, { start, end });
    else if (request.kind === 'flush') this.fetches.flushed(request.covered, outcome);
    else this.fetches.over({ fetch: request, times: { start, end } }, outcome);
  }

  departed(number: number, outcome: number, start: number, end: number, mode: number): void {
    this.listener.departed(number, outcome, WAYS[mode], { start, end });
  }

  came(number: number, from: AnnouncedPlace): void {
    this.listener.came(number, from);
  }

  lost(rank: number): void {
    // The reason comes first, so that everything that ends because of it can name it.
    this.listener.lost(rank);
    this.offers.lost();
    this.fetches.lost();
  }

  /** A failed run is settled on all ranks: a new era begins. */
  beginEra(era: number): void {
    this.n.era = era;
    const early = this.later.splice(0);
    for (const { from, bytes } of early) this.message(from, bytes);
  }
}

/** The error for a transfer that did not end well. */
export function transferError(outcome: number, datum: string, peer: number): HeadraceError {
  const words = OUTCOME_NAMES[outcome] ?? `outcome ${outcome}`;
  const code =
    outcome === NetOutcome.lost
      ? 'ERR_PEER_LOST'
      : outcome === NetOutcome.flush
        ? 'ERR_FLUSH_FAILED'
        : outcome === NetOutcome.flushTimeout
          ? 'ERR_FLUSH_TIMEOUT'
          : 'ERR_TRANSFER_FAILED';
  return new HeadraceError(code, `datum '${datum}' from rank ${peer}: ${words}`, {
    datum,
    rank: peer,
    stage: 'comm-in',
  });
}
