// The lanes of a simulated rank: sends that leave when their bytes may leave, and receives that end when their version has
// come. The network carries letters between ranks; a letter is one version for one receive, or announces one
// (lane-offers.ts).
//
// Invariants: a letter is handed to exactly one receive, of its era and key; a letter without a receive is kept as long
// as its era lasts; no send leaves while a record has failed that the engine has not handled; an announcement is answered
// by the receive that takes it, when the engine refuses it, or when its era is over.
import type { QueueId } from '../../handles.js';
import type { AnnouncedPlace } from '../../network/port.js';
import { LaneOffers } from './lane-offers.js';

/** An offer of a long version to a rank. */
export interface Offered {
  /** The sender's number for it. */
  readonly id: number;
  /** Memory space of the bytes there, and their place in it. */
  readonly space: number;
  readonly offset: number;
  /** Pairs (rank, key) to which the version goes on. */
  readonly children: readonly number[];
}

/** One version on its way to one receive. */
export interface Letter {
  /** The rank that sends it. */
  readonly from: number;
  readonly era: number;
  readonly key: number;
  readonly bytes: number;
  /** Its contents, where memory is real. */
  readonly payload: Uint8Array | undefined;
  /** What the sender knew. */
  readonly knowledge: Int32Array | undefined;
  /** The version itself must be fetched. */
  readonly offered: Offered | undefined;
}

/** The network, as the lanes of a rank see it. */
export interface Carrier {
  readonly rank: number;
  /** Destinations from which on a long version goes along a tree. */
  readonly treeFrom: number;
  /** The `WireMode` of bytes from a space of a rank into a space of this one, for receives that leave it open. */
  wayOf(rank: number, fromSpace: number, space: number): number;
  /** Takes a letter to a rank. */
  carry(to: number, letter: Letter): void;
  /**
   * Fetches the bytes that a letter announces. `fetched` gets a `NetOutcome` when they are in their place. After the loss of a
   * rank neither answer comes.
   */
  fetch(
    letter: Letter,
    place: LanePlace,
    fetched: (outcome: number) => void,
    refused: () => void,
  ): void;
  /** Tells the rank that has announced a version that this one needs no bytes, and does not pass them on. */
  decline(letter: Letter): void;
}

/** Where the bytes of an announced version go, and how. */
export interface LanePlace {
  readonly space: number;
  readonly offset: number;
  /** A `WireMode`. */
  readonly mode: number;
  /** A `VisibleTo`: who must see the bytes when they are fetched. */
  readonly scope: number;
}

/** A receive that waits for its letter. */
interface Waiting {
  readonly queue: QueueId;
  readonly run: number;
}

export class Lanes {
  /** Set when the rank joins a network. */
  carrier: Carrier | undefined;
  readonly offers: LaneOffers = new LaneOffers();
  isLost = false;
  /** Failed records of all queues, and how many of them the engine has handled. */
  failed = 0;
  private handled = 0;
  era = 0;
  private declinedTo = 0;
  /** Pairs to which fetched versions go on, until an offer takes them. */
  private readonly branches: Map<string, readonly number[]> = new Map();
  /** Receives whose bytes are on their way, by lane. */
  private readonly fetching: Map<QueueId, Waiting & { readonly name: string }> = new Map();
  private readonly early: Map<string, Letter> = new Map();
  private readonly waiting: Map<string, Waiting> = new Map();
  private readonly held: QueueId[] = [];
  /** The receive that the engine has withdrawn last, by lane. */
  private readonly withdrawn: Map<QueueId, number> = new Map();
  /** Versions of receives that come to their turn, or are commanded, behind the failure of a run. */
  private readonly wanted: Set<string> = new Set();
  /** Versions that no receive takes and that have not come. */
  private readonly unwanted: Set<string> = new Set();
  /** The news that a version has come, by the version; and who gets them. */
  private readonly expected: Map<string, number> = new Map();
  came: (number: number, from: AnnouncedPlace) => void = () => {};
  private refusedCalls: { from: number; until: number; above: number } | undefined;

  /** Whether a record has failed that the engine does not know yet. */
  get unhandled(): boolean {
    return this.failed !== this.handled;
  }

  /** The engine has handled `count` failures. Returns the lanes that were held and may go on. */
  handles(count: number): QueueId[] {
    this.handled = count;
    return this.unhandled ? [] : this.held.splice(0);
  }

  /** A lane is held until the engine has handled all failures, or until its run is cancelled. */
  hold(queue: QueueId): void {
    this.held.push(queue);
  }

  /** Takes the letter for a receive; undefined: the lane waits for it. */
  take(era: number, key: number, queue: QueueId, run: number): Letter | undefined {
    const name = `${era} ${key}`;
    const letter = this.early.get(name);
    if (letter === undefined || this.isOutOfReach(letter)) {
      this.waiting.set(name, { queue, run });
      return undefined;
    }
    this.early.delete(name);
    return letter;
  }

