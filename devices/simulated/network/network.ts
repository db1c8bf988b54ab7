// The network between simulated ranks, in virtual time: messages, the letters and bytes of lanes, flushes, and lost ranks. The
// kinds of messages are above the port.
//
// The promise of MPI holds: messages from one rank to another arrive in the order posted. Everything else is open: the
// duration of a message, the order of letters, the order in which several transfers end. A send reads its source as late as
// it can; bytes may count as received although they are still under way to the view of other devices (watcher.ts).
// Invariant: after a rank is lost nothing arrives any more.
import { NetOutcome, VisibleTo, WireMode } from '../../network/port.js';
import type { Adversary } from '../machine/adversary.js';
import type { Departure } from '../machine/lane-offers.js';
import type { Carrier, LanePlace, Letter } from '../machine/lanes.js';
import type { Link } from '../machine/machine.js';
import type { World } from '../machine/world.js';
import { SimulatedPort, type Station } from './port.js';
import type { NetworkWatcher } from './watcher.js';

interface SimulatedNetworkOptions {
  readonly link: Link;
  /** Ranks that share a host and can map each other's memory; default 1. */
  readonly ranksPerHost?: number;
  /** Limit of control messages of a rank under way; more are refused for the moment. */
  readonly room?: number;
  readonly adversary: Adversary;
  /** Destinations from which on long versions on lanes go along a tree; default: never. */
  readonly treeFrom?: number;
  /** A `VisibleTo`: the readers that see the card's writes to a device without a flush; default none for sure. */
  readonly ordering?: number;
  readonly watcher?: NetworkWatcher;
  /** Nanoseconds that the n-th control message is late. */
  readonly lateBy?: (message: number) => number;
  /** The fate of the n-th flush of a rank: it fails, or waits until the rank has news. */
  readonly flushFault?: (rank: number, flush: number) => 'fails' | 'waits' | undefined;
}

/** Bytes of a memory space of a rank. */
interface Place {
  readonly rank: number;
  readonly space: number;
  readonly offset: number;
  readonly bytes: number;
}

const FLUSH_NS = 1000;
/** Time between two looks of the thread that flushes. */
const LOOK_NS = 500;
/** Bytes of a buffer of messages. */
const SLAB = 65_536;
/** A flush that has not returned by then gets its answer as late (docs/network.md). */
const FLUSH_DEADLINE_NS = 5e9;

export class SimulatedNetwork {
  readonly ports: SimulatedPort[] = [];
  readonly options: SimulatedNetworkOptions;
  /** Control messages and transfers so far. */
  messages = 0;
  transfers = 0;
  isLost = false;
  private readonly world: World;
  /** By the pair of ranks (from, to), of pairs that sent messages: when the last one arrives. */
  private readonly lastArrival: Map<number, number> = new Map();
  private readonly outFree: Float64Array;
  private readonly inFree: Float64Array;
  private readonly latency: number;
  private readonly bandwidth: number;
  private readonly closing: (() => void)[] = [];
  private closed = 0;
  private slab: Uint8Array = new Uint8Array(0);
  private slabUsed: number = SLAB;
  /** Bytes for lanes that the card has written and no flush covers, by rank and space. */
  private readonly unflushed: Map<
    number,
    { scope: number; readonly covered: ((outcome: number) => void)[] }
  > = new Map();
  /** Flushes that wait for news of their rank. */
  private held: { readonly rank: number; readonly end: (outcome: number) => void }[] = [];

  constructor(world: World, stations: readonly Station[], options: SimulatedNetworkOptions) {
    this.world = world;
    this.options = options;
    const n = stations.length;
    this.outFree = new Float64Array(n);
    this.inFree = new Float64Array(n);
    this.latency = options.link.latency * 1e9;
    this.bandwidth = options.link.bandwidth / 1e9;
    for (const station of stations) {
      const rank = this.ports.length;
      this.ports.push(new SimulatedPort(this, rank, n, station));
      station.connect(
        this.carrierOf(rank),
        (departure) => this.departed(rank, departure),
        (number, place) => this.ports[rank].arrives({ kind: 'came', number, place }),
      );
    }
  }

