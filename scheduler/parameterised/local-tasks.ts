// The tasks of one rank, in the order that all ranks share: a merge of the classes, each of which has the order of its indices.
// Invariant: positions grow from task to task.

import { AllIndices } from './all-indices.js';
import type { Indices } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { badPosition, nameOf, noRank, notAscending, onePosition } from './local-mistakes.js';

/** The tasks of one class that belong to the rank. */
class OwnTasks {
  readonly cls: GraphClass;
  /** The next one; undefined behind the last one. */
  indices: Indices | undefined;
  position: number = -Infinity;
  private readonly rank: number;
  private readonly ranks: number;
  private readonly search: AllIndices;

  constructor(cls: GraphClass, rank: number, ranks: number) {
    this.cls = cls;
    this.rank = rank;
    this.ranks = ranks;
    const ranges = cls.own.map((own) => (of: Indices) => own(of, rank));
    this.search = new AllIndices(cls.indexNames, ranges);
    this.advance();
  }

  advance(): void {
    const { cls, search, rank, ranks, position: before, indices: last } = this;
    let indices = search.next();
    for (; indices !== undefined; indices = search.next()) {
      const at = cls.rankOf(indices) as number;
      if (at === rank) break;
      // No rank would run the task.
      if (!(Number.isInteger(at) && at >= 0 && at < ranks))
        throw noRank(nameOf(cls, indices), at, ranks);
    }
    this.indices = indices;
    if (indices === undefined) return;
    const position = positionOf(cls, indices);
    if (last !== undefined && position <= before)
      throw notAscending(cls, last, before, indices, position);
    this.position = position;
  }
}

/** The position of a task. @throws HeadraceError `ERR_GRAPH_ORDER` unless it is a finite number. @internal */
export function positionOf(cls: GraphClass, indices: Indices): number {
  const position = cls.order?.(indices);
  if (Number.isFinite(position)) return position as number;
  throw badPosition(cls, indices, position);
}

/** @internal */
export class LocalTasks {
  /** Those of the task that was taken last. */
  position: number = -Infinity;
  indices: Indices = {};
  private readonly classes: readonly OwnTasks[];
  private last: OwnTasks | undefined;

  constructor(classes: readonly GraphClass[], rank: number, ranks: number) {
    this.classes = classes.map((cls) => new OwnTasks(cls, rank, ranks));
  }

  /** Takes the next task; returns its class, or undefined behind the last one. @throws HeadraceError `ERR_GRAPH_ORDER` */
  take(): GraphClass | undefined {
    const { classes } = this;
    let next: OwnTasks | undefined;
    for (let n = 0; n < classes.length; n++) {
      const one = classes[n];
      if (one.indices === undefined) continue;
      if (next === undefined || one.position < next.position) next = one;
    }
    if (next === undefined) return undefined;
    const indices = next.indices as Indices;
    const { cls, position } = next;
    if (position === this.position && this.last !== undefined)
      throw onePosition(this.last.cls, this.indices, cls, indices, position);
    this.last = next;
    this.position = position;
    this.indices = indices;
    next.advance();
    return cls;
  }
}
