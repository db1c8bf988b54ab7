// Ranges of integers: the values of an index, and the targets of an output.

import { HeadraceError } from '../../devices/errors.js';
import { shown } from '../checks.js';

/** The integers from `first` on, below `end`. */
export class Range implements Iterable<number> {
  /** The first one. */
  readonly first: number;
  /** Behind the last one. */
  readonly end: number;

  /** @internal Use `range`. */
  constructor(first: number, end: number) {
    this.first = first;
    this.end = end;
  }

  /** Whether the value is one of them. */
  has(value: number): boolean {
    return Number.isInteger(value) && value >= this.first && value < this.end;
  }

  /** What `call` returns for each, in order. */
  map<T>(call: (value: number) => T): T[] {
    const all: T[] = [];
    for (let value = this.first; value < this.end; value++) all.push(call(value));
    return all;
  }

  /** All of them, in order. */
  *[Symbol.iterator](): Iterator<number> {
    for (let value = this.first; value < this.end; value++) yield value;
  }
}

/**
 * The integers from `first` on, below `end`; none if `end` is not above `first`.
 * @throws HeadraceError `ERR_ARGUMENT_TYPE` unless both are integers
 */
export function range(first: number, end: number): Range {
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(end)) {
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `a range needs two integers, not ${shown(first)} and ${shown(end)}`,
    );
  }
  return new Range(first, end);
}