  /** Deliveries end without the engine. */
  private departed(rank: number, departure: Departure): void {
    const { number, span } = departure;
    if (number >= 0) this.ports[rank].arrives({ kind: 'departed', departure });
    else if (span !== undefined)
      this.options.watcher?.departs(rank, span.space, span.offset, span.bytes);
  }

  /** The world's time, nanoseconds. */
  get time(): number {
    return this.world.time;
  }

  private at(time: number, action: () => void): void {
    this.world.at(time, () => {
      if (!this.isLost) action();
    });
  }

  private stretched(ns: number): number {
    return this.options.adversary.stretch(ns);
  }

  // --- Messages ---------------------------------------------------------------------------------------------------

  post(from: number, to: number, bytes: Uint8Array, at: number): void {
    const late = this.options.lateBy?.(this.messages++) ?? 0;
    const pair = from * this.ports.length + to;
    const way = this.latency + bytes.length / this.bandwidth;
    const arrival = Math.max(this.lastArrival.get(pair) ?? 0, at + this.stretched(way) + late);
    this.lastArrival.set(pair, arrival);
    const copy = this.copyOf(bytes);
    const said = this.options.watcher?.says(from);
    this.at(arrival, () => {
      this.ports[from].delivered();
      this.ports[to].arrives({ kind: 'message', from, bytes: copy, said });
    });
  }

  /** A copy of a message: many share a buffer, because a buffer of its own costs more than a small message. */
  private copyOf(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (length > SLAB / 4) return bytes.slice();
    if (this.slabUsed + length > SLAB) {
      this.slab = new Uint8Array(SLAB);
      this.slabUsed = 0;
    }
    const copy = this.slab.subarray(this.slabUsed, this.slabUsed + length);
    copy.set(bytes);
    // Messages are rows of words.
    this.slabUsed += Math.ceil(length / 8) * 8;
    return copy;
  }

  /** A lane's letter: it may overtake others, and messages. */
  private carry(to: number, bytes: number, letter: Letter): void {
    const late = this.options.lateBy?.(this.messages++) ?? 0;
    const way = this.stretched(this.latency + bytes / this.bandwidth);
    this.at(this.world.time + way + late, () => this.ports[to].station.letterArrives(letter));
  }

  /** The network, as the lanes of a rank see it. */
  private carrierOf(rank: number): Carrier {
    return {
      rank,
      treeFrom: this.options.treeFrom ?? Number.POSITIVE_INFINITY,
      wayOf: (from, fromSpace, space) => this.ports[rank].wayOf(from, fromSpace, space),
      carry: (to, letter) =>
        this.carry(to, letter.offered === undefined ? letter.bytes : 0, letter),
      fetch: (letter, place, fetched, refused) => this.fetch(rank, letter, place, fetched, refused),
      decline: (letter) => this.later(() => this.ports[letter.from].station.declined(letter)),
    };
  }

  /** Something short reaches another rank's lanes. */
  private later(action: () => void): void {
    const late = this.options.lateBy?.(this.messages++) ?? 0;
    this.at(this.world.time + this.stretched(this.latency) + late, action);
  }

  /** The lanes of rank `to` ask for the bytes of an offer, or read them. They leave as late as they can. */
  private fetch(
    to: number,
    { from, bytes, offered }: Letter,
    place: LanePlace,
    fetched: (outcome: number) => void,
    refused: () => void,
  ): void {
    if (offered === undefined) throw new Error('only announced versions are fetched');
    const { station } = this.ports[from];
    const { id, space, offset } = offered;
    const there = { rank: from, space, offset, bytes };
    const here = { rank: to, space: place.space, offset: place.offset, bytes };
    if (place.mode === WireMode.mapped) {
      this.transfers++;
      const end = this.world.time + this.stretched(this.latency + bytes / this.bandwidth);
      this.at(end, () => {
        this.put(here, this.take(there), true);
        this.later(() => station.offers.taken(id));
        fetched(NetOutcome.ok);
      });
      return;
    }
    this.later(() => {
      const span = station.offers.asked(id, place.mode);
      if (span === undefined) {
        this.later(refused);
        return;
      }
      this.transfers++;
      const begin = Math.max(this.world.time, this.outFree[from], this.inFree[to]);
      const wire = this.stretched(bytes / this.bandwidth);
      this.outFree[from] = begin + wire;
      this.inFree[to] = begin + wire;
      const sent = begin + wire + this.stretched(this.latency);
      this.at(sent, () => {
        const cargo = this.take(there);
        station.offers.sent(id, begin, sent);
        this.at(sent + this.stretched(this.latency), () => {
          this.put(here, cargo, place.mode === WireMode.staged);
          this.flushed(to, place, fetched);
        });
      });
    });
  }

