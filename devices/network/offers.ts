// The sending side: it offers versions of data to other ranks, and sends them on request.
//
// Invariant: an offer's bytes do not change until `offerDone`: every receiver has them or will never ask.
import {
  type NetworkContext,
  type NetworkTimes,
  type NetworkWay,
  NO_TIMES,
  type Offer,
} from './context.js';
import { NetOutcome, WireMode } from './port.js';
import { tree } from './tree.js';
import { Announce, AnnounceFlag, textBytes, Wire, type WireRecord } from './wire.js';

interface WaitingSend {
  readonly offer: Offer;
  readonly to: number;
  readonly tag: number;
  readonly mode: number;
}

/** A version of a datum that this rank offers to others. */
interface OfferedVersion {
  /** The listener's own number of the offer. */
  readonly cookie: number;
  /** Number of the datum, equal on all ranks. */
  readonly gid: number;
  /** The rank that wrote the version. */
  readonly origin: number;
  readonly era: number;
  /** Pairs (rank, sequence). A tree may serve them. */
  readonly destinations: readonly number[];
  /** Further pairs (rank, sequence). This rank serves them itself, whatever their number. */
  readonly apart: readonly number[];
  /** Memory space of the copy. */
  readonly space: number;
  /** Place of the copy in its space, in bytes. */
  readonly offset: number;
  /** Size of the datum in bytes. */
  readonly bytes: number;
  /** The most urgent sends go first. */
  readonly priority: number;
  /** The bytes themselves, if they are few: then the offer is over at once, and `offerDone` is not called. */
  readonly payload: Uint8Array | undefined;
}

/** Sends under way at most; more wait, the most urgent first. */
const MAX_SENDS = 32;

export class NetworkOffers {
  private readonly n: NetworkContext;
  private readonly offers: Map<number, Offer> = new Map();
  private readonly waiting: WaitingSend[] = [];
  private sends = 0;
  private nextOffer = 1;

  constructor(n: NetworkContext) {
    this.n = n;
  }

  /** Offers that a rank may still request. */
  get open(): number {
    return this.offers.size;
  }

  /**
   * Offers a version of a datum to other ranks. Returns the number of destinations that this rank serves. The tree serves
   * the others.
   */
  offer(version: OfferedVersion): number {
    const { cookie, destinations, apart, space, offset, bytes, priority, payload } = version;
    const { wire, options } = this.n;
    const branches = tree(destinations, options.treeFrom);
    for (let i = 0; i < apart.length; i += 2) branches.push([apart[i], apart[i + 1]]);
    const id = this.nextOffer++;
    if (payload === undefined) {
      this.offers.set(id, {
        id,
        cookie,
        space,
        offset,
        bytes,
        priority,
        remaining: branches.length,
        inFlight: 0,
        withdrawn: false,
        outcome: NetOutcome.ok,
      });
    }
    for (const branch of branches) {
      // The receiving rank and its sequence number, then the pairs that it serves.
      const [rank] = branch;
      const children = branch.length - 2;
      const fields = Announce.firstChild + children;
      const at = wire.begin(rank, Wire.activate, fields, payload === undefined ? 0 : bytes);
      const words = wire.words(rank);
      words[at + Announce.era] = version.era;
      words[at + Announce.gid] = version.gid;
      words[at + Announce.sequence] = branch[1];
      words[at + Announce.origin] = version.origin;
      words[at + Announce.bytes] = bytes;
      words[at + Announce.offer] = id;
      words[at + Announce.space] = space;
      words[at + Announce.offset] = offset;
      words[at + Announce.flags] = payload === undefined ? 0 : AnnounceFlag.inline;
      words[at + Announce.priority] = priority;
      words[at + Announce.children] = children;
      for (let i = 0; i < children; i++) words[at + Announce.firstChild + i] = branch[i + 2];
      if (payload === undefined) continue;
      wire.payload(rank, at + fields, bytes).set(payload);
      this.n.listener.sent(cookie, rank, id, 'inline', bytes, NO_TIMES);
    }
    return branches.length;
  }

