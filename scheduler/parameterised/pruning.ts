// The tasks that a rank leaves out in a pruned run. It walks over all tasks, and inserts those that concern it.
//
// A rank inserts a task if it runs the task, or
// 1. owns one of its data,
// 2. has written the latest version of one of them, which it may have to send,
// 3. has a copy of the latest version of a datum that the task overwrites,
// 4. runs a task that takes one of its outputs, or owns the datum to which an output goes,
// 5. or takes another rank for the writer of a datum of which the task leaves the last version.
//
// A send and its receive match by their number among those of the datum between the two ranks. So the sender and the receiver of a
// version must both insert its maker and its taker, and no rank may send or keep a version that is not the latest one.
// Invariants: a rank that inserts a task knows who has the versions that the task takes from it or gives to it. A rank never takes itself
// for the writer of the latest version of a datum, or a copy of its own for the latest version, when they are not. When the
// instance is over, every rank knows the writers of all data, so the next use of them may be any.

import { guards } from '../../devices/guards.js';
import { Datum } from '../program/datum.js';
import type { Graph } from '../program/graph.js';
import { FlowEnd, type Targets } from './ends.js';
import type { GraphClass } from './graph-class.js';
import type { GraphTask } from './graph-task.js';
import { Value } from './values.js';

/**
 * The rules for an instance; undefined if this rank must insert all tasks: the rules need the rank of every task, and flows
 * that are only read must not pass their input on.
 * @internal
 */
export function pruningOf(graph: Graph, classes: readonly GraphClass[]): Pruning | undefined {
  const isKnown = classes.every(
    ({ on, to, isWritten, hasControls }) =>
      on !== undefined &&
      !hasControls &&
      to.every((given, f) => given === undefined || isWritten[f]),
  );
  return isKnown ? new Pruning(graph) : undefined;
}

/** @internal */
export class Pruning {
  private readonly graph: Graph;

  constructor(graph: Graph) {
    this.graph = graph;
  }

  /** Whether this rank leaves out a task of rank `rank`, whose inputs have arrived. */
  skips(task: GraphTask, rank: number): boolean {
    const { graph } = this;
    const { cls, inputs, indices } = task;
    if (rank === graph.rank) return false;
    for (let f = 0; f < cls.isWritten.length; f++) {
      for (let s = task.first(f); s < task.end(f); s++) {
        const input = inputs[s];
        if (!(input instanceof Value)) continue;
        const { datum } = input.of;
        const producer = graph.producerOf(datum);
        if (graph.owns(datum) || (producer === graph.rank && guards.prunedSends)) return false;
        if (!cls.isWritten[f]) continue;
        if (graph.hasLatest(datum) && guards.prunedCopies) return false;
        const isLast = producer !== rank && !isOverwritten(cls.to[f]?.(indices));
        if (isLast && guards.prunedLast) return false;
      }
    }
    return cls.to.every((to) => to === undefined || !this.takes(to(indices)));
  }

  private runs({ cls, indices }: Pick<FlowEnd, 'cls' | 'indices'>): boolean {
    const at = (cls as GraphClass).on?.(indices);
    return (at instanceof Datum ? at.rank : at) === this.graph.rank;
  }

  /** Whether this rank runs one of the targets or owns it. */
  private takes(targets: Targets): boolean {
    if (targets instanceof FlowEnd) return this.runs(targets);
    if (targets instanceof Datum) return this.graph.owns(targets);
    return Array.isArray(targets) && targets.some((one: Targets) => this.takes(one));
  }
}

/** Whether a task of the instance overwrites the version that goes to these targets. */
function isOverwritten(targets: Targets): boolean {
  if (targets instanceof FlowEnd) return (targets.cls as GraphClass).isWritten[targets.flow];
  return Array.isArray(targets) && targets.some((one: Targets) => isOverwritten(one));
}
