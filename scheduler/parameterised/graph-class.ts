// A class of an instance of a parameterised graph: its declaration and, once it is defined, its functions by position.
// Invariant: a defined class has a range for every index and a source for every flow.

import { HeadraceError } from '../../devices/errors.js';
import { AccessMode } from '../../trace/format.js';
import { checkOptions, shown } from '../checks.js';
import type { Datum } from '../program/datum.js';
import { isTaskClass, type TaskClass } from '../program/task-class.js';
import { AllIndices } from './all-indices.js';
import type { ClassDeclaration } from './definition.js';
import type { Controls, EndClass, Indices, Source, Targets } from './ends.js';
import type { OwnRange, Range } from './range.js';

type Of<T> = (of: Indices) => T;

/** Edges without the types of one class. */
interface LooseEdges {
  readonly from: Of<Source | readonly Source[]>;
  readonly to?: Of<Targets> | undefined;
  readonly datum?: Of<Datum> | undefined;
}

/** A definition without the types of one class. @internal */
export interface LooseDefinition {
  readonly ranges: Readonly<Record<string, Of<Range>>>;
  readonly starts?: Readonly<Record<string, Of<Range>>> | undefined;
  readonly order?: Of<number> | undefined;
  readonly own?: Readonly<Record<string, (of: Indices, rank: number) => OwnRange>> | undefined;
  readonly on?: Of<Datum | number> | undefined;
  readonly flows: Readonly<Record<string, LooseEdges>>;
  readonly controls?:
    | Readonly<Record<string, { readonly from?: Of<Controls>; readonly to?: Of<Controls> }>>
    | undefined;
  readonly params?: Of<Readonly<Record<string, number | boolean>>> | undefined;
  readonly priority?: Of<number> | undefined;
  readonly device?: Of<number | 'host' | undefined> | undefined;
}

const PARTS: readonly string[] = [
  'ranges',
  'starts',
  'order',
  'own',
  'on',
  'flows',
  'controls',
  'params',
  'priority',
  'device',
];

/** @internal */
export class GraphClass implements EndClass {
  readonly name: string;
  readonly number: number;
  readonly runs: TaskClass;
  readonly indexNames: readonly string[];
  readonly controlNames: readonly string[];
  /** By position of the flow. */
  readonly isRead: readonly boolean[];
  readonly isWritten: readonly boolean[];
  ranges: Of<Range>[] = [];
  /** Ranges in which first tasks are. */
  starts: Of<Range>[] = [];
  /** No tasks without inputs are outside of `starts`, says the program. */
  hasStarts = false;
  from: Of<Source | readonly Source[]>[] = [];
  to: (Of<Targets> | undefined)[] = [];
  /** The datum that each flow leaves its value in, says the program. */
  datum: (Of<Datum> | undefined)[] = [];
  controlFrom: (Of<Controls> | undefined)[] = [];
  controlTo: (Of<Controls> | undefined)[] = [];
  hasControls = false;
  /** Flows whose value the task makes or sends. */
  sending: readonly number[] = [];
  /** The range of the first index, which depends on no other one. */
  private firstRange: Range | undefined;
  /** An element per flow: arrays of sources and values begin as copies of it. */
  readonly noSources: readonly undefined[];
  order: Of<number> | undefined;
  /** Ranges outside of which a rank has no tasks. */
  own: ((of: Indices, rank: number) => OwnRange)[] = [];
  on: Of<Datum | number> | undefined;
  params: Of<Readonly<Record<string, number | boolean>>> | undefined;
  priority: Of<number> | undefined;
  device: Of<number | 'host' | undefined> | undefined;
  isDefined = false;

