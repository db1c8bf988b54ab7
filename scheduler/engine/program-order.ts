// A set of task ids that returns them in program order. It is a bitmap over the rows of the window. Each level has
// one bit per word of the level below, so taking the first id costs a few steps for any number of ids.
//
// Invariant: every id in the set lies in [base, base + window). All live tasks fit. An id that a new task pushes out
// of this range belongs to a task whose row was given back; it is dropped.
import type { TaskId } from '../../devices/handles.js';

export class ProgramOrder {
  /** One bit per row. */
  private readonly rows: Int32Array;
  /** The levels above: one bit per word of the level below. */
  private readonly levels: Int32Array[] = [];
  private readonly mask: number;
  private base = 0;
  /** Ids in the set. */
  length = 0;

  /** For ids of a window with that many rows, a power of two. */
  constructor(window: number) {
    this.mask = window - 1;
    this.rows = new Int32Array(Math.ceil(window / 32));
    for (let bits = this.rows.length; bits > 1; ) {
      bits = Math.ceil(bits / 32);
      this.levels.push(new Int32Array(bits));
    }
  }

  add(id: TaskId): void {
    if (this.length === 0 || ((id - this.base) | 0) < 0) this.base = id;
    if (((id - this.base) | 0) > this.mask) this.moveBase((id - this.mask) | 0);
    this.length++;
    const at = id & this.mask;
    const { rows } = this;
    const before = rows[at >> 5];
    rows[at >> 5] = before | (1 << (at & 31));
    if (before === 0) this.mark(at >> 5);
  }

  /** Word `word` of the rows is not empty any more. */
  private mark(word: number): void {
    let at = word;
    for (const words of this.levels) {
      const before = words[at >> 5];
      words[at >> 5] = before | (1 << (at & 31));
      if (before !== 0) return;
      at >>= 5;
    }
  }

  has(id: TaskId): boolean {
    const { base, mask, length } = this;
    if (length === 0 || ((id - base) | 0) < 0 || ((id - base) | 0) > mask) return false;
    const at = id & mask;
    return (this.rows[at >> 5] & (1 << (at & 31))) !== 0;
  }

  /** Returns the same set for a window of `window` rows; this one is empty afterwards. */
  resized(window: number): ProgramOrder {
    const other = new ProgramOrder(window);
    while (this.length > 0) other.add(this.takeFirst());
    return other;
  }

  /** Takes the first id in program order. Call only when `length` is not 0. */
  takeFirst(): TaskId {
    const id = this.first();
    this.remove(id & this.mask);
    this.length--;
    this.base = (id + 1) | 0;
    return id;
  }

  private first(): TaskId {
    const { base, mask } = this;
    let at = this.next(base & mask);
    if (at < 0) at = this.next(0);
    return ((base + ((at - base) & mask)) | 0) as TaskId;
  }

  /** Drops ids before the new base. */
  private moveBase(base: number): void {
    while (this.length > 0 && ((this.first() - base) | 0) < 0) this.takeFirst();
    this.base = base;
  }

  /** The first row from `at` on whose bit is set, or -1. */
  private next(at: number): number {
    const { rows } = this;
    const word = at >> 5;
    const bits = rows[word] & (-1 << (at & 31));
    if (bits !== 0) return (word << 5) | lowest(bits);
    const found = this.nextWord(word + 1);
    return found < 0 ? -1 : (found << 5) | lowest(rows[found]);
  }

  /** The first word of the rows from `at` on that is not empty, or -1. */
  private nextWord(at: number): number {
    const { levels } = this;
    for (let level = 0; level < levels.length; level++) {
      const word = at >> 5;
      if (word >= levels[level].length) return -1;
      const bits = levels[level][word] & (-1 << (at & 31));
      if (bits !== 0) {
        let found = (word << 5) | lowest(bits);
        for (let down = level - 1; down >= 0; down--) {
          found = (found << 5) | lowest(levels[down][found]);
        }
        return found;
      }
      at = word + 1;
    }
    return -1;
  }

  private remove(at: number): void {
    const { rows } = this;
    const rest = rows[at >> 5] & ~(1 << (at & 31));
    rows[at >> 5] = rest;
    if (rest === 0) this.unmark(at >> 5);
  }

  /** Word `word` of the rows is empty. */
  private unmark(word: number): void {
    let at = word;
    for (const words of this.levels) {
      words[at >> 5] &= ~(1 << (at & 31));
      if (words[at >> 5] !== 0) return;
      at >>= 5;
    }
  }
}

/** Number of the lowest bit that is set. */
function lowest(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}
