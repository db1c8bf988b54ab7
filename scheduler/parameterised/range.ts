// Ranges of integers: the values of an index, and the targets of an output. A rank's share of an index may be every n-th integer.

import { HeadraceError } from '../../devices/errors.js';
import { shown } from '../checks.js';

/** The integers from `first` on, in steps of `step`, below `end`. */
export class Range implements Iterable<number> {
  /** The first one. */
  readonly first: number;
  /** Behind the last one. */
  readonly end: number;
  /** From one to the next. */
  readonly step: number;

  /** @internal Use `range`. */
  constructor(first: number, end: number, step = 1) {
    this.first = first;
    this.end = end;
    this.step = step;
  }

  /** Whether the value is one of them. */
  has(value: number): boolean {
    const { first, end, step } = this;
    if (!Number.isInteger(value) || value < first || value >= end) return false;
    return step === 1 || (value - first) % step === 0;
  }

  /** What `call` returns for each, in order. */
  map<T>(call: (value: number) => T): T[] {
    const all: T[] = [];
    for (let value = this.first; value < this.end; value += this.step) all.push(call(value));
    return all;
  }

  /** All of them, in order. */
  *[Symbol.iterator](): Iterator<number> {
    for (let value = this.first; value < this.end; value += this.step) yield value;
  }
}

/**
 * The integers from `first` on, in steps of `step`, below `end`; none if `end` is not above `first`.
 * @throws HeadraceError `ERR_ARGUMENT_TYPE` unless all are integers and `step` is at least 1
 */
export function range(first: number, end: number, step = 1): Range {
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(end)) {
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `a range needs two integers, not ${shown(first)} and ${shown(end)}`,
    );
  }
  if (!Number.isSafeInteger(step) || step < 1)
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `a range needs steps of at least 1, not ${shown(step)}`,
    );
  return new Range(first, end, step);
}

/** The values of an index that belong to a rank: a range, or a list that ascends. */
export type OwnRange = Range | readonly number[];
