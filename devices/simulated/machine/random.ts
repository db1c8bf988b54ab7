// Seeded random numbers for all choices of the simulation. Equal seeds give equal runs on every machine;
// the simulation never uses the clock or Math.random.

/** A generator of 32-bit numbers (xorshift32, Marsaglia 2003) whose seed is mixed first, so that 1, 2, 3 differ. */
export class Random {
  private state: number;

  constructor(seed: number) {
    let z = (seed + 0x9e3779b9) | 0;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    z ^= z >>> 15;
    this.state = z === 0 ? 0x6d2b79f5 : z;
  }

  /** An unsigned 32-bit number. */
  next(): number {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x;
    return x >>> 0;
  }

  /** A whole number from 0 to n - 1. */
  below(n: number): number {
    return Math.floor((this.next() / 2 ** 32) * n);
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** A number in [0, 1). */
  real(): number {
    return this.next() / 2 ** 32;
  }

  /** True with probability p. */
  chance(p: number): boolean {
    return p > 0 && this.real() < p;
  }

  /** One element of a list that is not empty. */
  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }
}
