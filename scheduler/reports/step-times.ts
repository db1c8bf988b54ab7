// Times that many consecutive numbers share: the numbers of all tasks that were inserted, or of all commands that were
// published, in one pass of the engine. Each time is stored once per pass instead of once per task.
//
// Numbers are int32 that count up and wrap. Invariant: a step holds the numbers from its first up to the next step's
// first. Steps that hold only numbers that are no longer needed are dropped, so there is at most one step more than
// needed numbers.

/** The end of a step without a next one. */
const OPEN = 2 ** 30;

export class StepTimes {
  /** The result of the last `find`: its time, and the numbers `first` to `end - 1` that share it. */
  time = 0;
  first = 0;
  end = 0;
  private firsts: Int32Array;
  private times: Float64Array;
  private mask: number;
  /** Slot of the oldest step, and how many there are. */
  private oldest = 0;
  private count = 0;

  /** At most `numbers`, a power of two, are needed at any time. */
  constructor(numbers: number) {
    this.firsts = new Int32Array(2 * numbers);
    this.times = new Float64Array(2 * numbers);
    this.mask = 2 * numbers - 1;
  }

  /** At most `numbers`, a power of two, are needed from now on. */
  grow(numbers: number): void {
    const { firsts, times, mask, oldest } = this;
    if (2 * numbers <= firsts.length) return;
    this.firsts = new Int32Array(2 * numbers);
    this.times = new Float64Array(2 * numbers);
    this.mask = 2 * numbers - 1;
    this.oldest = 0;
    for (let i = 0; i < this.count; i++) {
      this.firsts[i] = firsts[(oldest + i) & mask];
      this.times[i] = times[(oldest + i) & mask];
    }
  }

  /** Numbers from `first` on have `time`. Numbers before `live` are no longer needed. */
  begin(first: number, time: number, live: number): void {
    const { firsts, mask } = this;
    while (this.count > 1 && ((live - firsts[(this.oldest + 1) & mask]) | 0) >= 0) {
      // The last result ends with its step: later numbers may look as if they were in it, once they have wrapped.
      if (firsts[this.oldest] === this.first) this.end = this.first;
      this.oldest = (this.oldest + 1) & mask;
      this.count--;
    }
    const slot = (this.oldest + this.count++) & mask;
    firsts[slot] = first;
    this.times[slot] = time;
    // An empty result goes along, for the same reason. Else it may be the step that ends here.
    if (this.end === this.first) this.first = this.end = first;
    else if (((this.end - first) | 0) > 0) this.end = first;
  }

  /** Finds the step that holds `n`. */
  find(n: number): void {
    if (((n - this.first) | 0) >= 0 && ((this.end - n) | 0) > 0) return;
    const { firsts, mask, oldest } = this;
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (((n - firsts[(oldest + middle) & mask]) | 0) >= 0) low = middle;
      else high = middle - 1;
    }
    const slot = (oldest + low) & mask;
    this.time = this.times[slot];
    this.first = firsts[slot];
    this.end = low + 1 < this.count ? firsts[(slot + 1) & mask] : (this.first + OPEN) | 0;
  }
}
