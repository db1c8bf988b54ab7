// The sending side: versions of data are offered to other ranks, and sent to those that ask.
//
// Invariant: an offer's bytes stay as they are until `offerDone`: every receiver has them or will never ask.
import type { NetworkContext, NetworkWay, Offer } from './network-context.js';
import { NetOutcome, WireMode } from './network-port.js';
import { tree } from './network-tree.js';
import { Announce, AnnounceFlag, textBytes, Wire, type WireRecord } from './network-wire.js';

interface WaitingSend {
  readonly offer: Offer;
  readonly to: number;
  readonly tag: number;
  readonly mode: number;
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

  /** Offers that somebody may still ask for. */
  get open(): number {
    return this.offers.size;
  }

  /**
   * Offers `bytes` at `offset` of `space` to destinations, given as pairs (rank, sequence); those `apart` are served
   * from here, whatever their number. With `payload` (the bytes
   * themselves, when small) the offer is over at once and `offerDone` is not called. Returns how many of them get it
   * from here; the others are served along the tree.
   */
  offer(
    cookie: number,
    gid: number,
    origin: number,
    destinations: readonly number[],
    apart: readonly number[],
    space: number,
    offset: number,
    bytes: number,
    priority: number,
    payload: Uint8Array | undefined,
  ): number {
    const { wire, era, spaces, options } = this.n;
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
        abandoned: false,
        outcome: NetOutcome.ok,
      });
    }
    const fromDevice = spaces[space].kind !== 'host';
    for (const branch of branches) {
      // The rank to send to and its sequence number, then the pairs it is to serve.
      const [rank] = branch;
      const children = branch.length - 2;
      const fields = Announce.firstChild + children;
      const at = wire.begin(rank, Wire.activate, fields, payload === undefined ? 0 : bytes);
      const words = wire.words(rank);
      words[at + Announce.era] = era;
      words[at + Announce.gid] = gid;
      words[at + Announce.sequence] = branch[1];
      words[at + Announce.origin] = origin;
      words[at + Announce.bytes] = bytes;
      words[at + Announce.offer] = id;
      words[at + Announce.space] = space;
      words[at + Announce.offset] = offset;
      words[at + Announce.flags] =
        (payload === undefined ? 0 : AnnounceFlag.inline) |
        (fromDevice ? AnnounceFlag.fromDevice : 0);
      words[at + Announce.priority] = priority;
      words[at + Announce.children] = children;
      for (let i = 0; i < children; i++) words[at + Announce.firstChild + i] = branch[i + 2];
      if (payload === undefined) continue;
      wire.payload(rank, at + fields, bytes).set(payload);
      this.n.listener.sent(cookie, rank, id, 'inline', bytes, 0, 0);
    }
    return branches.length;
  }

  /** Tells destinations that what they wait for will not come. Trees are not used: it is rare. */
  poison(gid: number, origin: number, destinations: readonly number[], reason = ''): void {
    const { wire, era } = this.n;
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

  /** Nobody new is served from the offers that `which` names; sends under way end. */
  abandon(which: (cookie: number) => boolean): void {
    for (const offer of [...this.offers.values()]) {
      if (!which(offer.cookie)) continue;
      offer.abandoned = true;
      offer.outcome = NetOutcome.cancelled;
      this.settle(offer);
    }
  }

  private settle(offer: Offer): void {
    if (offer.inFlight > 0 || (offer.remaining > 0 && !offer.abandoned)) return;
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
    if (offer === undefined || offer.abandoned) {
      this.n.wire.write(from, Wire.refused, [words[at + 2], words[at + 6]]);
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
  sent(
    offer: Offer,
    to: number,
    way: NetworkWay,
    outcome: number,
    start: number,
    end: number,
  ): void {
    const { id, cookie, bytes } = offer;
    if (outcome === NetOutcome.ok) this.n.listener.sent(cookie, to, id, way, bytes, start, end);
    this.sends--;
    offer.inFlight--;
    offer.remaining--;
    if (outcome !== NetOutcome.ok) offer.outcome = outcome;
    this.settle(offer);
    while (this.sends < MAX_SENDS && this.waiting.length > 0) {
      this.start(this.waiting.shift() as WaitingSend);
    }
  }

  /** A receiver has read the bytes from mapped memory. */
  taken(from: number, id: number): void {
    const offer = this.offers.get(id);
    if (offer === undefined) return;
    this.n.listener.sent(offer.cookie, from, id, 'ipc', offer.bytes, 0, 0);
    offer.remaining--;
    this.settle(offer);
  }

  /** A receiver will not ask. */
  declined(id: number): void {
    const offer = this.offers.get(id);
    if (offer === undefined) return;
    offer.remaining--;
    this.settle(offer);
  }

  /** A rank is gone, and with it every offer. */
  lost(): void {
    for (const offer of [...this.offers.values()]) {
      offer.abandoned = true;
      offer.inFlight = 0;
      offer.outcome = NetOutcome.lost;
      this.settle(offer);
    }
    this.waiting.length = 0;
  }
}