  /** Tells destinations that the awaited version will not arrive. It uses no tree, because it is rare. */
  poison(
    gid: number,
    origin: number,
    era: number,
    destinations: readonly number[],
    reason = '',
  ): void {
    const { wire } = this.n;
    const text = textBytes(reason);
    for (let i = 0; i < destinations.length; i += 2) {
      const at = wire.begin(destinations[i], Wire.activate, Announce.firstChild, text.length);
      const words = wire.words(destinations[i]);
      words.fill(0, at + 2, at + Announce.firstChild);
      words[at + Announce.bytes] = text.length;
      wire.payload(destinations[i], at + Announce.firstChild, text.length).set(text);
      words[at + Announce.era] = era;
      words[at + Announce.gid] = gid;
      words[at + Announce.sequence] = destinations[i + 1];
      words[at + Announce.origin] = origin;
      words[at + Announce.flags] = AnnounceFlag.poisoned;
    }
  }

  /**
   * The offers that `which` names serve no new destination; sends under way end. Their copies are held until every
   * destination has answered, because a rank of this host may be reading them through its mapping.
   */
  withdraw(which: (cookie: number) => boolean): void {
    for (const offer of [...this.offers.values()]) {
      if (!which(offer.cookie)) continue;
      offer.withdrawn = true;
      offer.outcome = NetOutcome.cancelled;
      this.settle(offer);
    }
  }

  /** All offers end, whoever has not answered: the ranks are out of step, and some may never answer. */
  abandon(): void {
    for (const offer of [...this.offers.values()]) {
      offer.withdrawn = true;
      offer.outcome = NetOutcome.cancelled;
      offer.remaining = offer.inFlight;
      this.settle(offer);
    }
  }

  private settle(offer: Offer): void {
    if (offer.remaining > 0) return;
    if (this.offers.delete(offer.id)) this.n.listener.offerDone(offer.cookie, offer.outcome);
  }

  private start({ offer, to, tag, mode }: WaitingSend): void {
    this.sends++;
    const way = mode === WireMode.staged ? 'staged' : 'direct';
    const id = this.n.add({ kind: 'send', offer, to, way });
    this.n.port.send(to, tag, offer.space, offer.offset, offer.bytes, mode, id);
  }

  /** A receiver asks; it is always answered. */
  asked(from: number, record: WireRecord): void {
    const { words, at } = record;
    const offer = this.offers.get(words[at + 3]);
    if (offer === undefined || offer.withdrawn) {
      this.n.wire.write(from, Wire.refused, [words[at + 2], words[at + 6]]);
      if (offer !== undefined) this.answered(offer);
      return;
    }
    offer.inFlight++;
    const send = { offer, to: from, tag: words[at + 4], mode: words[at + 5] };
    if (this.sends < MAX_SENDS) {
      this.start(send);
      return;
    }
    let i = this.waiting.length;
    while (i > 0 && this.waiting[i - 1].offer.priority < offer.priority) i--;
    this.waiting.splice(i, 0, send);
  }

  /** A send is over. */
  sent(offer: Offer, to: number, way: NetworkWay, outcome: number, times: NetworkTimes): void {
    const { id, cookie, bytes } = offer;
    if (outcome === NetOutcome.ok) this.n.listener.sent(cookie, to, id, way, bytes, times);
    this.sends--;
    offer.inFlight--;
    if (outcome !== NetOutcome.ok) offer.outcome = outcome;
    this.answered(offer);
    while (this.sends < MAX_SENDS && this.waiting.length > 0) {
      this.start(this.waiting.shift() as WaitingSend);
    }
  }

  /** A receiver has read the bytes from mapped memory. */
  taken(from: number, id: number): void {
    const offer = this.offers.get(id);
    if (offer === undefined) return;
    this.n.listener.sent(offer.cookie, from, id, 'ipc', offer.bytes, NO_TIMES);
    this.answered(offer);
  }

  /** A receiver will not ask. */
  declined(id: number): void {
    const offer = this.offers.get(id);
    if (offer !== undefined) this.answered(offer);
  }

  private answered(offer: Offer): void {
    offer.remaining--;
    this.settle(offer);
  }

  /** A rank is gone, and with it every offer. */
  lost(): void {
    for (const offer of [...this.offers.values()]) {
      offer.withdrawn = true;
      offer.inFlight = 0;
      offer.remaining = 0;
      offer.outcome = NetOutcome.lost;
      this.settle(offer);
    }
    this.waiting.length = 0;
  }
}