  /** Calls `fetched` when the bytes in their place are flushed: one flush covers all that have come until the next look. */
  private flushed(
    rank: number,
    { space, scope }: LanePlace,
    fetched: (outcome: number) => void,
  ): void {
    if (scope === VisibleTo.none) {
      fetched(NetOutcome.ok);
      return;
    }
    const key = rank * this.ports[rank].station.spaces.length + space;
    const batch = this.unflushed.get(key);
    if (batch !== undefined) {
      batch.scope = Math.max(batch.scope, scope);
      batch.covered.push(fetched);
      return;
    }
    const covered = [fetched];
    const fresh = { scope, covered };
    this.unflushed.set(key, fresh);
    this.at(this.world.time + this.stretched(LOOK_NS), () => {
      this.unflushed.delete(key);
      this.flush(this.ports[rank], space, fresh.scope, this.world.time, (outcome) => {
        for (const each of covered) each(outcome);
      });
    });
  }

  private take({ rank, space, offset, bytes }: Place): Cargo {
    return {
      bytes: this.ports[rank].station.memory(space)?.slice(offset, offset + bytes),
      stamps: this.options.watcher?.leaves(rank, space, offset, bytes),
    };
  }

  private put({ rank, space, offset, bytes }: Place, cargo: Cargo, isCopied: boolean): void {
    if (cargo.bytes !== undefined) this.ports[rank].station.memory(space)?.set(cargo.bytes, offset);
    if (cargo.stamps !== undefined)
      this.options.watcher?.arrives(rank, space, offset, bytes, cargo.stamps, isCopied);
  }

  /** Requested at `at`; the writes that had arrived by then become visible to `scope`, and `over` is called. */
  flush(
    port: SimulatedPort,
    space: number,
    scope: number,
    at: number,
    over: (outcome: number) => void,
  ): void {
    const { rank } = port;
    const fault = this.options.flushFault?.(rank, port.countFlush());
    const { watcher } = this.options;
    const writes = watcher?.flushBegins() ?? 0;
    let isOver = false;
    const end = (outcome: number): void => {
      if (isOver) return;
      isOver = true;
      if (outcome === NetOutcome.ok) watcher?.flushes(rank, space, scope);
      else watcher?.flushFails(rank, space, writes);
      over(outcome);
    };
    const back = at + this.stretched(FLUSH_NS);
    this.at(back, () => {
      if (fault !== 'waits') end(fault === 'fails' ? NetOutcome.flush : NetOutcome.ok);
      else this.held.push({ rank, end });
    });
    if (fault === 'waits') this.at(back + FLUSH_DEADLINE_NS, () => end(NetOutcome.flushTimeout));
  }

  /** A rank has news: flushes that waited for that return. */
  heard(rank: number): void {
    const { held } = this;
    if (held.length === 0) return;
    this.held = held.filter((flush) => flush.rank !== rank);
    for (const flush of held) if (flush.rank === rank) flush.end(NetOutcome.ok);
  }

  // --- Ends -------------------------------------------------------------------------------------------------------

  /** A rank's process dies: everything under way ends as lost, on all ranks. */
  lose(rank: number): void {
    if (this.isLost) return;
    this.ports[rank].station.die();
    const { ports } = this;
    for (const port of ports) if (port.rank !== rank) port.loses(rank);
    this.isLost = true;
    this.options.watcher?.stops();
  }

  /** Resolves when all ranks have closed. */
  closes(): Promise<void> {
    this.closed++;
    return new Promise((resolve) => {
      this.closing.push(resolve);
      if (this.closed === this.ports.length || this.isLost)
        for (const each of this.closing.splice(0)) each();
    });
  }
}

interface Cargo {
  readonly bytes: Uint8Array | undefined;
  readonly stamps: Int32Array | undefined;
}
