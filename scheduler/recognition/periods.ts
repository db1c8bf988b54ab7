// Finds out whether the insertions of a run repeat with a period, from one number per insertion.
//
// A number that stands for the last WINDOW insertions is compared with that of an anchor. Where they are equal, their distance may be
// the period, and from there on each insertion is compared with the one a period ago. The anchor moves on when twice as many
// insertions have come, as in R. P. Brent, "An Improved Monte Carlo Factorization Algorithm", BIT 20 (1980). So a period is found
// wherever it begins. If a period ends, the anchor moves there: the place where an inner loop ends comes once per outer loop.
//
// Numbers may be equal by chance, and do not stand for parameters. What is found must be compared with the insertions themselves.
import { resized } from '../../devices/resized.js';
import type { TaskInsertion } from '../engine/task-insertion.js';

/** Insertions that one comparison with the anchor stands for. */
const WINDOW = 64;
const BASE = 0x2c1b3c6d;
/** BASE to the power of WINDOW. */
const OLDEST = power(BASE, WINDOW);
const FEW = 64;

function power(base: number, exponent: number): number {
  let result = 1;
  for (let i = 0; i < exponent; i++) result = Math.imul(result, base);
  return result;
}

/** The number of an insertion. `after`: the tasks before it, by number; it is number `n` itself. */
export function numberOf(insertion: TaskInsertion, after: readonly number[], n: number): number {
  const { cls, flows, priority, device } = insertion;
  let h = Math.imul(cls.id + 1, BASE) ^ (priority + 17 * device);
  const count = cls.modes.length;
  for (let i = 0; i < count; i++) h = (Math.imul(h, BASE) + flows[i]) | 0;
  for (const before of after) h = (Math.imul(h, BASE) + (n - before)) | 0;
  return h ^ (h >>> 16);
}

export class Periods {
  /** Insertions so far. */
  count = 0;
  /** The period that the last insertions may have, or 0. */
  period = 0;
  /** Insertions in a row that were equal to the one a period before. */
  matched = 0;
  private numbers: Int32Array = new Int32Array(FEW);
  private window = 0;
  private anchor = WINDOW;
  private anchored = 0;

  add(number: number): void {
    const { count, period } = this;
    if (count === this.numbers.length) this.numbers = resized(this.numbers, 2 * count);
    const { numbers } = this;
    numbers[count] = number;
    this.count = count + 1;
    if (period > 0) {
      if (numbers[count - period] === number) {
        this.matched++;
        return;
      }
      this.begin();
      return;
    }
    const oldest = count < WINDOW ? 0 : numbers[count - WINDOW];
    this.window = (Math.imul(this.window, BASE) + number - Math.imul(oldest, OLDEST)) | 0;
    if (count + 1 === this.anchor) this.anchored = this.window;
    else if (count + 1 < this.anchor) return;
    else if (this.window === this.anchored) {
      this.period = count + 1 - this.anchor;
      this.matched = WINDOW;
    } else if (count + 1 >= 2 * this.anchor) {
      this.anchor = count + 1;
      this.anchored = this.window;
    }
  }

  /** Puts the anchor here: what came before has no period that goes on. */
  begin(): void {
    const { count, numbers } = this;
    this.period = 0;
    this.matched = 0;
    this.window = 0;
    for (let i = Math.max(0, count - WINDOW); i < count; i++)
      this.window = (Math.imul(this.window, BASE) + numbers[i]) | 0;
    this.anchor = Math.max(WINDOW, count);
    this.anchored = this.window;
  }

  /** The first insertion from which on the present period holds. */
  get first(): number {
    const { count, period, matched, numbers } = this;
    let first = count - matched - period;
    while (first > 0 && numbers[first - 1] === numbers[first - 1 + period]) first--;
    return first;
  }
}
