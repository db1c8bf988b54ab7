// The state of each datum in program order on this rank: its owner, the writer of its latest version, whether that
// version is here, and the ranks to which it was sent. Tables by datum row.
//
// Invariant: `producer[d]` is the rank whose task writes the latest version in program order, on every rank that follows
// d.
import { type DatumId, FIRST_DATUM } from '../../devices/handles.js';
import { resized } from '../../devices/resized.js';
import { mix } from './call-log.js';

const ROWS = 256;
/** No movement sends the latest version, or it takes no more destinations. */
export const NOT_SENT = -1;
const NO_RANK = -1;
/** Name of a datum that exists on this rank only. */
export const NO_GID = -1;
/** Names of parts begin here: apart from those of all other data, of which program/partials.ts has more. */
const FIRST_PART = 2 ** 29;

export class RankData {
  /** Name of the datum that is the same on all ranks, or NO_GID. */
  gid: Int32Array = new Int32Array(ROWS);
  owner: Int16Array = new Int16Array(ROWS);
  producer: Int16Array = new Int16Array(ROWS);
  /** 1: the latest version is here, or will be in the order of the graph. */
  have: Uint8Array = new Uint8Array(ROWS);
  /** 1: the latest version comes straight from its writer, so that this rank never passes it on. */
  straight: Uint8Array = new Uint8Array(ROWS);
  /** The first rank to which the latest version was sent, or NO_RANK. */
  private sentFirst: Int16Array = new Int16Array(ROWS).fill(NO_RANK);
  /** Movement that may take more destinations for the latest version, or NOT_SENT. */
  openSend: Int32Array = new Int32Array(ROWS).fill(NOT_SENT);
  /** Further ranks to which it was sent, if there are any: most versions go to one rank. */
  private readonly sentTo: Map<number, Set<number>> = new Map();
  private readonly rank: number;
  private nextGid = 1;

  constructor(rank: number) {
    this.rank = rank;
  }

  /** Takes `count` names, which are the same on all ranks; returns the first. */
  reserve(count: number): number {
    const first = this.nextGid;
    this.nextGid += count;
    return first;
  }

  /** A datum was created; by default on all ranks. With NO_GID it exists on this rank only. */
  add(d: DatumId, owner: number, gid: number = this.reserve(1)): void {
    if (d >= this.gid.length) this.growTo(Math.max(d + 1, this.gid.length * 2));
    this.gid[d] = gid;
    this.owner[d] = owner;
    this.written(d, owner);
  }

  /**
   * The name of the part of datum `whole` with that place in it, on whichever ranks and in whichever order parts are made. Two parts
   * may have the same name: their transfers are matched by their order in the program.
   */
  partName(whole: DatumId, place: readonly number[]): number {
    const gid = this.gid[whole];
    if (gid === NO_GID) return NO_GID;
    return FIRST_PART + (place.reduce(mix, mix(0, gid)) & (FIRST_PART - 1));
  }

  /** The latest version in program order is written by `rank`. */
  written(d: DatumId, rank: number): void {
    this.producer[d] = rank;
    this.have[d] = rank === this.rank ? 1 : 0;
    this.straight[d] = 0;
    this.forgetSends(d);
  }

  private forgetSends(d: number): void {
    this.openSend[d] = NOT_SENT;
    if (this.sentFirst[d] === NO_RANK) return;
    this.sentFirst[d] = NO_RANK;
    if (this.sentTo.size > 0) this.sentTo.delete(d);
  }

  /** Records that the latest version goes to `rank`; false if this was recorded before. */
  markSent(d: DatumId, rank: number): boolean {
    const first = this.sentFirst[d];
    if (first === rank) return false;
    if (first === NO_RANK) {
      this.sentFirst[d] = rank;
      return true;
    }
    const ranks = this.sentTo.get(d);
    if (ranks === undefined) this.sentTo.set(d, new Set([rank]));
    else if (ranks.has(rank)) return false;
    else ranks.add(rank);
    return true;
  }

  /** Movement `index` takes no more destinations for `d`. */
  closeSend(d: DatumId, index: number): void {
    if (this.openSend[d] === index) this.openSend[d] = NOT_SENT;
  }

  /** Whether other ranks have the latest version or will get it. */
  isSent(d: DatumId): boolean {
    return this.sentFirst[d] !== NO_RANK;
  }

  /** Whether `d` is this rank's, but its latest version is not here. */
  isBehind(d: DatumId): boolean {
    return this.gid[d] !== NO_GID && this.owner[d] === this.rank && this.have[d] === 0;
  }

  /**
   * No rank has a copy of a datum whose latest version its owner has written, and none was sent. All ranks call it at the same place of
   * the program. A datum with another writer keeps its copies: all ranks know that writer.
   */
  forgetCopies(): void {
    const { gid, owner, producer, have, straight, rank } = this;
    for (let d = FIRST_DATUM; d < gid.length; d++) {
      if (gid[d] === NO_GID || producer[d] !== owner[d]) continue;
      if (owner[d] === rank) this.forgetSends(d);
      else {
        have[d] = 0;
        straight[d] = 0;
      }
    }
  }

  /** Every datum has its owner's value again. */
  reset(): void {
    for (let d = FIRST_DATUM; d < this.gid.length; d++) this.written(d, this.owner[d]);
  }

  private growTo(rows: number): void {
    this.gid = resized(this.gid, rows);
    this.owner = resized(this.owner, rows);
    this.producer = resized(this.producer, rows);
    this.have = resized(this.have, rows);
    this.straight = resized(this.straight, rows);
    this.openSend = resized(this.openSend, rows, NOT_SENT);
    this.sentFirst = resized(this.sentFirst, rows, NO_RANK);
  }
}
