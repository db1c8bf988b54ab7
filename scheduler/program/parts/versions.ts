// The newest version of each piece of a datum that has parts, and which of the views have it: the datum itself and its parts.
//
// A view has memory of its own. Before a task reads a view, it takes over the pieces that others have and it has not. A task
// that writes a view makes it the only one that has its region.
// Invariants:
// - the pieces do not overlap, and together they are the whole region;
// - the order of the calls is program order, so every view has the newest version of a piece, or it is no holder of it;
// - a piece without holders was never written.
import { guards } from '../../../devices/guards.js';
import { common, contains, isSame, type Region, without } from './region.js';

/** What versions must know of a view. */
interface ViewRegion {
  readonly region: Region;
}

interface Piece<V> {
  readonly region: Region;
  readonly holders: V[];
}

/** A view lacks a region that another one has. */
export interface TakeOver<V> {
  readonly source: V;
  readonly region: Region;
  /** The view has nothing that must be kept. */
  readonly isFirst: boolean;
}

export class Versions<V extends ViewRegion> {
  private readonly whole: V;
  private pieces: Piece<V>[];
  /** Every piece was written. */
  isComplete: boolean;

  /** `hasValue`: the datum has a value when its first part is made. */
  constructor(whole: V, hasValue: boolean) {
    this.whole = whole;
    this.pieces = [{ region: whole.region, holders: hasValue ? [whole] : [] }];
    this.isComplete = hasValue;
  }

  /** Whether all of a region was written. */
  hasValue(region: Region): boolean {
    if (this.isComplete) return true;
    return this.pieces.every((p) => p.holders.length > 0 || common(p.region, region) === undefined);
  }

  /** What a view must take over first to have the newest version of all of its region; undefined: nothing. */
  missing(view: V): TakeOver<V> | undefined {
    if (!guards.partTakesOver) return undefined;
    let first: Piece<V> | undefined;
    let isFirst = true;
    let sources: readonly V[] = [];
    for (const piece of this.pieces) {
      if (common(piece.region, view.region) === undefined) continue;
      const { holders } = piece;
      if (holders.includes(view)) isFirst = false;
      else if (holders.length > 0 && first === undefined) {
        first = piece;
        sources = holders.filter((v) => contains(v.region, view.region));
      } else if (sources.length > 0) sources = sources.filter((v) => holders.includes(v));
    }
    if (first === undefined) return undefined;
    const [source] = sources;
    if (isFirst && source !== undefined) return { source, region: view.region, isFirst };
    const region = common(first.region, view.region) as Region;
    return { source: this.sourceOf(first, region), region, isFirst };
  }

  /** The view that has a region and nothing else is copied as it is. Otherwise the datum itself has most. */
  private sourceOf({ holders }: Piece<V>, region: Region): V {
    const exact = holders.find((v) => isSame(v.region, region));
    return exact ?? (holders.includes(this.whole) ? this.whole : holders[0]);
  }

  /** A view takes over a region of the datum from one that has it. */
  take(view: V, region: Region): void {
    const pieces: Piece<V>[] = [];
    for (const piece of this.pieces) {
      const taken = common(piece.region, region);
      if (taken === undefined || piece.holders.includes(view)) {
        pieces.push(piece);
        continue;
      }
      pieces.push({ region: taken, holders: [...piece.holders, view] });
      for (const rest of without(piece.region, taken))
        pieces.push({ region: rest, holders: [...piece.holders] });
    }
    this.pieces = pieces;
  }

  /** A task writes a view: no other view has the newest version of its region any more. */
  write(view: V): void {
    if (this.isOnly(view)) return;
    if (!guards.partOverwrites) {
      this.take(view, view.region);
      return;
    }
    const pieces: Piece<V>[] = [{ region: view.region, holders: [view] }];
    for (const piece of this.pieces) {
      const gone = common(piece.region, view.region);
      if (gone === undefined) pieces.push(piece);
      else
        for (const rest of without(piece.region, gone))
          pieces.push({ region: rest, holders: [...piece.holders] });
    }
    this.pieces = pieces;
    if (!this.isComplete) this.isComplete = pieces.every(({ holders }) => holders.length > 0);
  }

  /** The view has its region alone, as after its last write. */
  private isOnly(view: V): boolean {
    const [first] = this.pieces;
    return (
      first.holders.length === 1 && first.holders[0] === view && isSame(first.region, view.region)
    );
  }

  /** Whether a view has the newest version of a part of its region. */
  hasAny(view: V): boolean {
    return this.pieces.some(({ holders }) => holders.includes(view));
  }

  /** The regions that no other view has. */
  onlyIn(view: V): Region[] {
    return this.pieces
      .filter(({ holders }) => holders.length === 1 && holders[0] === view)
      .map(({ region }) => region);
  }

  /** A view is closed. */
  drop(view: V): void {
    for (const { holders } of this.pieces) {
      const at = holders.indexOf(view);
      if (at >= 0) holders.splice(at, 1);
    }
  }

  /** @throws Error if the pieces overlap, or are not the whole. For tests. */
  check(): void {
    let size = 0;
    for (const [i, { region, holders }] of this.pieces.entries()) {
      size += region.rows * region.columns;
      for (const v of holders)
        if (!contains(v.region, region)) throw new Error('a view has a piece outside of it');
      for (const other of this.pieces.slice(i + 1))
        if (common(other.region, region) !== undefined) throw new Error('pieces overlap');
    }
    const { rows, columns } = this.whole.region;
    if (size !== rows * columns) throw new Error('a piece is missing');
  }
}
