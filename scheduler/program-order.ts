// A set of task ids that gives them back in program order: a bitmap over the rows of the window, with a bit per word of
// each level in the level above, so that taking the first costs a few steps however many there are.
//
// Invariant: every id in the set lies in [base, base + window). Live tasks do among themselves; an id that a new one
// would leave behind is that of a task whose row was given back, and is dropped.

export class ProgramOrder {
  private readonly levels: Int32Array[] = [];
  private readonly mask: number;
  private base = 0;
  /** Ids in the set. */
  length = 0;

  /** For ids of a window of that many rows, a power of two. */
  constructor(window: number) {
    this.mask = window - 1;
    for (let bits = window; this.levels.length === 0 || bits > 1; ) {
      bits = Math.ceil(bits / 32);
      this.levels.push(new Int32Array(bits));
    }
  }

  add(id: number): void {
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

  /** The same set for a window of `window` rows; this one is empty then. */
  resized(window: number): ProgramOrder {
    const other = new ProgramOrder(window);
    while (this.length > 0) other.add(this.takeFirst());
    return other;
  }

  /** Takes the first id in program order; only when `length` is not 0. */
  takeFirst(): number {
    const id = this.first();
    this.remove(id & this.mask);
    this.length--;
    this.base = (id + 1) | 0;
    return id;
  }

  private first(): number {
    const { base, mask } = this;
    let at = this.next(base & mask);
    if (at < 0) at = this.next(0);
    return (base + ((at - base) & mask)) | 0;
  }

  /** Drops what lies before the new base. */
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
