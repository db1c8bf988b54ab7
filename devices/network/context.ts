// The state that both directions of the network share: the port, the wire, the listener, the era, and the requests that
// the port has not answered yet.
// Invariant: a request's number is in the table from the moment the port gets it until the port reports its end.

import type { Announcement } from './announcement.js';
import type { AnnouncedPlace, NetworkPort } from './port.js';
import { type WireRecord, WireWriter } from './wire.js';

/** How bytes between ranks travel. */
export type CommMode = 'auto' | 'direct' | 'staged' | 'ipc';
/** When writes of the network to device memory are flushed. */
export type FlushPolicy = 'auto' | 'force' | 'off';

/** The way a payload took. */
export type NetworkWay = 'ipc' | 'direct' | 'staged' | 'inline';

/** When the bytes of a message moved, in nanoseconds on this rank's clock. */
export interface NetworkTimes {
  readonly start: number;
  readonly end: number;
}

/** A mapped read by the receiver and a payload in the announcement have no times on this rank. */
export const NO_TIMES: NetworkTimes = { start: 0, end: 0 };

/** The part of a memory space that the device needs. */
export interface NetworkSpace {
  readonly kind: string;
}

export interface NetworkOptions {
  readonly comm: CommMode;
  readonly flush: FlushPolicy;
  /** Payloads up to this size travel in the announcement. */
  readonly inlineBytes: number;
  /** Number of destinations from which on a tree is used. */
  readonly treeFrom: number;
}

/** Gets a call for every event of the network. */
export interface NetworkListener {
  announced(announcement: Announcement): void;
  /** A receive is over. `outcome` is a NetOutcome; refused ones end as cancelled. */
  received(
    cookie: number,
    outcome: number,
    way: NetworkWay,
    bytes: number,
    times: NetworkTimes,
  ): void;
  /** Destination `to` has the bytes of an offer, whose number is `message` on both sides. */
  sent(
    cookie: number,
    to: number,
    message: number,
    way: NetworkWay,
    bytes: number,
    times: NetworkTimes,
  ): void;
  /** No destination needs the bytes of a lane's offer any more. */
  departed(number: number, outcome: number, way: NetworkWay, times: NetworkTimes): void;
  /** The version that was expected with that number has come, or its announcement (`NetworkPort.expect`). */
  came(number: number, from: AnnouncedPlace): void;
  /** No destination needs the offer's bytes any more. */
  offerDone(cookie: number, outcome: number): void;
  /** A record that is not about data. */
  control(from: number, record: WireRecord): void;
  lost(rank: number): void;
}

/** A send under way belongs to an offer. */
export interface Offer {
  readonly id: number;
  readonly cookie: number;
  readonly space: number;
  readonly offset: number;
  readonly bytes: number;
  readonly priority: number;
  /** Destinations that have neither finished nor declined. */
  remaining: number;
  /** Sends under way. */
  inFlight: number;
  withdrawn: boolean;
  outcome: number;
}

/** A receive or mapped read under way. */
export interface Fetch {
  readonly kind: 'receive' | 'ipc';
  readonly cookie: number;
  readonly from: number;
  readonly remoteOffer: number;
  readonly space: number;
  readonly bytes: number;
  readonly way: NetworkWay;
  readonly tag: number;
  /** Other ranks may read the datum in the space of its arrival: this rank passes it on, or owns it. */
  readonly forwards: boolean;
}

/** A fetch whose bytes have arrived. */
export interface Finished {
  readonly fetch: Fetch;
  readonly times: NetworkTimes;
}

/** A request that the port has not answered. */
type Request =
  | Fetch
  | {
      readonly kind: 'send';
      readonly offer: Offer;
      readonly to: number;
      readonly way: NetworkWay;
    }
  /** `covered`: the receives that the flush covers. */
  | { readonly kind: 'flush'; readonly covered: readonly Finished[] };

const LAST_REQUEST = 0x3fffffff;

export class NetworkContext {
  readonly port: NetworkPort;
  readonly wire: WireWriter;
  readonly spaces: readonly NetworkSpace[];
  readonly options: NetworkOptions;
  readonly listener: NetworkListener;
  /** The present era: announcements of an earlier one are declined. */
  era = 0;
  private readonly requests: Map<number, Request> = new Map();
  private nextRequest = 1;

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

  /** Requests that the port has not answered. */
  get underWay(): number {
    return this.requests.size;
  }

  /** Enters a request; returns its number. */
  add(request: Request): number {
    const id = this.nextRequest;
    this.nextRequest = id === LAST_REQUEST ? 1 : id + 1;
    this.requests.set(id, request);
    return id;
  }

  has(id: number): boolean {
    return this.requests.has(id);
  }

  /** The request that is over; undefined if it is unknown. */
  take(id: number): Request | undefined {
    const request = this.requests.get(id);
    this.requests.delete(id);
    return request;
  }
}
