// Least-recently-used order of the unpinned copies of one memory space, in two lists: `clean` (may be dropped at
// once) and `dirty` (holds the only value and must be written back first). Intrusive links in typed arrays.
// Invariants: a copy is in at most one list; only copies without pins and with a block are in any.
import { type Column, type DatumId, NO_DATUM } from '../handles.js';

export const LruList = { none: 0, clean: 1, dirty: 2 } as const;
const NIL = NO_DATUM;

function links(length: number): Column<Int32Array, DatumId> {
  return new Int32Array(length).fill(NIL) as Column<Int32Array, DatumId>;
}

export class Lru {
  private next: Column<Int32Array, DatumId> = links(256);
  private previous: Column<Int32Array, DatumId> = links(256);
  private list: Uint8Array = new Uint8Array(256);
  private readonly first: Column<Int32Array, DatumId> = links(3);
  private readonly last: Column<Int32Array, DatumId> = links(3);
  /** Copies per list. */
  readonly count: Int32Array = new Int32Array(3);

  /** List of datum `d`'s copy here: a LruList value. */
  listOf(d: DatumId): number {
    return d < this.list.length ? this.list[d] : LruList.none;
  }

  /** Oldest copy of a list, or -1. */
  oldest(list: number): DatumId {
    return this.first[list];
  }

  /** The copy used after `d` in the same list, or -1. */
  newer(d: DatumId): DatumId {
    return this.next[d];
  }

  /** Puts `d` at the most recently used end of `list`, taking it out of the list it is in. */
  touch(d: DatumId, list: number): void {
    if (d >= this.list.length) this.grow(d);
    if (this.list[d] !== LruList.none) this.remove(d);
    const tail = this.last[list];
    this.previous[d] = tail;
    this.next[d] = NIL;
    if (tail === NIL) this.first[list] = d;
    else this.next[tail] = d;
    this.last[list] = d;
    this.list[d] = list;
    this.count[list]++;
  }

  /** Takes `d` out of its list, if any. */
  remove(d: DatumId): void {
    if (d >= this.list.length) return;
    const list = this.list[d];
    if (list === LruList.none) return;
    const n = this.next[d];
    const p = this.previous[d];
    if (p === NIL) this.first[list] = n;
    else this.next[p] = n;
    if (n === NIL) this.last[list] = p;
    else this.previous[n] = p;
    this.list[d] = LruList.none;
    this.count[list]--;
  }

  private grow(atLeast: number): void {
    let length = this.list.length * 2;
    while (length <= atLeast) length *= 2;
    const next = links(length);
    next.set(this.next);
    const previous = links(length);
    previous.set(this.previous);
    const list = new Uint8Array(length);
    list.set(this.list);
    this.next = next;
    this.previous = previous;
    this.list = list;
  }
}
