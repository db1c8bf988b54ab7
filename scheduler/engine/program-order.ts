// A set of task ids that returns them in program order. It is a bitmap over the rows of the window. Each level has
// one bit per word of the level below, so taking the first id costs a few steps for any number of ids.
//
// Invariant: every id in the set lies in [base, base + window). All live tasks fit. An id that a new task pushes out
// of this range belongs to a task whose row was given back; it is dropped.
import type { TaskId } from '../../devices/handles.js';

export class ProgramOrder {
  private readonly levels: Int32Array[] = [];
  private readonly mask: number;
  private base = 0;
  /** Ids in the set. */
  length = 0;

  /** For ids of a window with that many rows, a power of two. */
  constructor(window: number) {
    this.mask = window - 1;
    for (let bits = window; this.levels.length === 0 || bits > 1; ) {
      bits = Math.ceil(bits / 32);
      this.levels.push(new Int32Array(bits));
    }
  }

  add(id: TaskId): void {
    if (this.length === 0 || ((id - this.base) | 0) < 0) this.base = id;
    if (((id - this.base) | 0) > this.mask) this.moveBase((id - this.mask) | 0);
    this.length++;
    let at = id & this.mask;
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
    return (this.levels[0][at >> 5] & (1 << (at & 31))) !== 0;
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
