// Which versions go along a tree, where a rank looks at its own tasks only: those of flows that some tasks send to many ranks.
//
// A rank that receives a version along a tree may have to pass it on, and has a task for that. It does not see who else takes the version, so
// the answer is one for all tasks of a class. It comes from a sample of them: the first, the middle and the last value of each index.
// A rank that pulls a version is not part of a tree. So if a class of the graph pulls, no version goes along one.
// Invariant: all ranks find the same, the sender and the receivers of a version among them. If the sample misses a task with many
// targets, that task sends to each of them, which takes more time and is right.

import { FlowEnd, type Indices, type Targets } from './ends.js';
import type { GraphClass } from './graph-class.js';

/** @internal */
export class LocalTrees {
  /** By class and flow, as far as it was asked for. */
  private readonly answers: (boolean | undefined)[][];
  private readonly from: number;
  /** No version goes along a tree. */
  readonly areNone: boolean;

  /** `from`: number of ranks from which on a version goes along a tree. */
  constructor(classes: readonly GraphClass[], from: number) {
    this.answers = classes.map(() => []);
    this.from = from;
    const pulls = classes.some(({ runs }) => runs.pulls !== undefined);
    this.areNone = pulls || from === Number.POSITIVE_INFINITY;
  }

  /** Whether the values of flow `f` of a class go along trees. */
  has(cls: GraphClass, f: number): boolean {
    const answers = this.answers[cls.number];
    let answer = answers[f];
    if (answer === undefined) {
      answer = this.find(cls, f);
      answers[f] = answer;
    }
    return answer;
  }

  private find(cls: GraphClass, f: number): boolean {
    const to = cls.to[f];
    if (to === undefined || this.areNone) return false;
    for (const indices of sample(cls)) {
      const ranks = new Set<number | undefined>();
      addRanks(to(indices), ranks);
      ranks.delete(cls.rankOf(indices));
      if (ranks.size >= this.from) return true;
    }
    return false;
  }
}

/** Some tasks of a class, by the values of the indices from the `n`th on. */
function* sample(cls: GraphClass, of: Indices = {}, n = 0): Generator<Indices> {
  const { indexNames, ranges } = cls;
  if (n === indexNames.length) {
    yield of;
    return;
  }
  const { first, end, step } = ranges[n](of);
  const last = Math.ceil((end - first) / step) - 1;
  if (last < 0) return;
  for (const place of new Set([0, last >> 1, last]))
    yield* sample(cls, { ...of, [indexNames[n]]: first + place * step }, n + 1);
}

/** Adds the ranks of the tasks that are targets. Those that do not exist are a mistake that is found elsewhere. */
function addRanks(targets: Targets, ranks: Set<number | undefined>): void {
  if (Array.isArray(targets)) for (const one of targets as Targets[]) addRanks(one, ranks);
  else if (targets instanceof FlowEnd) {
    const cls = targets.cls as GraphClass;
    if (cls.outside(targets.indices) === undefined) ranks.add(cls.rankOf(targets.indices));
  }
}
