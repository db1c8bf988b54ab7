// One rank's end of the simulated network: the network port over virtual time.
// Invariant: messages are delivered in the order of arrival, and only when the engine polls.
import {
  type AnnouncedPlace,
  NetOutcome,
  type NetworkPort,
  type NetworkSink,
  VisibleTo,
  WireMode,
} from '../../network/port.js';
import type { Departure, LaneOffers } from '../machine/lane-offers.js';
import type { Carrier, Letter } from '../machine/lanes.js';
import type { SimulatedNetwork } from './network.js';

/** The part of a rank that the network needs. */
export interface Station {
  /** The engine's clock, nanoseconds. */
  now(): number;
  /** `poll` has news. */
  news(rings: boolean): void;
  /** Its memory spaces; the first is the host's. */
  readonly spaces: readonly unknown[];
  /** Its lanes send through `carrier`, and tell of offers that are over. */
  connect(
    carrier: Carrier,
    departed: (departure: Departure) => void,
    came: (number: number, from: AnnouncedPlace) => void,
  ): void;
  /** The offers of its lanes. */
  readonly offers: LaneOffers;
  /** Another rank is lost. */
  lost(): void;
  /** A letter for one of its lanes. */
  letterArrives(letter: Letter): void;
  /** Letters of earlier eras are forgotten. */
  beginEra(era: number): void;
  /** Long versions of earlier eras are declined, unless a receive waits for them. */
  declineBefore(era: number): void;
  /** ... but for that version, which a receive takes. */
  want(era: number, key: number): void;
  /** A rank needs no bytes of what this one has announced with that letter. */
  declined(letter: Letter): void;
  /** A receive ends as cancelled, and versions are dropped (NetworkPort). */
  withdraw(lane: number, sequence: number): void;
  refuse(era: number, key: number): void;
  refuseCalls(from: number, until: number, above: number): void;
  expect(era: number, key: number, number: number): void;
  /** Bytes of a space, where memory is real. */
  memory(space: number): Uint8Array | undefined;
  /** The rank's process is gone. */
  die(): void;
}

type Arrival =
  | {
      readonly kind: 'message';
      readonly from: number;
      readonly bytes: Uint8Array;
      readonly said: Int32Array | undefined;
    }
  | { readonly kind: 'departed'; readonly departure: Departure }
  | { readonly kind: 'came'; readonly number: number; readonly place: AnnouncedPlace }
  | { readonly kind: 'lost'; readonly rank: number };

const LONGEST_MESSAGE = 65_536;

export class SimulatedPort implements NetworkPort {
  readonly rank: number;
  readonly size: number;
  readonly longestMessage: number = LONGEST_MESSAGE;
  readonly library = 'simulated';
  readonly gpuAware = true;
  /** In virtual time spinning would never end. */
  readonly crowded = true;
  readonly station: Station;
  /** The `WireMode` of bytes from a space of a rank into a space of this one, for receives that leave it open. */
  wayOf: (rank: number, fromSpace: number, space: number) => number = () => WireMode.direct;
  private readonly network: SimulatedNetwork;
  private arrivals: Arrival[] = [];
  private underWay = 0;
  private sent = 0;
  private received = 0;
  private flushed = 0;

  constructor(network: SimulatedNetwork, rank: number, size: number, station: Station) {
    this.network = network;
    this.rank = rank;
    this.size = size;
    this.station = station;
  }

  get hostOnly(): boolean {
    return this.network.ports.every(({ station }) => station.spaces.length === 1);
  }

  // --- The engine's side --------------------------------------------------------------------------------------------

  mappable(rank: number, _space: number): boolean {
    const together = this.network.options.ranksPerHost ?? 1;
    return rank !== this.rank && Math.floor(rank / together) === Math.floor(this.rank / together);
  }

  reachable(_rank: number, _space: number): boolean {
    return true;
  }

  ordering(_space: number): number {
    return this.network.options.ordering ?? VisibleTo.none;
  }

  setWays(way: (rank: number, fromSpace: number, space: number) => number): void {
    this.wayOf = way;
  }

  post(rank: number, bytes: Uint8Array): boolean {
    if (this.underWay >= (this.network.options.room ?? Number.POSITIVE_INFINITY)) return false;
    this.sent++;
    this.underWay++;
    this.network.post(this.rank, rank, bytes, this.now());
    return true;
  }

  /** Counts a flush; returns how many there were before. */
  countFlush(): number {
    return this.flushed++;
  }

  commanded(): void {
    // The backend runs its lanes.
  }

  want(era: number, key: number): void {
    this.station.want(era, key);
  }

  declineBefore(era: number): void {
    this.station.declineBefore(era);
  }

  withdraw(lane: number, sequence: number): void {
    this.station.withdraw(lane, sequence);
  }

  refuse(era: number, key: number): void {
    this.station.refuse(era, key);
  }

  refuseCalls(from: number, until: number, above: number): void {
    this.station.refuseCalls(from, until, above);
  }

  expect(era: number, key: number, number: number): void {
    this.station.expect(era, key, number);
  }

  abandon(): void {
    this.station.offers.close(NetOutcome.cancelled);
  }

  beginEra(era: number): void {
    this.station.beginEra(era);
  }

  publish(): void {
    // Commands take effect at once.
  }

  poll(sink: NetworkSink): boolean {
    if (this.arrivals.length === 0) return false;
    const arrivals = this.arrivals;
    this.arrivals = [];
    const { watcher } = this.network.options;
    for (const each of arrivals) {
      if (each.kind === 'message') {
        this.received++;
        if (each.said !== undefined) watcher?.hears(this.rank, each.said);
        sink.message(each.from, each.bytes);
      } else if (each.kind === 'departed') {
        const { number, outcome, start, end, mode, span } = each.departure;
        if (span !== undefined) watcher?.departs(this.rank, span.space, span.offset, span.bytes);
        sink.departed(number, outcome, start, end, mode);
      } else if (each.kind === 'came') sink.came(each.number, each.place);
      else sink.lost(each.rank);
    }
    return true;
  }

  due(): boolean {
    return this.arrivals.length > 0;
  }

  setQuiet(): void {
    // No thread looks for messages.
  }

  counters(): { messagesSent: number; messagesReceived: number; flushes: number } {
    return { messagesSent: this.sent, messagesReceived: this.received, flushes: this.flushed };
  }

  close(): Promise<void> {
    return this.network.closes();
  }

  /** An engine that is ahead of the world acts at its own time, an overtaken one at the world's. */
  private now(): number {
    return Math.max(this.network.time, this.station.now());
  }

  // --- The network's side -------------------------------------------------------------------------------------------

  arrives(arrival: Arrival): void {
    this.arrivals.push(arrival);
    this.network.heard(this.rank);
    this.station.news(true);
  }

  /** A message of this rank has arrived elsewhere: there is room again, without a report. */
  delivered(): void {
    this.underWay--;
  }

  /** Another rank is gone. */
  loses(rank: number): void {
    this.arrives({ kind: 'lost', rank });
    this.station.lost();
  }
}
