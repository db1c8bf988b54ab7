// What a checked run looks at besides, where a rank enumerates its own tasks only: that these are its tasks, and all of them, and that
// both ends of their edges fit. It goes over the indices of all tasks for that, so it is no part of other runs.

import type { Datum } from '../program/datum.js';
import { ControlEnd, type Controls, FlowEnd, type Indices, type Targets } from './ends.js';
import type { GraphClass } from './graph-class.js';
import type { LocalInputs } from './local-inputs.js';
import {
  inputElsewhere,
  missedTask,
  nameOf,
  strayTask,
  targetOutside,
  unexpectedEnd,
  unsentInput,
} from './local-mistakes.js';
import { keyOf, sameIndices, type TaskKey } from './task-key.js';

/** @internal */
export class LocalChecks {
  private readonly classes: readonly GraphClass[];
  private readonly rank: number;
  private readonly inputs: LocalInputs;
  /** Flows of tasks that the owners of data send to, by datum; made when it is first needed. */
  private readers: Map<Datum, Targets[]> | undefined;
  /** The tasks that were enumerated, by class. */
  private readonly taken: readonly Set<TaskKey>[];

  constructor(classes: readonly GraphClass[], inputs: LocalInputs, rank: number) {
    this.classes = classes;
    this.inputs = inputs;
    this.rank = rank;
    this.taken = classes.map(() => new Set<TaskKey>());
  }

  /** @throws HeadraceError `ERR_GRAPH_LOCAL` for a task that is none */
  took(cls: GraphClass, indices: Indices): void {
    if (cls.outside(indices) !== undefined) throw strayTask(nameOf(cls, indices), this.rank);
    this.taken[cls.number].add(keyOf(cls.indexNames, indices));
  }

  /** A task sends its flow `f` to `end`. @throws HeadraceError `ERR_GRAPH_RANGE`, `ERR_GRAPH_EDGE` */
  sends(cls: GraphClass, indices: Indices, f: number, end: FlowEnd): void {
    const target = end.cls as GraphClass;
    if (this.classes[target.number] !== target || target.outside(end.indices) !== undefined)
      throw targetOutside(nameOf(cls, indices), end);
    const source = target.from[end.flow](end.indices);
    // A list has several sources.
    if (!leadsTo(source as Targets, cls, indices, f))
      throw unexpectedEnd(nameOf(cls, indices), end);
  }

  /** The flow `f` of a task reads a datum of another rank as it was before the graph. @throws HeadraceError `ERR_GRAPH_LOCAL` */
  reads(cls: GraphClass, indices: Indices, f: number, datum: Datum): void {
    const { inputs } = this;
    if (inputs.shared.includes(datum)) return;
    if (this.readers === undefined) {
      const readers = new Map<Datum, Targets[]>();
      this.readers = readers;
      inputs.each((one, to) => {
        const known = readers.get(one);
        if (known === undefined) readers.set(one, [to]);
        else known.push(to);
      });
    }
    if (leadsTo(this.readers.get(datum), cls, indices, f)) return;
    throw inputElsewhere(nameOf(cls, indices), cls.runs.flowNames[f], datum);
  }

  /** The flow `f` of a task takes what `source` leaves. @throws HeadraceError `ERR_GRAPH_EDGE` */
  takes(cls: GraphClass, indices: Indices, f: number, source: FlowEnd): void {
    const sender = source.cls as GraphClass;
    const to = sender.to[source.flow]?.(source.indices);
    if (!leadsTo(to, cls, indices, f))
      throw unsentInput(nameOf(cls, indices), cls.runs.flowNames[f], source);
  }

  /** The control flow `control` of a task leads to `end`. @throws HeadraceError `ERR_GRAPH_RANGE`, `ERR_GRAPH_EDGE` */
  leads(cls: GraphClass, indices: Indices, control: number, end: ControlEnd): void {
    const target = end.cls as GraphClass;
    if (this.classes[target.number] !== target || target.outside(end.indices) !== undefined)
      throw targetOutside(nameOf(cls, indices), end);
    if (!orders(target.controlFrom[end.control]?.(end.indices), cls, indices, control))
      throw unexpectedEnd(nameOf(cls, indices), end);
  }

  /** The control flow `control` of a task comes from `source`. @throws HeadraceError `ERR_GRAPH_EDGE` */
  follows(cls: GraphClass, indices: Indices, control: number, source: ControlEnd): void {
    const sender = source.cls as GraphClass;
    if (!orders(sender.controlTo[source.control]?.(source.indices), cls, indices, control))
      throw unsentInput(nameOf(cls, indices), cls.controlNames[control], source);
  }

  /** @throws HeadraceError `ERR_GRAPH_LOCAL` for a task of the rank that is missing */
  ended(): void {
    const { classes, rank, taken } = this;
    for (const cls of classes)
      for (const indices of cls.tasks())
        if (cls.rankOf(indices) === rank && !taken[cls.number].has(keyOf(cls.indexNames, indices)))
          throw missedTask(nameOf(cls, indices), rank);
  }
}

function isAt(end: unknown, cls: GraphClass, indices: Indices, f: number): boolean {
  return (
    end instanceof FlowEnd &&
    end.cls === cls &&
    end.flow === f &&
    sameIndices(cls.indexNames, end.indices, indices)
  );
}

function leadsTo(to: Targets, cls: GraphClass, indices: Indices, f: number): boolean {
  if (Array.isArray(to)) return to.some((one: Targets) => leadsTo(one, cls, indices, f));
  return isAt(to, cls, indices, f);
}

function orders(ends: Controls, cls: GraphClass, indices: Indices, control: number): boolean {
  if (Array.isArray(ends)) return ends.some((one: Controls) => orders(one, cls, indices, control));
  return (
    ends instanceof ControlEnd &&
    ends.cls === cls &&
    ends.control === control &&
    sameIndices(cls.indexNames, ends.indices, indices)
  );
}
