// The tasks that a rank leaves out in a pruned run. It walks over all tasks, and inserts those that concern it.
//
// A rank inserts a task if it runs the task, owns one of its data, has run the last writer of one of its inputs (and so sends it),
// runs a task that takes one of its outputs, or has inserted an earlier task on a datum that it overwrites. By the last rule it knows that a
// copy that it has is out of date: without it a later read would take that copy, while the owner sends the value.
// Invariant: every rank that sends, receives or owns a version inserts the task that makes it and the task that takes it, and a rank that
// has a copy of a version inserts the task that overwrites it.

import { Datum } from '../program/datum.js';
import type { Graph } from '../program/graph.js';
import { FlowEnd, type Targets } from './ends.js';
import type { GraphClass } from './graph-class.js';
import type { GraphTask } from './graph-task.js';

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
  skips(task: GraphTask, rank: number | undefined): boolean {
    const { graph } = this;
    const { cls, values, indices } = task;
    if (rank === graph.rank) return false;
    for (const value of values) {
      if (value === undefined) continue;
      const { of } = value;
      if (graph.owns(of.datum) || (of.writer !== undefined && this.runs(of.writer))) return false;
    }
    if (cls.isWritten.some((written, f) => written && values[task.first(f)]?.of.isKnownHere))
      return false;
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
