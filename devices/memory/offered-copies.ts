// The copies of one memory space that are offered to other ranks. An offered copy keeps its place until every receiver
// has it. That moment depends on other ranks. So does the end of a receive that has its memory before its version is announced: its copy
// counts as offered.
// Invariant: `counts` holds, per datum, the number of offers of its copy here; each offer has at most one pin.
import { type DatumId, NO_DATUM, type SpaceId } from '../handles.js';
import { CopyState } from './coherency.js';
import { type Directory, NO_BLOCK } from './directory.js';
import { roundedBytes } from './zone.js';

export class OfferedCopies {
  /** Bytes of the offers. */
  bytes = 0;
  private readonly counts: Map<DatumId, number> = new Map();
  private readonly space: SpaceId;
  private readonly directory: Directory;

  constructor(space: SpaceId, directory: Directory) {
    this.space = space;
    this.directory = directory;
  }

  add(d: DatumId): void {
    this.bytes += roundedBytes(this.directory.bytes[d]);
    this.counts.set(d, (this.counts.get(d) ?? 0) + 1);
  }

  remove(d: DatumId): void {
    this.bytes -= roundedBytes(this.directory.bytes[d]);
    const left = (this.counts.get(d) ?? 0) - 1;
    if (left > 0) this.counts.set(d, left);
    else this.counts.delete(d);
  }

  /** Copies whose only pins are those of offers: no work of this rank returns these pins. */
  get pinned(): number {
    let copies = 0;
    for (const d of this.counts.keys()) if (this.holds(d)) copies++;
    return copies;
  }

  /** The part of them that is the only copy of a datum: the end of their offers leaves no room. */
  get onlyCopies(): number {
    const { spaces, state } = this.directory;
    let copies = 0;
    for (const d of this.counts.keys())
      if (this.holds(d) && state[d * spaces + this.space] === CopyState.owned) copies++;
    return copies;
  }

  /** Whether offers, and no other users, pin the copy of `d`. */
  holds(d: DatumId): boolean {
    // The return of every pin asks this, and most machines have no offers.
    const count = this.counts.size === 0 ? undefined : this.counts.get(d);
    if (count === undefined) return false;
    const pins = this.directory.pins[d * this.directory.spaces + this.space];
    return pins > 0 && pins <= count;
  }

  /**
   * Whether `largestStretch` is at least `least` bytes. Few offers leave a stretch that long wherever they lie; their
   * places count otherwise.
   */
  hasStretch(least: number, capacity: number, also: DatumId = NO_DATUM): boolean {
    const more = also >= 0 ? roundedBytes(this.directory.bytes[also]) : 0;
    return (
      this.leaveStretches(least, capacity, more) || this.largestStretch(capacity, also) >= least
    );
  }

  /** Whether one stretch is at least `least` bytes long, wherever the offered copies lie and another one of `more` bytes. */
  leaveStretches(least: number, capacity: number, more: number): boolean {
    return capacity - this.bytes - more >= least * (this.counts.size + 2);
  }

  /**
   * Largest stretch of `capacity` bytes between offered copies, if datum `also` were offered too. Offered copies cannot be
   * moved, so free bytes on both sides of one are not one piece.
   */
  largestStretch(capacity: number, also: DatumId = NO_DATUM): number {
    const dir = this.directory;
    const blocks: [offset: number, end: number][] = [];
    const take = (d: DatumId): void => {
      const offset = dir.block[d * dir.spaces + this.space];
      if (offset !== NO_BLOCK) blocks.push([offset, offset + roundedBytes(dir.bytes[d])]);
    };
    for (const d of this.counts.keys()) take(d);
    if (also >= 0 && !this.counts.has(also)) take(also);
    blocks.sort(([a], [b]) => a - b);
    let largest = 0;
    let from = 0;
    for (const [offset, end] of blocks) {
      largest = Math.max(largest, offset - from);
      from = end;
    }
    return Math.max(largest, capacity - from);
  }
}
