// The indices of all tasks in the ranges of a class, one after the other, the last index fastest.

import type { Indices } from './ends.js';
import type { Range } from './range.js';

/** @internal */
export class AllIndices {
  private readonly names: readonly string[];
  private readonly ranges: readonly ((of: Indices) => Range)[];
  /** The present value of each index, and the end of its range. */
  private readonly values: number[];
  private readonly ends: number[];
  private readonly of: Record<string, number> = {};
  private hasBegun = false;

  /** The range of an index may depend on the values of those before it. */
  constructor(names: readonly string[], ranges: readonly ((of: Indices) => Range)[]) {
    this.names = names;
    this.ranges = ranges;
    this.values = names.map(() => 0);
    this.ends = names.map(() => 0);
  }

  /** The next ones; undefined behind the last ones. */
  next(): Indices | undefined {
    const { names, ranges, values, ends, of } = this;
    let n = this.hasBegun ? this.step(names.length - 1) : 0;
    this.hasBegun = true;
    while (n >= 0 && n < names.length) {
      const { first, end } = ranges[n](of);
      values[n] = first;
      ends[n] = end;
      if (first < end) of[names[n++]] = first;
      else n = this.step(n - 1);
    }
    return n < 0 ? undefined : { ...of };
  }

  /** Gives index `n` its next value or, if it has none, the one before it. Returns the index behind that, or -1. */
  private step(n: number): number {
    const { names, values, ends, of } = this;
    for (let at = n; at >= 0; at--) {
      if (++values[at] >= ends[at]) continue;
      of[names[at]] = values[at];
      return at + 1;
    }
    return -1;
  }
}
