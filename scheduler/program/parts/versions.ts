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
import { RegionIndex } from './region-index.js';

/** What versions must know of a view. */
interface ViewRegion {
  readonly region: Region;
}

interface Piece<V> {
  readonly region: Region;
  readonly holders: readonly V[];
  /** Number of the write that made its version. */
  written: number;
}

/** A view lacks a region that another one has. */
export interface TakeOver<V> {
  readonly source: V;
  readonly region: Region;
  /** The view has nothing that must be kept. */
  readonly isFirst: boolean;
  /** The piece in which the region is, if it is in one. */
  readonly piece: Piece<V> | undefined;
}

const NOTHING: readonly never[] = [];

export class Versions<V extends ViewRegion> {
  private readonly whole: V;
  private readonly pieces: RegionIndex<Piece<V>>;
  /** Number of pieces that were never written. */
  private unwritten = 0;
  /** The views that have their region alone and in one piece, as after a write. */
  private readonly alone: Map<V, Piece<V>> = new Map();
  /** Number of changes so far. */
  changes = 0;
  /** Number of writes so far. */
  writes = 0;

  /** `hasValue`: the datum has a value when its first part is made. */
  constructor(whole: V, hasValue: boolean) {
    this.whole = whole;
    this.pieces = new RegionIndex(whole.region);
    const piece = this.add(whole.region, hasValue ? [whole] : [], 0);
    if (hasValue) this.alone.set(whole, piece);
  }

  private add(region: Region, holders: readonly V[], written: number): Piece<V> {
    const piece = { region, holders, written };
    this.pieces.add(piece);
    if (holders.length === 0) this.unwritten++;
    return piece;
  }

  private remove(piece: Piece<V>): void {
    this.pieces.delete(piece);
    if (piece.holders.length === 0) this.unwritten--;
    const [holder] = piece.holders;
    if (this.alone.get(holder) === piece) this.alone.delete(holder);
  }

  /** Replaces the part of a piece that lies in a region, which is not empty; without holders it is left out. */
  private cut(piece: Piece<V>, hole: Region, holders: readonly V[] | undefined): void {
    this.remove(piece);
    if (holders !== undefined) this.add(hole, holders, piece.written);
    for (const rest of without(piece.region, hole)) this.add(rest, piece.holders, piece.written);
  }

  private within(region: Region): Piece<V>[] {
    return this.pieces.within(region);
  }

  /** The pieces of which a view has the newest version. */
  private of(view: V): Piece<V>[] {
    return this.within(view.region).filter(({ holders }) => holders.includes(view));
  }

  /** Every piece was written. */
  get isComplete(): boolean {
    return this.unwritten === 0;
  }

  /** Whether all of a region was written. */
  hasValue(region: Region): boolean {
    if (this.isComplete) return true;
    return this.within(region).every(({ holders }) => holders.length > 0);
  }

  /** Whether a view lacks the newest version of a part of its region. */
  isBehind(view: V): boolean {
    if (this.alone.has(view) || !guards.partTakesOver) return false;
    return this.within(view.region).some(
      ({ holders }) => holders.length > 0 && !holders.includes(view),
    );
  }

  /** What a view must take over to have the newest version of all of its region. */
  missing(view: V): readonly TakeOver<V>[] {
    if (this.alone.has(view) || !guards.partTakesOver) return NOTHING;
    const all = this.within(view.region);
    const lacking = all.filter(({ holders }) => holders.length > 0 && !holders.includes(view));
    if (lacking.length === 0) return NOTHING;
    const isFirst = all.every(({ holders }) => !holders.includes(view));
    const source = isFirst ? this.sourceOfAll(all, view.region) : undefined;
    if (source !== undefined) return [{ source, region: view.region, isFirst, piece: undefined }];
    return lacking.map((piece, i) => {
      const region = common(piece.region, view.region) as Region;
      return { source: this.sourceOf(piece, region), region, isFirst: isFirst && i === 0, piece };
    });
  }

  /** A view that has a region as a whole. */
  private sourceOfAll([first, ...others]: readonly Piece<V>[], region: Region): V | undefined {
    return first.holders.find(
      (v) => contains(v.region, region) && others.every(({ holders }) => holders.includes(v)),
    );
  }

  /** The view that has a region and nothing else is copied as it is. Otherwise the datum itself has most. */
  private sourceOf({ holders }: Piece<V>, region: Region): V {
    const exact = holders.find((v) => isSame(v.region, region));
    return exact ?? (holders.includes(this.whole) ? this.whole : holders[0]);
  }

  /** A view takes over a region from one that has it; `piece` as in the take-over. */
  take(view: V, region: Region, piece?: Piece<V>): void {
    this.changes++;
    for (const each of piece === undefined ? this.within(region) : [piece])
      if (!each.holders.includes(view))
        this.cut(each, common(each.region, region) as Region, [...each.holders, view]);
  }

  /** A task writes a view: no other view has the newest version of its region any more. */
  write(view: V): void {
    const known = this.alone.get(view);
    if (known !== undefined) {
      known.written = ++this.writes;
      return;
    }
    if (!guards.partOverwrites) {
      this.take(view, view.region);
      return;
    }
    this.changes++;
    const { region } = view;
    for (const piece of this.within(region))
      this.cut(piece, common(piece.region, region) as Region, undefined);
    this.alone.set(view, this.add(region, [view], ++this.writes));
  }

  /**
   * A view did not get a region that it should have taken over after `since` writes. What was written later does not count. False
   * if no other view has all of the rest.
   */
  forgo(view: V, region: Region, since: number): boolean {
    let isSettled = true;
    for (const piece of this.within(region)) {
      const { holders, written } = piece;
      if (written > since || !holders.includes(view)) continue;
      if (holders.length === 1) {
        isSettled = false;
        continue;
      }
      this.changes++;
      const others = holders.filter((v) => v !== view);
      this.cut(piece, common(piece.region, region) as Region, others);
    }
    return isSettled;
  }

  /** A view gives up what another one has, too. */
  leave(view: V, to: V): void {
    for (const piece of this.within(view.region))
      if (piece.holders.includes(view) && piece.holders.includes(to))
        this.cut(
          piece,
          piece.region,
          piece.holders.filter((v) => v !== view),
        );
    this.changes++;
  }

  /** Whether a view has the newest version of a part of its region. */
  hasAny(view: V): boolean {
    return this.of(view).length > 0;
  }

  /** The regions that no other view has. */
  onlyIn(view: V): Region[] {
    return this.of(view)
      .filter(({ holders }) => holders.length === 1)
      .map(({ region }) => region);
  }

  /** A view is closed. What only it has is gone. */
  drop(view: V): void {
    this.changes++;
    for (const piece of this.of(view)) {
      this.remove(piece);
      this.add(
        piece.region,
        piece.holders.filter((v) => v !== view),
        piece.written,
      );
    }
  }

  /** @throws Error if the pieces overlap, or are not the whole. For tests. */
  check(): void {
    let size = 0;
    const pieces = this.within(this.whole.region);
    for (const [i, { region, holders }] of pieces.entries()) {
      size += region.rows * region.columns;
      for (const v of holders)
        if (!contains(v.region, region)) throw new Error('a view has a piece outside of it');
      for (const other of pieces.slice(i + 1))
        if (common(other.region, region) !== undefined) throw new Error('pieces overlap');
    }
    const { rows, columns } = this.whole.region;
    if (size !== rows * columns) throw new Error('a piece is missing');
  }
}
