// The long versions that the lanes of a simulated rank have announced, until no rank needs their bytes any more.
//
// Invariants: every rank that was told of an offer answers once: it asks or declines; an offer departs exactly once, when
// all have answered and no bytes of it are on their way.
import { NetOutcome, WireMode } from '../../network/port.js';

/** Bytes of a memory space. */
export interface Span {
  readonly space: number;
  readonly offset: number;
  readonly bytes: number;
}

/** The end of an offer. */
export interface Departure {
  /** Its number at the engine; below 0: of a delivery, of which the engine is not told. */
  readonly number: number;
  readonly outcome: number;
  /** When its bytes moved; 0 if none did. */
  readonly start: number;
  readonly end: number;
  /** How the last rank got them, a `WireMode`. */
  readonly mode: number;
  /** What other ranks could read until now; undefined: nothing was announced. */
  readonly span: Span | undefined;
}

interface Offer {
  readonly number: number;
  readonly span: Span;
  /** Ranks that have not answered. */
  open: number;
  underWay: number;
  outcome: number;
  start: number;
  end: number;
  mode: number;
}

export class LaneOffers {
  /** Set when the rank joins a network. */
  departed: (departure: Departure) => void = () => {};
  private isClosed: number | undefined;
  private readonly offers: Map<number, Offer> = new Map();
  private next = 1;

  /** The outcome of further offers; undefined: they are announced. */
  get refusal(): number | undefined {
    return this.isClosed;
  }

  /** Opens an offer to so many ranks; returns its number on the wire. */
  open(number: number, span: Span, ranks: number): number {
    const id = this.next++;
    const outcome = NetOutcome.ok;
    const none = { underWay: 0, outcome, start: 0, end: 0, mode: WireMode.direct };
    this.offers.set(id, { number, span, open: ranks, ...none });
    return id;
  }

  /** So many more ranks were told of an offer; false: it serves no further ranks. */
  extend(id: number, ranks: number): boolean {
    const offer = this.offers.get(id);
    if (offer === undefined || offer.open === 0) return false;
    offer.open += ranks;
    return true;
  }

  /** Nothing was announced. */
  ends(number: number, outcome: number): void {
    const mode = WireMode.direct;
    this.departed({ number, outcome, start: 0, end: 0, mode, span: undefined });
  }

  /** A rank asks for the bytes by a way: their place, or undefined if it gets none. */
  asked(id: number, mode: number): Span | undefined {
    const offer = this.offers.get(id);
    if (offer === undefined || offer.open === 0) return undefined;
    offer.open--;
    offer.underWay++;
    offer.mode = mode;
    return offer.span;
  }

  /** A rank has read the bytes through its mapping. */
  taken(id: number): void {
    const offer = this.offers.get(id);
    if (offer !== undefined) offer.mode = WireMode.mapped;
    this.declined(id);
  }

  declined(id: number): void {
    const offer = this.offers.get(id);
    if (offer === undefined || offer.open === 0) return;
    offer.open--;
    this.settle(id, offer);
  }

  /** No rank that has not asked gets the bytes. */
  withdraw(id: number, outcome: number): void {
    const offer = this.offers.get(id);
    if (offer === undefined) return;
    offer.open = 0;
    offer.outcome = outcome;
    this.settle(id, offer);
  }

  /** The bytes have left for a rank. */
  sent(id: number, start: number, end: number): void {
    const offer = this.offers.get(id);
    if (offer === undefined) return;
    offer.underWay--;
    offer.start = offer.start === 0 ? start : Math.min(offer.start, start);
    offer.end = Math.max(offer.end, end);
    this.settle(id, offer);
  }

  /** No offer serves further ranks, and none is made. After a loss nothing is under way any more. */
  close(outcome: number): void {
    this.isClosed ??= outcome;
    for (const [id, offer] of [...this.offers]) {
      offer.open = 0;
      if (outcome === NetOutcome.lost) offer.underWay = 0;
      offer.outcome = outcome;
      this.settle(id, offer);
    }
  }

  private settle(id: number, offer: Offer): void {
    if (offer.open > 0 || offer.underWay > 0) return;
    this.offers.delete(id);
    this.departed(offer);
  }
}
