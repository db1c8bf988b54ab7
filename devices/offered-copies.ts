// The copies of one memory space that are offered to other ranks. An offered copy stays where it is until every
// receiver has it, and when that is depends on other ranks.
// Invariant: `counts` holds, per datum, how many offers name its copy here; each has at most one pin.
import { CopyState } from './coherency.js';
import { type Directory, NO_BLOCK } from './directory.js';
import { roundedBytes } from './zone.js';

export class OfferedCopies {
  /** Bytes of the offers. */
  bytes = 0;
  private readonly counts: Map<number, number> = new Map();
  private readonly space: number;
  private readonly directory: Directory;

  constructor(space: number, directory: Directory) {
    this.space = space;
    this.directory = directory;
  }

  add(d: number): void {
    this.bytes += roundedBytes(this.directory.bytes[d]);
    this.counts.set(d, (this.counts.get(d) ?? 0) + 1);
  }

  remove(d: number): void {
    this.bytes -= roundedBytes(this.directory.bytes[d]);
    const left = (this.counts.get(d) ?? 0) - 1;
    if (left > 0) this.counts.set(d, left);
    else this.counts.delete(d);
  }

  /** Copies whose only pins are those of offers: nothing that runs on this rank gives them back. */
  get pinned(): number {
    let copies = 0;
    for (const d of this.counts.keys()) if (this.holds(d)) copies++;
    return copies;
  }

  /** Those of them that are the only copy: also when their offers are over they leave no room. */
  get onlyCopies(): number {
    const { spaces, state } = this.directory;
    let copies = 0;
    for (const d of this.counts.keys())
      if (this.holds(d) && state[d * spaces + this.space] === CopyState.owned) copies++;
    return copies;
  }

  /** Whether offers, and nothing else, pin the copy of `d`. */
  holds(d: number): boolean {
    const count = this.counts.get(d);
    if (count === undefined) return false;
    const pins = this.directory.pins[d * this.directory.spaces + this.space];
    return pins > 0 && pins <= count;
  }

  /**
   * Largest stretch of `capacity` bytes between copies that are offered, were datum `also` offered too. Offered copies
   * cannot be moved away, so free bytes to both sides of one are no room for what needs them in one piece.
   */
  largestStretch(capacity: number, also = -1): number {
    const dir = this.directory;
    const blocks: [offset: number, end: number][] = [];
    const take = (d: number): void => {
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
