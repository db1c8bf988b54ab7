// The network as a device: versions of data are offered to other ranks and received from them.
//
// One transfer, in messages: the sender announces (activate: key, bytes, and the payload itself when small); the
// receiver, once it has a buffer, posts a receive with a tag of its own choosing and asks (get); the sender sends from
// its copy. Where the receiver can map the sender's memory it reads the bytes itself and says so (done). An offer to
// many is passed on along a binomial tree: an announcement names the ranks its receiver is to offer the datum to.
//
// Invariants:
// - a receive is posted before it is asked for, so that a payload never arrives unexpected;
// - an offer's bytes stay as they are until `offerDone`: every receiver has them or will never ask;
// - what belongs to an earlier era (before a failed run was settled) is ignored; a `get` is always answered.
import { HeadraceError } from './errors.js';
import {
  NetOutcome,
  type NetworkPort,
  type NetworkSink,
  OUTCOME_NAMES,
  WireMode,
} from './network-port.js';
import { tree } from './network-tree.js';
import {
  Announce,
  AnnounceFlag,
  eachRecord,
  payloadOf,
  Wire,
  type WireRecord,
  WireWriter,
} from './network-wire.js';

/** How bytes between ranks travel. */
export type CommMode = 'auto' | 'direct' | 'staged' | 'ipc';
/** When writes of the network to device memory are flushed. */
export type FlushPolicy = 'auto' | 'force' | 'off';

/** The way a payload took. */
export type NetworkWay = 'ipc' | 'direct' | 'staged' | 'inline';

/** What the device needs to know of a memory space. */
export interface NetworkSpace {
  readonly kind: string;
}

export interface NetworkOptions {
  readonly comm: CommMode;
  readonly flush: FlushPolicy;
  /** Payloads up to this size travel in the announcement. */
  readonly inlineBytes: number;
  /** Destinations from which on a tree is used. */
  readonly treeFrom: number;
}

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
  readonly payload: Uint8Array | undefined;
  /** There is nothing to have: the datum's writer failed. */
  readonly isPoisoned: boolean;
}

/** Told what happens. */
export interface NetworkListener {
  announced(announcement: Announcement): void;
  /** A receive is over. `outcome` is a NetOutcome; refused ones end as cancelled. */
  received(
    cookie: number,
    outcome: number,
    way: NetworkWay,
    bytes: number,
    start: number,
    end: number,
  ): void;
  /** No destination needs the offer's bytes any more. */
  offerDone(cookie: number, outcome: number): void;
  /** A record that is not about data. */
  control(from: number, record: WireRecord): void;
  lost(rank: number): void;
}

interface Offer {
  readonly id: number;
  readonly cookie: number;
  readonly space: number;
  readonly offset: number;
  readonly bytes: number;
  readonly priority: number;
  /** Destinations that have neither finished nor been given up. */
  remaining: number;
  /** Sends under way. */
  inFlight: number;
  abandoned: boolean;
  outcome: number;
}

interface Request {
  readonly kind: 'receive' | 'ipc' | 'send' | 'flush';
  readonly cookie: number;
  readonly offer: Offer | undefined;
  readonly from: number;
  readonly remoteOffer: number;
  readonly space: number;
  readonly bytes: number;
  readonly way: NetworkWay;
  readonly tag: number;
  /** Receives a flush is for. */
  readonly covered: readonly Finished[];
}

interface Finished {
  readonly request: Request;
  readonly start: number;
  readonly end: number;
}

interface WaitingSend {
  readonly offer: Offer;
  readonly to: number;
  readonly tag: number;
  readonly mode: number;
}

interface WaitingFetch {
  readonly announcement: Announcement;
  readonly cookie: number;
  readonly space: number;
  readonly offset: number;
}

/** Sends under way at most; more wait, the most urgent first. */
const MAX_SENDS = 32;
/** Tags for data: 1 to this. MPI promises tags up to 32767. */
const MAX_TAG = 32_000;
const KEY_SEQUENCE = 4096;
const KEY_RANK = 1024;

/** Largest number of ranks keys have room for. */
export const MAX_RANKS: number = KEY_RANK;

/** Names the `sequence`-th transfer of datum `gid` from `origin` to the receiver. */
export function keyOf(gid: number, origin: number, sequence: number): number {
  return (gid * KEY_RANK + origin) * KEY_SEQUENCE + (sequence & (KEY_SEQUENCE - 1));
}

