// The tasks of a recorded round (rounds.ts), and what the functions of their classes returned. The rounds that follow it are compared with it,
// and their tasks inserted: nothing is looked up, and nothing kept but the indices of known tasks. Rounds of which the classes promise what
// their functions return (promised-rounds.ts) are not even compared.
// Invariant: the state of the walk before each of these rounds is that behind the recorded one but for the indices, which have moved. So while
// the functions return what has moved in the same way, the walk would insert the same tasks with the same data in the same order.

import type { Datum } from '../program/datum.js';
import type { ClassShift, Place } from './class-shift.js';
import { type EndClass, FlowEnd, type Indices, type Source, type Targets } from './ends.js';
import type { GraphClass } from './graph-class.js';
import type { GraphTask } from './graph-task.js';
import type { Portion } from './portion.js';
import { PromisedRounds } from './promised-rounds.js';

/** A task that becomes known when the first input arrives. @internal */
export interface MadeTask {
  readonly cls: GraphClass;
  readonly turn: number;
  /** In the recorded round, as those of a step. */
  readonly indices: Indices;
  readonly sources: readonly Returned[];
}

/** The flow of a task. */
interface ReturnedEnd {
  readonly cls: EndClass;
  readonly flow: number;
  /** Where the task was in the recorded round. */
  readonly place: Place;
  readonly shift: ClassShift;
  /** The task there, if it becomes known by this end. */
  readonly made: MadeTask | undefined;
}

/** What a function returned: an array, an end, or a value that is the same in every round. One shape for all, which is the fastest. @internal */
export class Returned {
  readonly all: readonly Returned[] | undefined;
  readonly end: ReturnedEnd | undefined;
  readonly value: unknown;

  constructor(all: readonly Returned[] | undefined, end?: ReturnedEnd, value?: unknown) {
    this.all = all;
    this.end = end;
    this.value = value;
  }
}

/** What a flow of a task sent. @internal */
export interface Output {
  readonly to: (of: Indices) => Targets;
  readonly targets: Returned;
}

/** A task of the recorded round. @internal */
export interface Step {
  readonly cls: GraphClass;
  readonly turn: number;
  readonly indices: Indices;
  /** By flow. */
  readonly data: readonly Datum[];
  readonly outputs: readonly Output[];
}

/** A known task. */
interface Known {
  readonly turn: number;
  readonly indices: Indices;
  readonly shift: ClassShift;
}

/** How far the rounds have come. */
interface Progress {
  /** Whole rounds. */
  readonly rounds: number;
  /** Tasks of the round behind them that were inserted. */
  readonly inserted: number;
}

/** @internal */
export class Round {
  private readonly steps: readonly Step[];
  private readonly shifts: readonly ClassShift[];
  /** The indices of known tasks, by turn. */
  private readonly known: Indices[];
  /** The tasks that are known behind the recorded round. */
  private readonly behind: Known[] = [];
  /** From the turns of the recorded round to those of the present one. */
  private ahead = 0;

  /** `span`: turns from the oldest known task to the newest one, at most. */
  constructor(steps: readonly Step[], shifts: readonly ClassShift[], span: number) {
    this.steps = steps;
    this.shifts = shifts;
    this.known = new Array<Indices>(2 ** Math.ceil(Math.log2(span + 1))).fill({});
  }

  /** A task that is known behind the recorded round. */
  keep({ turn, indices, cls }: GraphTask): void {
    this.behind.push({ turn, indices, shift: this.shifts[cls.number] });
    this.know(turn, indices);
  }

  private know(turn: number, indices: Indices): void {
    this.known[turn & (this.known.length - 1)] = indices;
  }

  /**
   * Inserts the tasks of the rounds behind the recorded one, up to the first call of a function that returns something else. `compares`: promises
   * are not relied on.
   * @throws what the functions throw, and the errors of `Graph.insert`
   */
  goOn(portion: Portion, compares: boolean): Progress {
    const { steps, shifts, known } = this;
    const mask = known.length - 1;
    let promised: PromisedRounds | undefined;
    for (let rounds = 0; ; rounds++) {
      if (rounds === 1 && !compares) promised = new PromisedRounds(steps, shifts);
      if (promised !== undefined && rounds >= promised.first && rounds < promised.last)
        rounds = this.repeat(portion, rounds, promised.last);
      for (const shift of shifts) shift.begin(rounds + 1);
      this.ahead += steps.length;
      for (let n = 0; n < steps.length; n++) {
        const step = steps[n];
        const indices = known[(step.turn + this.ahead) & mask];
        const { cls, data } = step;
        const given = portion.data;
        for (let f = 0; f < data.length; f++) given[f] = data[f];
        portion.add(
          cls.runs,
          cls.params?.(indices),
          cls.optionsOf(indices, 0, undefined, undefined),
        );
        if (!this.sends(step, indices)) return { rounds, inserted: n + 1 };
      }
    }
  }

