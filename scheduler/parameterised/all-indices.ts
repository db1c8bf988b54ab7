// The indices of all tasks in the ranges of a class, one after the other, the last index fastest.

import { HeadraceError } from '../../devices/errors.js';
import { shown } from '../checks.js';
import type { Indices } from './ends.js';
import { type OwnRange, Range } from './range.js';

/** @internal */
export class AllIndices {
  private readonly names: readonly string[];
  private readonly ranges: readonly ((of: Indices) => OwnRange)[];
  /** The present value of each index, and the end of its range. */
  private readonly values: number[];
  private readonly ends: number[];
  private readonly steps: number[];
  /** The values of an index that are a list, and the position of the present one. */
  private readonly lists: (readonly number[] | undefined)[];
  private readonly positions: number[];
  private readonly of: Record<string, number> = {};
  private hasBegun = false;

  /** The range of an index may depend on the values of those before it. */
  constructor(names: readonly string[], ranges: readonly ((of: Indices) => OwnRange)[]) {
    this.names = names;
    this.ranges = ranges;
    this.values = names.map(() => 0);
    this.ends = names.map(() => 0);
    this.steps = names.map(() => 1);
    this.lists = names.map(() => undefined);
    this.positions = names.map(() => 0);
  }

  /** The next ones; undefined behind the last ones. @throws HeadraceError `ERR_GRAPH_CLASS` */
  next(): Indices | undefined {
    const { names, ranges, of } = this;
    let n = this.hasBegun ? this.advance(names.length - 1) : 0;
    this.hasBegun = true;
    while (n >= 0 && n < names.length) {
      const all = ranges[n](of);
      const isEmpty = isList(all) ? this.beginList(n, all) : this.begin(n, all);
      if (isEmpty) n = this.advance(n - 1);
      else {
        of[names[n]] = this.values[n];
        n++;
      }
    }
    return n < 0 ? undefined : { ...of };
  }

  /** The first value of an index. Returns true if there is none. */
  private begin(n: number, range: Range): boolean {
    // Without numbers the enumeration would not end.
    if (!(range instanceof Range))
      throw new HeadraceError(
        'ERR_GRAPH_CLASS',
        `the range of index '${this.names[n]}' is ${shown(range)}`,
      );
    const { first, end, step } = range;
    this.values[n] = first;
    this.ends[n] = end;
    this.steps[n] = step;
    this.lists[n] = undefined;
    return first >= end;
  }

  private beginList(n: number, list: readonly number[]): boolean {
    this.lists[n] = list;
    this.positions[n] = 0;
    this.values[n] = list[0];
    return list.length === 0;
  }

  /** Gives index `n` its next value or, if it has none, the one before it. Returns the index behind that, or -1. */
  private advance(n: number): number {
    const { names, values, ends, steps, lists, of } = this;
    for (let at = n; at >= 0; at--) {
      const list = lists[at];
      if (list !== undefined) {
        if (++this.positions[at] >= list.length) continue;
        values[at] = list[this.positions[at]];
      } else {
        values[at] += steps[at];
        if (values[at] >= ends[at]) continue;
      }
      of[names[at]] = values[at];
      return at + 1;
    }
    return -1;
  }
}

function isList(all: OwnRange): all is readonly number[] {
  return Array.isArray(all);
}
