// How the indices of a class move from one round of a walk to the next (rounds.ts): by the same differences in every round.
// The first three indices are in fields of their own, which takes a third of the time of arrays.

import type { Indices } from './ends.js';

/** The indices of a task, by position. @internal */
export class Place {
  readonly a: number;
  readonly b: number;
  readonly c: number;
  /** All of them. */
  readonly all: readonly number[];

  constructor(names: readonly string[], of: Indices) {
    this.all = names.map((name) => of[name]);
    [this.a = 0, this.b = 0, this.c = 0] = this.all;
  }
}

/** @internal */
export class ClassShift {
  private readonly names: readonly string[];
  private readonly count: number;
  private readonly nameA: string;
  private readonly nameB: string;
  private readonly nameC: string;
  /** Differences from a round to the next, by position of the index. */
  private by: readonly number[];
  /** Those from the recorded round to the present one. */
  private now: readonly number[];
  private a = 0;
  private b = 0;
  private c = 0;
  private isKnown = false;

  /** `names`: of the indices. */
  constructor(names: readonly string[]) {
    this.names = names;
    this.count = names.length;
    [this.nameA = '', this.nameB = '', this.nameC = ''] = names;
    this.by = names.map(() => 0);
    this.now = this.by;
  }

  /** From a round to the next, by position of the index. */
  get differences(): readonly number[] {
    return this.by;
  }

  /** The present round is the one that many rounds behind the recorded one. */
  begin(round: number): void {
    this.now = this.by.map((by) => round * by);
    [this.a = 0, this.b = 0, this.c = 0] = this.now;
  }

  /**
   * Whether these indices are those of the present round at a place of the recorded one. The first ones of a class in the first round
   * give its differences, which its others must have.
   */
  fits(place: Place, of: Indices): boolean {
    const { count } = this;
    if (!this.isKnown) this.learn(place, of);
    // As in `sameIndices`, each index is read at a place of its own in the code.
    if (count > 0 && of[this.nameA] !== place.a + this.a) return false;
    if (count > 1 && of[this.nameB] !== place.b + this.b) return false;
    if (count > 2 && of[this.nameC] !== place.c + this.c) return false;
    return count < 4 || this.fitsRest(place, of);
  }

  private fitsRest({ all }: Place, of: Indices): boolean {
    const { names, now } = this;
    for (let n = 3; n < names.length; n++) if (of[names[n]] !== all[n] + now[n]) return false;
    return true;
  }

  private learn({ all }: Place, of: Indices): void {
    this.by = this.names.map((name, n) => of[name] - all[n]);
    this.isKnown = true;
    this.begin(1);
  }

  /** The indices that many rounds later. */
  moved(of: Indices, rounds: number): Indices {
    const { names, by } = this;
    const moved: Record<string, number> = { ...of };
    for (let n = 0; n < names.length; n++) moved[names[n]] += rounds * by[n];
    return moved;
  }
}
