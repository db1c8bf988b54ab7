// One task of a parameterised graph that is known and not inserted yet: its sources, and what has arrived of them.
// Invariant: `missing` is the number of inputs from other tasks, data and control, that may not be used yet. An input counts
// when its value may be used: for a flow that is written, when the readers of that version have been inserted (values.ts).

import { HeadraceError } from '../../devices/errors.js';
import type { TaskHandle } from '../../devices/handles.js';
import { shown } from '../checks.js';
import { Datum } from '../program/datum.js';
import type { ClassShift } from './class-shift.js';
import {
  ControlEnd,
  type Controls,
  FlowEnd,
  type Indices,
  type Source,
  Temporary,
} from './ends.js';
import type { GraphClass } from './graph-class.js';
import { keyOf, sameIndices, type TaskKey, taskName } from './task-key.js';
import type { Value } from './values.js';

/** An order without data that the task expects. */
interface Awaited {
  readonly from: ControlEnd;
  readonly control: number;
  arrived: boolean;
}

/** An input that has not arrived, and the end that should send it. */
interface MissingInput {
  readonly input: string;
  readonly from: FlowEnd | ControlEnd;
}

/** The constructor writes each field once: declared fields are not made undefined before. @internal */
export class GraphTask {
  declare readonly cls: GraphClass;
  declare indices: Indices;
  declare readonly priority: number;
  /** A source per flow, whose place a value takes when it arrives; the members of a list stand one after the other. */
  declare inputs: (Source | Value)[];
  /** First source of each flow, and the number of sources; undefined without lists: a source per flow. */
  declare readonly firsts: readonly number[] | undefined;
  /** Orders that it expects. */
  declare readonly awaited: readonly Awaited[];
  /** Handles of the tasks that control flows put before it. */
  declare after: TaskHandle[] | undefined;
  declare missing: number;
  /** Among the known tasks of its class: the hash of its indices, and the task behind it in the chain of that hash. */
  declare hash: number;
  declare next: GraphTask | undefined;
  /** How many were known before it; -1 for a task that became known without an input. */
  declare turn: number;

  /** @throws HeadraceError `ERR_GRAPH_EDGE` for sources that are none */
  constructor(cls: GraphClass, indices: Indices) {
    const { from, runs } = cls;
    this.cls = cls;
    this.indices = indices;
    this.priority = cls.priority === undefined ? 0 : cls.priority(indices);
    this.after = undefined;
    this.missing = 0;
    this.hash = 0;
    this.next = undefined;
    this.turn = -1;
    if (runs.lists === undefined) {
      const sources = sourcesAt(from as readonly ((of: Indices) => Source)[], indices);
      this.inputs = sources;
      this.firsts = undefined;
      for (let f = 0; f < sources.length; f++) {
        const source = sources[f];
        if (source instanceof FlowEnd) this.missing++;
        else this.checkSource(source, f);
      }
    } else {
      const firsts: number[] = [];
      this.firsts = firsts;
      this.inputs = this.readLists(firsts);
    }
    this.awaited = cls.hasControls ? this.readControls() : NONE;
  }

  /** A source that is no other task. */
  private checkSource(source: Source, flow: number): void {
    if (source instanceof Temporary) {
      if (this.cls.isRead[flow])
        throw this.badSource(flow, source, 'a value: a temporary has none before it is written');
    } else if (!(source instanceof Datum))
      throw this.badSource(flow, source, 'a datum, the flow of another task or a temporary');
  }

  /** The sources of a task with lists. Fills `firsts`. */
  private readLists(firsts: number[]): Source[] {
    const { cls } = this;
    const sources: Source[] = [];
    for (let f = 0; f < cls.from.length; f++) {
      firsts.push(sources.length);
      sources.push(...this.sourcesOf(f));
      for (let s = firsts[f]; s < sources.length; s++) {
        if (sources[s] instanceof FlowEnd) this.missing++;
        else this.checkSource(sources[s], f);
      }
    }
    firsts.push(sources.length);
    return sources;
  }

  /** What the function of the class gives for a flow. @throws HeadraceError `ERR_GRAPH_EDGE` for a list that is none */
  sourcesOf(flow: number): readonly Source[] {
    const { cls, indices } = this;
    const source = cls.from[flow](indices);
    if (cls.runs.lists?.[flow] !== 1) return [source as Source];
    if (Array.isArray(source)) return source as Source[];
    throw this.badSource(flow, source, 'an array of sources');
  }

  private badSource(flow: number, source: unknown, wanted: string): HeadraceError {
    const name = this.cls.runs.flowNames[flow];
    return new HeadraceError(
      'ERR_GRAPH_EDGE',
      `flow '${name}' of ${this.name} comes from ${source instanceof Temporary ? 'a temporary' : shown(source)}; it needs ${wanted}`,
      { task: this.name },
    );
  }

  private readControls(): Awaited[] {
    const all: Awaited[] = [];
    this.cls.controlFrom.forEach((from, control) => {
      eachControl(from?.(this.indices), (end) => {
        all.push({ from: end, control, arrived: false });
        this.missing++;
      });
    });
    return all;
  }

  /** The task takes its place that many rounds later (rounds.ts). */
  move(rounds: number, turns: number, shifts: readonly ClassShift[]): void {
    const { inputs } = this;
    this.indices = shifts[this.cls.number].moved(this.indices, rounds);
    this.turn += turns;
    for (let s = 0; s < inputs.length; s++) {
      const input = inputs[s];
      if (!(input instanceof FlowEnd)) continue;
      const { cls, flow, indices } = input;
      inputs[s] = new FlowEnd(cls, flow, shifts[cls.number].moved(indices, rounds));
    }
  }

