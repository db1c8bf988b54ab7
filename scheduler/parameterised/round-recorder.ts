// Walks one round and keeps what the functions of its tasks return. They are pure: they are called again to see it, so the walk itself keeps
// nothing for that.

import { Datum } from '../program/datum.js';
import { type ClassShift, Place } from './class-shift.js';
import { FlowEnd, type Targets, Temporary } from './ends.js';
import type { GraphClass } from './graph-class.js';
import type { GraphTask } from './graph-task.js';
import { type MadeTask, type Output, Returned, type Step } from './round.js';
import { type UsedDatum, Value } from './values.js';
import type { WaitingTasks } from './waiting-tasks.js';

/** What a round needs of a walk. @internal */
export interface Walked {
  readonly classes: readonly GraphClass[];
  readonly waiting: WaitingTasks;
  /** The data that are there before the graph. */
  readonly data: ReadonlyMap<Datum, UsedDatum>;
  /** Inserted tasks by class. */
  readonly counts: number[];
  /** All functions are called. */
  readonly isChecked: boolean;
  insert(task: GraphTask): void;
}

/** @internal */
export class RoundRecorder {
  readonly steps: Step[] = [];
  private readonly walk: Walked;
  private readonly shifts: readonly ClassShift[];
  /** Data that tasks use as they were before the graph. */
  private readonly begun: Set<Datum> = new Set();
  /** Versions before the round. */
  private readonly versions: Map<UsedDatum, number> = new Map();
  /** Something in the round is not the same in the next one, whatever the functions return. */
  private isSpoiled = false;

  constructor(walk: Walked, shifts: readonly ClassShift[]) {
    this.walk = walk;
    this.shifts = shifts;
    for (const used of walk.data.values()) this.versions.set(used, used.version);
  }

  /** Inserts a task of the round. */
  insert(task: GraphTask): void {
    const { walk } = this;
    const { cls, indices, turn, inputs } = task;
    const data = inputs.map((input) => this.datumOf(input));
    const before = walk.waiting.count;
    walk.insert(task);
    const made = new Set<GraphTask>();
    const outputs: Output[] = [];
    for (const f of cls.sending) {
      const to = cls.to[f];
      if (to === undefined) continue;
      outputs.push({ to, targets: this.sent(to(indices), data[f], before, made) });
    }
    this.steps.push({ cls, turn, indices, data, outputs });
  }

  private datumOf(input: GraphTask['inputs'][number]): Datum {
    if (input instanceof Value) return input.of.datum;
    if (input instanceof Datum) this.begun.add(input);
    return input as Datum;
  }

  private sent(targets: Targets, sent: Datum, before: number, made: Set<GraphTask>): Returned {
    if (Array.isArray(targets)) {
      const all = targets as readonly Targets[];
      return new Returned(all.map((one) => this.sent(one, sent, before, made)));
    }
    if (!(targets instanceof FlowEnd)) {
      // A copy home is an insertion of its own.
      if (targets instanceof Datum && targets !== sent) this.isSpoiled = true;
      return new Returned(undefined, undefined, targets);
    }
    const task = this.walk.waiting.find(targets);
    if (task === undefined || task.turn < before || made.has(task)) return this.end(targets);
    made.add(task);
    return this.end(targets, this.made(task));
  }

  private end(end: FlowEnd, made?: MadeTask): Returned {
    const { flow, indices } = end;
    const cls = end.cls as GraphClass;
    const place = new Place(cls.indexNames, indices);
    return new Returned(undefined, { cls, flow, place, shift: this.shifts[cls.number], made });
  }

  private made({ cls, indices, turn }: GraphTask): MadeTask {
    const sources = cls.from.map((from) => {
      const source = from(indices);
      if (source instanceof FlowEnd) return this.end(source);
      if (source instanceof Temporary) this.isSpoiled = true;
      return new Returned(undefined, undefined, source);
    });
    return { cls, turn, indices, sources };
  }

  /** Whether the next round may be as this one, which has ended. */
  get isUsable(): boolean {
    const { data } = this.walk;
    // A version that a task overwrites is gone in the next round.
    return !this.isSpoiled && [...this.begun].every((datum) => data.get(datum)?.version === 0);
  }

  /** The data move on by that many rounds: their versions, and the last writers, of which messages have the names. */
  moveData(rounds: number): Map<UsedDatum, number> {
    const moved = new Map<UsedDatum, number>();
    const writers = new Set<GraphTask>();
    for (const used of this.walk.data.values()) {
      const versions = rounds * (used.version - (this.versions.get(used) ?? used.version));
      if (versions === 0) continue;
      used.version += versions;
      moved.set(used, versions);
      if (used.writer !== undefined) writers.add(used.writer);
    }
    for (const writer of writers)
      writer.indices = this.shifts[writer.cls.number].moved(writer.indices, rounds);
    return moved;
  }
}
