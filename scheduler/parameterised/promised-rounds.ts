// The rounds of a walk (rounds.ts) of which the classes promise what their functions return (promise.ts).
//
// Invariant: if the promises are kept, each of these rounds is as the comparison of round.ts would find it: the functions return what they
// returned in the first of them, which was compared, moved. So all classes that move have a promise, move in its index only, and equally
// far, as the ends do that the functions return; and every index at which the comparison would call a function is in the promised range.

import { guards } from '../../devices/guards.js';
import type { ClassShift } from './class-shift.js';
import type { EndClass } from './ends.js';
import type { GraphClass } from './graph-class.js';
import type { Range } from './range.js';
import type { MadeTask, Returned, Step } from './round.js';

/** @internal */
export class PromisedRounds {
  /** Numbers of the first and the last one, where the recorded round is number 0; none if `last` is not above `first`. */
  first = 1;
  last: number = Number.MAX_SAFE_INTEGER;
  private readonly shifts: readonly ClassShift[];
  /** Of each class that moves. */
  private by = 0;
  private readonly seen: Set<EndClass> = new Set();

  /** When at least one round was compared. @throws what the functions of `repeats` throw */
  constructor(steps: readonly Step[], shifts: readonly ClassShift[]) {
    this.shifts = shifts;
    if (this.areEqual(steps)) for (const step of steps) this.limit(step);
    else this.last = 0;
  }

  /** Whether all classes of the round move equally far, as they promise. */
  private areEqual(steps: readonly Step[]): boolean {
    return steps.every(
      ({ cls, outputs }) =>
        this.moves(cls) && outputs.every(({ targets }) => this.endsMove(targets)),
    );
  }

  private endsMove({ all, end }: Returned): boolean {
    if (all !== undefined) return all.every((one) => this.endsMove(one));
    if (end === undefined) return true;
    const sources = end.made?.sources ?? [];
    return this.moves(end.cls) && sources.every((source) => this.endsMove(source));
  }

  private moves(cls: EndClass): boolean {
    if (this.seen.has(cls)) return true;
    this.seen.add(cls);
    const { repeats, number } = cls as GraphClass;
    return this.shifts[number].differences.every((by, n) => {
      if (n !== repeats?.position) return by === 0;
      if (this.by === 0) this.by = by;
      return by !== 0 && by === this.by;
    });
  }

  /** The rounds end where the comparison of a task would call a function outside of a promise. */
  private limit({ cls, indices, outputs }: Step): void {
    const { repeats } = cls;
    if (repeats === undefined) this.last = 0;
    else this.stay(indices[repeats.index], repeats.range);
    for (const { targets } of outputs) this.limitEnds(targets);
  }

  private limitEnds({ all, end }: Returned): void {
    if (all !== undefined) for (const one of all) this.limitEnds(one);
    else if (end?.made !== undefined) this.limitMade(end.made);
  }

  private limitMade({ cls, indices }: MadeTask): void {
    const { repeats } = cls;
    if (repeats === undefined) {
      this.last = 0;
      return;
    }
    const value = indices[repeats.index];
    const values = repeats.valuesAt(indices);
    this.stay(value, repeats.range);
    this.stay(value, values);
    if (this.by % values.step !== 0) this.last = 0;
  }

  /** An index that has this value in the recorded round is in the range in all of these rounds. */
  private stay(value: number, { first, end }: Range): void {
    const { by } = this;
    const [near, far] = by > 0 ? [first, end - 1] : [end - 1, first];
    this.first = Math.max(this.first, Math.ceil((near - value) / by));
    const last = Math.floor((far - value) / by) + (guards.repeatsEnd ? 0 : 1);
    this.last = Math.min(this.last, last);
  }
}
