// The element counts that the kernels of a task class get.
//
// A record that carries them is longer, and a second record costs a task more than a comparison. So lists that tasks of a class have
// in common get a number, and a record names its list. A class has few such lists: the tasks with others carry theirs.
import type { Backend } from '../devices/backend.js';

/** Lists with a number per task class. */
const MOST_LISTS = 8;

export class KernelLengths {
  /** 1 per space whose kernel takes them. */
  readonly on: Uint8Array;
  /** Bytes of an element, per flow. */
  readonly elementBytes: Uint8Array;
  private readonly backend: Pick<Backend, 'numberLengths'>;
  /** Sizes of the data in bytes, per list. */
  private readonly sizes: Float64Array[] = [];
  private readonly numbers: number[] = [];
  private newest = 0;
  private isFull: boolean;

  constructor(
    backend: Pick<Backend, 'numberLengths'>,
    on: Uint8Array,
    elementBytes: readonly number[],
  ) {
    this.backend = backend;
    this.on = on;
    this.elementBytes = Uint8Array.from(elementBytes);
    this.isFull = elementBytes.length === 0;
  }

  /** Number of the list for data of these sizes: those at `first` in `flows`. 0: it has none. */
  numberOf(bytes: Float64Array, flows: Int32Array, first: number): number {
    const { sizes, newest } = this;
    if (newest < sizes.length && fits(sizes[newest], bytes, flows, first))
      return this.numbers[newest];
    for (let k = 0; k < sizes.length; k++) {
      if (k === newest || !fits(sizes[k], bytes, flows, first)) continue;
      this.newest = k;
      return this.numbers[k];
    }
    return this.isFull ? 0 : this.add(bytes, flows, first);
  }

  private add(bytes: Float64Array, flows: Int32Array, first: number): number {
    const { elementBytes, sizes, numbers } = this;
    const own = Float64Array.from(elementBytes, (_, i) => bytes[flows[first + i]]);
    const number = this.backend.numberLengths(own.map((size, i) => size / elementBytes[i]));
    this.isFull = number === 0 || sizes.length + 1 === MOST_LISTS;
    if (number === 0) return 0;
    this.newest = sizes.length;
    sizes.push(own);
    numbers.push(number);
    return number;
  }
}

function fits(sizes: Float64Array, bytes: Float64Array, flows: Int32Array, first: number): boolean {
  for (let i = 0; i < sizes.length; i++) if (bytes[flows[first + i]] !== sizes[i]) return false;
  return true;
}