export class NetworkDevice implements NetworkSink {
  readonly port: NetworkPort;
  readonly wire: WireWriter;
  /** Flushes asked for. */
  flushes = 0;
  era = 0;
  private readonly spaces: readonly NetworkSpace[];
  private readonly options: NetworkOptions;
  private readonly listener: NetworkListener;
  private readonly offers: Map<number, Offer> = new Map();
  private readonly requests: Map<number, Request> = new Map();
  private readonly tags: Set<number> = new Set();
  private readonly waitingSends: WaitingSend[] = [];
  /** Receives into device memory that ended in this poll and need a flush, by space. */
  private readonly unflushed: (Finished[] | undefined)[] = [];
  private sends = 0;
  private stagedFetches = 0;
  private readonly waitingFetches: WaitingFetch[] = [];
  private nextOffer = 1;
  private nextRequest = 1;
  private nextTag = 1;
  private readonly later: { from: number; bytes: Uint8Array }[] = [];

  constructor(
    port: NetworkPort,
    spaces: readonly NetworkSpace[],
    options: NetworkOptions,
    listener: NetworkListener,
  ) {
    this.port = port;
    this.wire = new WireWriter(port);
    this.spaces = spaces;
    this.options = options;
    this.listener = listener;
  }

  /** Whether a payload of that size travels in its announcement. */
  isInline(bytes: number): boolean {
    return (
      bytes <= this.options.inlineBytes &&
      bytes <= this.wire.roomFor(Announce.firstChild + 2 * this.port.size)
    );
  }

  /** Requests and offers under way. */
  get underWay(): number {
    return this.requests.size + this.offers.size;
  }

  // --- Sending ------------------------------------------------------------------------------------------------------