  /** A letter has come. Returns the lane that waits for it, or keeps it. */
  arrives(letter: Letter): QueueId | undefined {
    if (this.isOutOfReach(letter)) return undefined;
    if (letter.era < this.era) {
      this.decline(letter);
      return undefined;
    }
    const name = `${letter.era} ${letter.key}`;
    const receive = this.waiting.get(name);
    if (receive === undefined) {
      const isOld = letter.offered !== undefined && letter.era < this.declinedTo;
      const isLate = isOld && !this.wanted.has(name);
      if (isLate || this.isRefused(letter, name)) {
        this.unwanted.delete(name);
        this.decline(letter);
        return undefined;
      }
      this.early.set(name, letter);
      const number = this.expected.get(name);
      if (this.expected.delete(name)) this.came(number as number, placeOf(letter));
      return undefined;
    }
    this.waiting.delete(name);
    return receive.queue;
  }

  /** After the loss of a rank nothing is fetched: the receive waits for the end of its run. */
  private isOutOfReach({ offered }: Letter): boolean {
    return this.isLost && offered !== undefined;
  }

  /** A run is cancelled: returns the lanes whose receives no longer wait, and those that were held. */
  cancel(run: number): { readonly receives: QueueId[]; readonly held: QueueId[] } {
    const receives: QueueId[] = [];
    for (const [name, each] of this.waiting) {
      if (each.run !== run) continue;
      this.waiting.delete(name);
      receives.push(each.queue);
    }
    return { receives, held: this.held.splice(0) };
  }

  /** Letters of earlier eras have no receive any more. */
  beginEra(era: number): void {
    this.era = era;
    for (const [name, letter] of this.early) {
      if (letter.era >= era) continue;
      this.early.delete(name);
      this.decline(letter);
    }
    for (const names of [this.branches, this.unwanted, this.expected, this.wanted])
      for (const name of names.keys()) if (Number.parseInt(name, 10) < era) names.delete(name);
  }

  /** The receive that is command `seq` of a lane must not wait; true if it did. */
  withdraw(queue: QueueId, seq: number): boolean {
    this.withdrawn.set(queue, seq);
    return this.stopWaiting(queue);
  }

  isWithdrawn(queue: QueueId, seq: number): boolean {
    return this.withdrawn.get(queue) === seq;
  }

  /** The lane waits for its letter no more; false: it has not waited. */
  stopWaiting(queue: QueueId): boolean {
    for (const [name, each] of this.waiting) {
      if (each.queue !== queue) continue;
      this.waiting.delete(name);
      this.unwanted.add(name);
      return true;
    }
    return false;
  }

  /** The news with that number follow when the version has come. */
  expect(era: number, key: number, number: number): void {
    const name = `${era} ${key}`;
    const letter = this.early.get(name);
    if (letter !== undefined) this.came(number, placeOf(letter));
    else if (era >= this.era) this.expected.set(name, number);
  }

  /** No receive takes that version. */
  refuse(era: number, key: number): void {
    if (era < this.era) return;
    const name = `${era} ${key}`;
    const letter = this.early.get(name);
    if (letter === undefined) this.unwanted.add(name);
    else {
      this.early.delete(name);
      this.decline(letter);
    }
  }

  /** No receive takes versions of those calls. */
  refuseCalls(from: number, until: number, above: number): void {
    this.refusedCalls = { from, until, above };
    for (const [name, letter] of this.early) {
      if (!this.isRefused(letter, name)) continue;
      this.early.delete(name);
      this.decline(letter);
    }
  }

  private isRefused({ era, key }: Letter, name: string): boolean {
    if (this.unwanted.has(name)) return true;
    const { from, until, above } = this.refusedCalls ?? { from: 0, until: 0, above: 0 };
    return key < 0 && key > above && era >= from && era < until;
  }

  /** A receive takes that version, or refuses it. */
  want(era: number, key: number): void {
    if (era >= this.era) this.wanted.add(`${era} ${key}`);
  }

  /** Long versions of earlier eras are declined, unless a receive waits for them or wants them. */
  declineBefore(era: number): void {
    this.declinedTo = Math.max(this.declinedTo, era);
    for (const [name, letter] of this.early) {
      if (letter.era >= era || letter.offered === undefined || this.wanted.has(name)) continue;
      this.early.delete(name);
      this.decline(letter);
    }
  }

  /** The version of a letter is not needed here. */
  decline(letter: Letter): void {
    if (letter.offered !== undefined && !this.isLost) this.carrier?.decline(letter);
  }

  /** The lane has asked for the bytes that a letter announces. */
  fetches({ era, key }: Letter, children: readonly number[], queue: QueueId, run: number): void {
    const name = `${era} ${key}`;
    if (children.length > 0) this.branches.set(name, children);
    this.fetching.set(queue, { name, queue, run });
  }

  /** The bytes have come. */
  fetched(queue: QueueId): void {
    this.fetching.delete(queue);
  }

  /** The bytes will not come: the receive waits for the end of its run. */
  refused(queue: QueueId): void {
    const receive = this.fetching.get(queue);
    this.fetching.delete(queue);
    if (receive !== undefined) this.waiting.set(receive.name, receive);
  }

  /** A rank is lost. Returns the lanes whose bytes were on their way. */
  lost(): QueueId[] {
    this.isLost = true;
    return [...this.fetching.keys()];
  }

  /** The pairs to which the version with that name goes on. */
  takeBranches(era: number, key: number): readonly number[] {
    const name = `${era} ${key}`;
    const pairs = this.branches.get(name) ?? [];
    this.branches.delete(name);
    return pairs;
  }
}

function placeOf({ from, offered }: Letter): AnnouncedPlace {
  const forwards = offered !== undefined && offered.children.length > 0;
  return { rank: from, space: offered?.space ?? 0, forwards };
}