  /** Inserts the tasks of the rounds behind number `from`, up to number `to`, without a look at their functions. Returns `to`. */
  private repeat(portion: Portion, from: number, to: number): number {
    const { steps, behind } = this;
    const count = steps.length;
    const all = (to - from) * count;
    let ask = steps.every(({ cls }) => cls.isConstant) ? 0 : all;
    for (let at = 0; at < all; at++) {
      if (at === ask) {
        const until = portion.untilAgain();
        // The recorded round is one of those before.
        const before = (from + 1) * count + at;
        if (until === 0) at += portion.again({ count, before, ahead: all - at });
        if (at === all) break;
        ask = at + Math.max(1, until);
      }
      this.addAgain(portion, steps[at % count], from + 1 + Math.floor(at / count));
    }
    this.ahead += all;
    for (const { turn, indices, shift } of behind)
      this.know(turn + this.ahead, shift.moved(indices, to));
    return to;
  }

  private addAgain(portion: Portion, { cls, data, indices }: Step, round: number): void {
    const given = portion.data;
    for (let f = 0; f < data.length; f++) given[f] = data[f];
    const of = cls.isConstant ? indices : this.shifts[cls.number].moved(indices, round);
    portion.add(cls.runs, cls.params?.(of), cls.optionsOf(of, 0, undefined, undefined));
  }

  private sends({ outputs }: Step, indices: Indices): boolean {
    for (let n = 0; n < outputs.length; n++) {
      const { to, targets } = outputs[n];
      if (!this.fits(to(indices), targets)) return false;
    }
    return true;
  }

  private fits(targets: Targets, returned: Returned): boolean {
    const { all } = returned;
    if (all === undefined) return this.fitsOne(targets, returned);
    if (!Array.isArray(targets) || targets.length !== all.length) return false;
    for (let n = 0; n < all.length; n++) {
      const one = all[n];
      const target: Targets = targets[n];
      if (!(one.all === undefined ? this.fitsOne(target, one) : this.fits(target, one)))
        return false;
    }
    return true;
  }

  private fitsOne(target: Targets, { end, value }: Returned): boolean {
    if (end === undefined) return target === value;
    if (!isAt(end, target as FlowEnd | undefined)) return false;
    return end.made === undefined || this.makes(end.made, (target as FlowEnd).indices);
  }

  /** A task becomes known. Each function is called at a place of its own in the code, as for a task that is kept (graph-task.ts). */
  private makes({ cls, turn, sources }: MadeTask, of: Indices): boolean {
    if (cls.outside(of) !== undefined) return false;
    const { from } = cls as { readonly from: readonly ((of: Indices) => Source)[] };
    const count = sources.length;
    if (count > 0 && !comesFrom(from[0](of), sources[0])) return false;
    if (count > 1 && !comesFrom(from[1](of), sources[1])) return false;
    if (count > 2 && !comesFrom(from[2](of), sources[2])) return false;
    if (count > 3 && !comesFrom(from[3](of), sources[3])) return false;
    for (let f = 4; f < count; f++) if (!comesFrom(from[f](of), sources[f])) return false;
    this.know(turn + this.ahead, of);
    return true;
  }
}

function comesFrom(source: Source, { end, value }: Returned): boolean {
  return end === undefined ? source === value : isAt(end, source as FlowEnd | undefined);
}

/** `given` may be anything. V8 knows what it is when it has read a property, so `instanceof` comes behind that and takes no time. */
function isAt(
  { cls, flow, place, shift }: ReturnedEnd,
  given: FlowEnd | undefined | null,
): boolean {
  if (given === undefined || given === null || given.cls !== cls) return false;
  return given instanceof FlowEnd && given.flow === flow && shift.fits(place, given.indices);
}