  get key(): TaskKey {
    return keyOf(this.cls.indexNames, this.indices);
  }

  get name(): string {
    return taskName(this.cls.name, this.cls.indexNames, this.indices);
  }

  /** The first position of a flow's sources. */
  first(flow: number): number {
    return this.firsts === undefined ? flow : this.firsts[flow];
  }

  /** The position behind a flow's sources. */
  end(flow: number): number {
    return this.firsts === undefined ? flow + 1 : this.firsts[flow + 1];
  }

  /** The position of a source of `flow` that is that flow of `producer` and has not arrived; -1 if there is none. */
  slotOf(flow: number, producer: GraphTask, produced: number): number {
    const { inputs } = this;
    if (this.firsts === undefined) {
      const source = inputs[flow];
      const isIt = source instanceof FlowEnd && producer.isAt(source, source.flow, produced);
      return isIt ? flow : -1;
    }
    const end = this.end(flow);
    for (let s = this.first(flow); s < end; s++) {
      const source = inputs[s];
      if (source instanceof FlowEnd && producer.isAt(source, source.flow, produced)) return s;
    }
    return -1;
  }

  /** Whether `flow` has that flow of `producer` as a source, arrived or not. */
  expects(flow: number, producer: GraphTask, produced: number): boolean {
    return this.sourcesOf(flow).some(
      (source) => source instanceof FlowEnd && producer.isAt(source, source.flow, produced),
    );
  }

  /** As `slotOf`, for orders. */
  awaitedOf(control: number, producer: GraphTask, produced: number): Awaited | undefined {
    const all = this.awaited.filter(
      (one) => one.control === control && producer.isAt(one.from, one.from.control, produced),
    );
    return all.find(({ arrived }) => !arrived) ?? all[0];
  }

  private isAt(end: FlowEnd | ControlEnd, position: number, produced: number): boolean {
    const { cls, indices } = this;
    return (
      end.cls === cls &&
      position === produced &&
      (end.indices === indices || sameIndices(cls.indexNames, end.indices, indices))
    );
  }

  /** The inputs that have not arrived, in words. */
  lacking(): string[] {
    return this.missingInputs().map(({ input, from }) =>
      from instanceof FlowEnd
        ? `'${input}' from ${endName(from)}`
        : `control '${input}' from ${endName(from)}`,
    );
  }

  /** The inputs that have not arrived: names of flows and control flows, and the ends that should send them. */
  missingInputs(): MissingInput[] {
    const { flowNames } = this.cls.runs;
    const inputs: MissingInput[] = [];
    flowNames.forEach((input, f) => {
      for (let s = this.first(f); s < this.end(f); s++) {
        const from = this.inputs[s];
        if (from instanceof FlowEnd) inputs.push({ input, from });
      }
    });
    for (const { from, control, arrived } of this.awaited)
      if (!arrived) inputs.push({ input: this.cls.controlNames[control], from });
    return inputs;
  }
}

const NONE: readonly Awaited[] = [];

/** The task at an end. @internal */
export function taskAt(cls: GraphClass, indices: Indices): GraphTask {
  return new GraphTask(cls, indices);
}

/** Whether the task at these indices has no input from another task. @internal */
export function isFirst({ from, controlFrom }: GraphClass, indices: Indices): boolean {
  for (let f = 0; f < from.length; f++) {
    const source = from[f](indices);
    if (source instanceof FlowEnd) return false;
    if (Array.isArray(source) && source.some((one) => one instanceof FlowEnd)) return false;
  }
  let count = 0;
  for (const orders of controlFrom)
    eachControl(orders?.(indices), () => {
      count++;
    });
  return count === 0;
}

/** An end in words, such as `'c' of gemm(k=0, i=2, j=1)`. @internal */
export function endName(end: FlowEnd | ControlEnd): string {
  const cls = end.cls as GraphClass;
  return `'${flowName(end)}' of ${taskName(cls.name, cls.indexNames, end.indices)}`;
}

/** The name of the flow or control flow at an end. @internal */
export function flowName(end: FlowEnd | ControlEnd): string {
  const cls = end.cls as GraphClass;
  return end instanceof FlowEnd ? cls.runs.flowNames[end.flow] : cls.controlNames[end.control];
}

/** Calls `visit` for each control flow. @internal */
export function eachControl(given: Controls, visit: (end: ControlEnd) => void): void {
  if (given instanceof ControlEnd) visit(given);
  else if (Array.isArray(given)) for (const one of given as Controls[]) eachControl(one, visit);
  else if (given !== undefined && given !== false)
    throw new HeadraceError('ERR_GRAPH_EDGE', `a control flow leads to ${shown(given)}`);
}

/** A source per flow. Each is called at a place of its own in the code: V8 inlines a call that always calls the same function. */
function sourcesAt(from: readonly ((of: Indices) => Source)[], of: Indices): Source[] {
  switch (from.length) {
    case 1:
      return [from[0](of)];
    case 2:
      return [from[0](of), from[1](of)];
    case 3:
      return [from[0](of), from[1](of), from[2](of)];
    case 4:
      return [from[0](of), from[1](of), from[2](of), from[3](of)];
    default:
      return from.map((source) => source(of));
  }
}