  /** @throws HeadraceError `ERR_GRAPH_CLASS` */
  constructor(name: string, number: number, declaration: ClassDeclaration) {
    this.name = name;
    this.number = number;
    const { runs, indices, controls = [] } = declaration;
    if (!isTaskClass(runs)) throw this.wrong('runs no task class');
    const names = [...indices, ...controls, ...runs.flowNames];
    const twice = names.find((one, n) => names.indexOf(one) !== n && !indices.includes(one));
    if (twice !== undefined) throw this.wrong(`has two flows or controls called '${twice}'`);
    if (new Set(indices).size !== indices.length) throw this.wrong('has two indices of one name');
    this.runs = runs;
    this.indexNames = [...indices];
    this.controlNames = [...controls];
    this.noSources = runs.flowNames.map(() => undefined);
    this.isRead = runs.modes.map((mode) => mode !== AccessMode.write);
    this.isWritten = runs.modes.map((mode) => mode !== AccessMode.read);
    if (runs.flowNames.some((_, f) => runs.lists?.[f] === 1 && this.isWritten[f]))
      throw this.wrong('has a list that is written; the lists of a parameterised graph are read');
  }

  /** @throws HeadraceError `ERR_GRAPH_CLASS` */
  define(given: LooseDefinition): void {
    if (this.isDefined) throw this.wrong('is defined twice');
    checkOptions(given, PARTS, `the definition of class '${this.name}'`);
    const { ranges, starts, own, flows, controls = {} } = given;
    const { runs, indexNames, controlNames } = this;
    this.ranges = indexNames.map((name) => this.functionOf(ranges?.[name], `range of '${name}'`));
    this.starts = this.ranges.map((range, n) => starts?.[indexNames[n]] ?? range);
    this.hasStarts = starts !== undefined;
    this.from = runs.flowNames.map((name) =>
      this.functionOf(flows?.[name]?.from, `\`from\` of flow '${name}'`),
    );
    this.to = runs.flowNames.map((name) => flows[name].to);
    this.datum = runs.flowNames.map((name) => flows[name].datum);
    this.sending = [...this.to.keys()].filter(
      (f) => runs.lists?.[f] !== 1 && (this.isWritten[f] || this.to[f] !== undefined),
    );
    this.controlFrom = controlNames.map((name) => controls[name]?.from);
    this.controlTo = controlNames.map((name) => controls[name]?.to);
    this.hasControls = controlNames.length > 0;
    this.order = given.order;
    this.own = this.ranges.map((range, n) => own?.[indexNames[n]] ?? range);
    this.on = given.on;
    this.params =
      runs.paramNames.length > 0 ? this.functionOf(given.params, '`params`') : undefined;
    this.priority = given.priority;
    this.device = given.device;
    this.isDefined = true;
  }

  /** The rank that `on` gives the task. */
  rankOf(of: Indices): number | undefined {
    const at = this.on?.(of);
    return at === undefined || typeof at === 'number' ? at : at.rank;
  }

  private functionOf<T>(value: T | undefined, what: string): T {
    if (typeof value === 'function') return value;
    throw this.wrong(`needs a function for the ${what}, not ${shown(value)}`);
  }

  private wrong(text: string): HeadraceError {
    return new HeadraceError('ERR_GRAPH_CLASS', `class '${this.name}' ${text}`, {
      task: this.name,
    });
  }

  /** The first index whose value is not in its range. */
  outside(of: Indices): string | undefined {
    const { indexNames, ranges } = this;
    if (ranges.length === 0) return undefined;
    this.firstRange ??= ranges[0](of);
    if (!this.firstRange.has(of[indexNames[0]])) return indexNames[0];
    for (let n = 1; n < indexNames.length; n++)
      if (!ranges[n](of).has(of[indexNames[n]])) return indexNames[n];
    return undefined;
  }

  /** The indices of all tasks, or of those in the ranges of first tasks, the last index fastest. */
  *tasks(ranges: readonly Of<Range>[] = this.ranges): Generator<Indices> {
    const all = new AllIndices(this.indexNames, ranges);
    for (let of = all.next(); of !== undefined; of = all.next()) yield of;
  }
}
