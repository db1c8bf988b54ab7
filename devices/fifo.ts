// A growable ring of int32: first in, first out, no allocation after warm-up.
import type { Column } from './handles.js';
import { Tally } from './tally.js';

export class Fifo<V extends number = number> {
  private ring: Column<Int32Array, V>;
  private first = 0;
  /** Entries in the ring. */
  length = 0;
  private readonly tally: Tally;

  /** `tally` also counts the entries. */
  constructor(capacity = 64, tally: Tally = new Tally()) {
    this.tally = tally;
    this.ring = new Int32Array(capacity) as Column<Int32Array, V>;
  }

  push(value: V): void {
    if (this.length === this.ring.length) this.grow();
    this.ring[(this.first + this.length) & (this.ring.length - 1)] = value;
    this.length++;
    this.tally.count++;
  }

  /** The entry at the front; only when `length` is not 0. */
  peek(): V {
    return this.ring[this.first];
  }

  /** Takes the entry at the front; only when `length` is not 0. */
  shift(): V {
    const value = this.ring[this.first];
    this.first = (this.first + 1) & (this.ring.length - 1);
    this.length--;
    this.tally.count--;
    return value;
  }

  /** Takes the entry at the back; only when `length` is not 0. */
  pop(): V {
    this.length--;
    this.tally.count--;
    return this.at(this.length);
  }

  /** Entry `i` from the front. */
  at(i: number): V {
    return this.ring[(this.first + i) & (this.ring.length - 1)];
  }

  /** Replaces every entry. */
  replace(by: (value: V) => V): void {
    const { ring, first } = this;
    for (let i = 0; i < this.length; i++) {
      const at = (first + i) & (ring.length - 1);
      ring[at] = by(ring[at]);
    }
  }

  private grow(): void {
    const larger = new Int32Array(this.ring.length * 2) as Column<Int32Array, V>;
    for (let i = 0; i < this.length; i++) larger[i] = this.at(i);
    this.ring = larger;
    this.first = 0;
  }
}