  /**
   * Offers `bytes` at `offset` of `space` to destinations, given as pairs (rank, sequence). With `payload` (the bytes
   * themselves, when small) the offer is over at once and `offerDone` is not called.
   */
  offer(
    cookie: number,
    gid: number,
    origin: number,
    destinations: readonly number[],
    space: number,
    offset: number,
    bytes: number,
    priority: number,
    payload: Uint8Array | undefined,
  ): void {
    const branches = tree(destinations, this.options.treeFrom);
    let id = 0;
    if (payload === undefined) {
      id = this.nextOffer++;
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
    const fromDevice = this.spaces[space].kind !== 'host';
    for (const branch of branches) {
      const [rank, sequence, ...children] = branch as [number, number, ...number[]];
      const fields = Announce.firstChild + children.length;
      const at = this.wire.begin(rank, Wire.activate, fields, payload === undefined ? 0 : bytes);
      const words = this.wire.words(rank);
      words[at + Announce.era] = this.era;
      words[at + Announce.gid] = gid;
      words[at + Announce.sequence] = sequence;
      words[at + Announce.origin] = origin;
      words[at + Announce.bytes] = bytes;
      words[at + Announce.offer] = id;
      words[at + Announce.space] = space;
      words[at + Announce.offset] = offset;
      words[at + Announce.flags] =
        (payload === undefined ? 0 : AnnounceFlag.inline) |
        (fromDevice ? AnnounceFlag.fromDevice : 0);
      words[at + Announce.priority] = priority;
      words[at + Announce.children] = children.length;
      for (let i = 0; i < children.length; i++) words[at + Announce.firstChild + i] = children[i];
      if (payload !== undefined) this.wire.payload(rank, at + fields, bytes).set(payload);
    }
  }

  /** Tells destinations that what they wait for will not come. Trees are not used: it is rare. */
  poison(gid: number, origin: number, destinations: readonly number[]): void {
    for (let i = 0; i < destinations.length; i += 2) {
      const at = this.wire.begin(destinations[i], Wire.activate, Announce.firstChild, 0);
      const words = this.wire.words(destinations[i]);
      words.fill(0, at + 2, at + Announce.firstChild);
      words[at + Announce.era] = this.era;
      words[at + Announce.gid] = gid;
      words[at + Announce.sequence] = destinations[i + 1];
      words[at + Announce.origin] = origin;
      words[at + Announce.flags] = AnnounceFlag.poisoned;
    }
  }

  /** The run of these offers failed: nobody new is served; sends under way end. */
  abandon(which: (cookie: number) => boolean): void {
    for (const offer of [...this.offers.values()]) {
      if (!which(offer.cookie)) continue;
      offer.abandoned = true;
      offer.outcome = NetOutcome.cancelled;
      this.settleOffer(offer);
    }
  }

  private settleOffer(offer: Offer): void {
    if (offer.inFlight > 0 || (offer.remaining > 0 && !offer.abandoned)) return;
    if (this.offers.delete(offer.id)) this.listener.offerDone(offer.cookie, offer.outcome);
  }

  private startSend(send: WaitingSend): void {
    const { offer } = send;
    this.sends++;
    const id = this.newRequest(
      'send',
      offer.cookie,
      offer,
      send.to,
      0,
      offer.space,
      offer.bytes,
      'direct',
      send.tag,
    );
    this.port.send(send.to, send.tag, offer.space, offer.offset, offer.bytes, send.mode, id);
  }

  private get(from: number, record: WireRecord): void {
    const { words, at } = record;
    const offer = this.offers.get(words[at + 3]);
    if (offer === undefined || offer.abandoned) {
      this.wire.write(from, Wire.refused, [words[at + 2], words[at + 6]]);
      return;
    }
    offer.inFlight++;
    const send = { offer, to: from, tag: words[at + 4], mode: words[at + 5] };
    if (this.sends < MAX_SENDS) {
      this.startSend(send);
      return;
    }
    let i = this.waitingSends.length;
    while (i > 0 && this.waitingSends[i - 1].offer.priority < offer.priority) i--;
    this.waitingSends.splice(i, 0, send);
  }

  private sendOver(request: Request, outcome: number): void {
    const offer = request.offer as Offer;
    this.sends--;
    offer.inFlight--;
    offer.remaining--;
    if (outcome !== NetOutcome.ok) offer.outcome = outcome;
    this.settleOffer(offer);
    while (this.sends < MAX_SENDS && this.waitingSends.length > 0) {
      this.startSend(this.waitingSends.shift() as WaitingSend);
    }
  }

  // --- Receiving ----------------------------------------------------------------------------------------------------

  /** Fetches an announced version into `space` at `offset`; `received` follows. Not for inline ones. */
  fetch(announcement: Announcement, cookie: number, space: number, offset: number): void {
    const { from, bytes } = announcement;
    const toDevice = this.spaces[space].kind !== 'host';
    const { comm } = this.options;
    if ((comm === 'auto' || comm === 'ipc') && this.port.mappable(from, announcement.space)) {
      const id = this.newRequest(
        'ipc',
        cookie,
        undefined,
        from,
        announcement.offer,
        space,
        bytes,
        'ipc',
        0,
      );
      this.port.ipcRead(from, announcement.space, announcement.offset, space, offset, bytes, id);
      return;
    }
    const staged = comm === 'staged' && (toDevice || announcement.fromDevice);
    if (staged && this.stagedFetches >= this.port.stagedReceives) {
      let i = this.waitingFetches.length;
      while (i > 0 && this.waitingFetches[i - 1].announcement.priority < announcement.priority) i--;
      this.waitingFetches.splice(i, 0, { announcement, cookie, space, offset });
      return;
    }
    if (staged) this.stagedFetches++;
    const mode = staged ? WireMode.staged : WireMode.direct;
    const tag = this.takeTag();
    const way = staged ? 'staged' : 'direct';
    const id = this.newRequest(
      'receive',
      cookie,
      undefined,
      from,
      announcement.offer,
      space,
      bytes,
      way,
      tag,
    );
    this.port.receive(from, tag, space, offset, bytes, mode, id);
    this.wire.write(from, Wire.get, [this.era, announcement.offer, tag, mode, id]);
  }

  private stagedFetchOver(): void {
    this.stagedFetches--;
    const next = this.waitingFetches.shift();
    if (next !== undefined) this.fetch(next.announcement, next.cookie, next.space, next.offset);
  }

  private takeTag(): number {
    do {
      this.nextTag = this.nextTag === MAX_TAG ? 1 : this.nextTag + 1;
    } while (this.tags.has(this.nextTag));
    this.tags.add(this.nextTag);
    return this.nextTag;
  }

  private newRequest(
    kind: Request['kind'],
    cookie: number,
    offer: Offer | undefined,
    from: number,
    remoteOffer: number,
    space: number,
    bytes: number,
    way: NetworkWay,
    tag: number,
    covered: readonly Finished[] = [],
  ): number {
    const id = this.nextRequest;
    this.nextRequest = id === 0x3fffffff ? 1 : id + 1;
    this.requests.set(id, {
      kind,
      cookie,
      offer,
      from,
      remoteOffer,
      space,
      bytes,
      way,
      tag,
      covered,
    });
    return id;
  }

  private receiveOver(finished: Finished, outcome: number): void {
    const { request } = finished;
    const { space, way } = request;
    const needsFlush =
      outcome === NetOutcome.ok &&
      way === 'direct' &&
      this.options.flush !== 'off' &&
      this.spaces[space].kind !== 'host';
    if (needsFlush) {
      const list = this.unflushed[space];
      if (list === undefined) this.unflushed[space] = [finished];
      else list.push(finished);
    } else this.deliver(finished, outcome);
  }

  private deliver({ request, start, end }: Finished, outcome: number): void {
    this.listener.received(request.cookie, outcome, request.way, request.bytes, start, end);
  }

  /** One flush per device and batch of completions, before any of them counts as arrived. */
  private flushBatches(): void {
    for (let space = 1; space < this.unflushed.length; space++) {
      const covered = this.unflushed[space];
      if (covered === undefined) continue;
      this.unflushed[space] = undefined;
      this.flushes++;
      const id = this.newRequest('flush', 0, undefined, 0, 0, space, 0, 'direct', 0, covered);
      this.port.flush(space, id);
    }
  }

  // --- Events -------------------------------------------------------------------------------------------------------

  /** Takes what has arrived; true when anything did. */
  poll(): boolean {
    const moved = this.port.poll(this);
    if (moved) this.flushBatches();
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
      const isData = record.kind <= Wire.refused;
      if (isData && record.words[record.at + 2] > this.era) {
        // The sender has heard of the end of an era before us: its messages wait for ours.
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
    const isCurrent = words[at + 2] === this.era;
    switch (record.kind) {
      case Wire.activate:
        if (isCurrent) this.listener.announced(announcementOf(from, record));
        break;
      case Wire.get:
        this.get(from, record);
        break;
      case Wire.done: {
        const offer = isCurrent ? this.offers.get(words[at + 3]) : undefined;
        if (offer === undefined) break;
        offer.remaining--;
        this.settleOffer(offer);
        break;
      }
      case Wire.refused:
        if (this.requests.has(words[at + 3])) this.port.cancel(words[at + 3]);
        break;
      default:
        this.listener.control(from, record);
    }
  }

  done(id: number, outcome: number, start: number, end: number): void {
    const request = this.requests.get(id);
    if (request === undefined) return;
    this.requests.delete(id);
    switch (request.kind) {
      case 'send':
        this.sendOver(request, outcome);
        break;
      case 'receive':
        this.tags.delete(request.tag);
        this.receiveOver({ request, start, end }, outcome);
        if (request.way === 'staged') this.stagedFetchOver();
        break;
      case 'ipc':
        this.wire.write(request.from, Wire.done, [this.era, request.remoteOffer]);
        this.receiveOver({ request, start, end }, outcome);
        break;
      case 'flush':
        for (const finished of request.covered) this.deliver(finished, outcome);
        break;
    }
  }

  lost(rank: number): void {
    // First of all the reason, so that what ends because of it can name it.
    this.listener.lost(rank);
    for (const offer of [...this.offers.values()]) {
      offer.abandoned = true;
      offer.inFlight = 0;
      offer.outcome = NetOutcome.lost;
      this.settleOffer(offer);
    }
    this.waitingSends.length = 0;
    for (const { announcement, cookie } of this.waitingFetches.splice(0)) {
      this.listener.received(cookie, NetOutcome.lost, 'staged', announcement.bytes, 0, 0);
    }
  }

  /** A failed run is settled on all ranks: what was said before counts no more. */
  beginEra(era: number): void {
    this.era = era;
    const early = this.later.splice(0);
    for (const { from, bytes } of early) this.message(from, bytes);
  }
}

function announcementOf(from: number, record: WireRecord): Announcement {
  const { words, at } = record;
  const count = words[at + Announce.children];
  const bytes = words[at + Announce.bytes];
  const flags = words[at + Announce.flags];
  const first = at + Announce.firstChild;
  const origin = words[at + Announce.origin];
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
    isPoisoned: (flags & AnnounceFlag.poisoned) !== 0,
    payload:
      (flags & AnnounceFlag.inline) === 0
        ? undefined
        : payloadOf(record, first + count, bytes).slice(),
  };
}

/** The error for a transfer that did not end well. */
export function transferError(outcome: number, datum: string, peer: number): HeadraceError {
  const words = OUTCOME_NAMES[outcome] ?? `outcome ${outcome}`;
  const code =
    outcome === NetOutcome.lost
      ? 'ERR_PEER_LOST'
      : outcome === NetOutcome.flush
        ? 'ERR_FLUSH_FAILED'
        : 'ERR_TRANSFER_FAILED';
  return new HeadraceError(code, `datum '${datum}' from rank ${peer}: ${words}`, {
    datum,
    rank: peer,
    stage: 'comm-in',
  });
}
