// A class of an instance of a parameterised graph: its declaration and, once it is defined, its functions by position.
// Invariant: a defined class has a range for every index and a source for every flow.

import { HeadraceError } from '../../devices/errors.js';
import type { TaskHandle } from '../../devices/handles.js';
import { AccessMode } from '../../trace/format.js';
import { isRecord, optionsOf, reading, shown } from '../checks.js';
import type { Datum } from '../program/datum.js';
import type { TaskOptions } from '../program/graph.js';
import { isTaskClass, type ParameterType, type TaskClass } from '../program/task-class.js';
import { AllIndices } from './all-indices.js';
import {
  type ClassFunction,
  checkFunction,
  type Mistake,
  RETURNED,
  type Returned,
  sourcesOf,
} from './class-functions.js';
import type { ClassDeclaration } from './definition.js';
import type { Controls, EndClass, Indices, Source, Targets } from './ends.js';
import { RepeatPromise } from './promise.js';
import type { OwnRange, Range } from './range.js';

type Of<T> = (of: Indices) => T;
type Values = Readonly<Record<string, number | boolean>>;

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
  readonly params?: Of<Values> | Values | undefined;
  readonly repeats?: Readonly<Record<string, () => Range>> | undefined;
  readonly priority?: Of<number> | undefined;
  readonly device?: Of<number | 'host' | undefined> | undefined;
}

const DECLARATION: readonly string[] = ['runs', 'indices', 'controls'];
const PARTS: readonly string[] = [
  'ranges',
  'starts',
  'order',
  'own',
  'on',
  'flows',
  'controls',
  'params',
  'repeats',
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
  order: Of<number> | undefined;
  /** Ranges outside of which a rank has no tasks. */
  own: ((of: Indices, rank: number) => OwnRange)[] = [];
  on: Of<Datum | number> | undefined;
  params: Of<Values> | undefined;
  /** No function is called for the parameters and the device of a task. */
  isConstant = true;
  repeats: RepeatPromise | undefined;
  priority: Of<number> | undefined;
  device: Of<number | 'host' | undefined> | undefined;
  isDefined = false;
  /** For a walk that fails (class-functions.ts). */
  readonly rangeFunctions: ClassFunction[] = [];
  readonly functions: ClassFunction[] = [];

  /** @throws HeadraceError `ERR_GRAPH_CLASS`, `ERR_OPTION` */
  constructor(name: string, number: number, declaration: ClassDeclaration) {
    this.name = name;
    this.number = number;
    const of = `the declaration of class '${name}'`;
    const { runs, ...names } = optionsOf(declaration, DECLARATION, of);
    if (!isTaskClass(runs))
      throw this.wrong(`runs ${shown(runs)}, no task class`, 'make one with task({ ... })');
    this.runs = runs;
    this.indexNames = this.namesIn('indices', names.indices);
    this.controlNames = this.namesIn('controls', names.controls ?? []);
    const { indexNames, controlNames } = this;
    const twice = [...controlNames, ...runs.flowNames].find(
      (one, n, all) => all.indexOf(one) !== n,
    );
    if (twice !== undefined) throw this.wrong(`has two flows or controls called '${twice}'`);
    const index = indexNames.find((one, n) => indexNames.indexOf(one) !== n);
    if (index !== undefined) throw this.wrong(`has two indices called '${index}'`);
    this.isRead = runs.modes.map((mode) => mode !== AccessMode.write);
    this.isWritten = runs.modes.map((mode) => mode !== AccessMode.read);
    const written = runs.flowNames.find((_, f) => runs.lists?.[f] === 1 && this.isWritten[f]);
    if (written !== undefined)
      throw this.wrong(
        `has the list '${written}', which is written; the lists of a parameterised graph are read`,
      );
  }

  private namesIn(what: string, given: unknown): string[] {
    const names = reading('ERR_GRAPH_CLASS', `${what} of class '${this.name}'`, () =>
      Array.isArray(given) ? [...(given as unknown[])] : undefined,
    );
    const wrong = names?.find((one) => typeof one !== 'string');
    if (names === undefined || wrong !== undefined)
      throw this.wrong(
        `needs an array of names as its ${what}, not ${shown(names === undefined ? given : wrong)}`,
      );
    return names as string[];
  }

  /** @throws HeadraceError `ERR_GRAPH_CLASS`, `ERR_OPTION` */
  define(definition: LooseDefinition): void {
    if (this.isDefined) throw this.wrong('is defined twice');
    const given = optionsOf(definition, PARTS, `the parts of class '${this.name}'`);
    this.defineRanges(given);
    this.defineFlows(given);
    this.defineControls(given);
    this.order = this.maybe(given.order, '`order`', RETURNED.number);
    this.on = this.maybe(given.on, '`on`', RETURNED.place);
    if (this.runs.paramNames.length > 0) this.params = this.definedParams(given.params);
    else if (given.params !== undefined)
      throw this.wrong(`has \`params\`, and task class '${this.runs.name}' has no parameters`);
    this.defineRepeats(given.repeats);
    this.priority = this.maybe(given.priority, '`priority`', RETURNED.integer);
    this.device = this.maybe(given.device, '`device`', RETURNED.device);
    if (this.device !== undefined) this.isConstant = false;
    this.isDefined = true;
  }

  /** The function of the parameters, or one that returns the values that are given. */
  private definedParams(given: unknown): Of<Values> {
    const returned = paramsOf(this.runs);
    if (!isRecord(given)) {
      this.isConstant = false;
      return this.known(given, '`params`', returned);
    }
    const what = `\`params\` of class '${this.name}'`;
    const values = reading('ERR_GRAPH_CLASS', what, () => ({ ...given })) as Values;
    const mistake = returned.mistakeIn?.(values);
    if (mistake === undefined) return () => values;
    throw new HeadraceError(mistake.code, `${what} have ${mistake.words}`, { task: this.name });
  }

  private defineRepeats(given: unknown): void {
    if (given === undefined) return;
    const all = this.partsOf(given, '`repeats`', this.indexNames);
    const names = this.indexNames.filter((name) => all[name] !== undefined);
    if (names.length !== 1)
      throw this.wrong(`needs one index in its \`repeats\`, not ${names.length}`);
    const [index] = names;
    const what = `\`repeats\` of '${index}'`;
    const promised = this.known<() => Range>(all[index], what, RETURNED.steady);
    this.repeats = new RepeatPromise(this, index, promised);
  }

  /** A function of the definition, which a failing walk looks at again. */
  private known<T>(given: unknown, what: string, returned: Returned, into = this.functions): T {
    const call = checkFunction<T>(this, given, what);
    into.push({ what, call: call as ClassFunction['call'], returned });
    return call;
  }

  private maybe<T>(given: unknown, what: string, returned: Returned): T | undefined {
    return given === undefined ? undefined : this.known<T>(given, what, returned);
  }

  private defineRanges(given: Partial<LooseDefinition>): void {
    const { indexNames } = this;
    const ranges = this.partsOf(given.ranges, 'ranges', indexNames);
    const starts = this.partsOf(given.starts ?? {}, 'starts', indexNames);
    const own = this.partsOf(given.own ?? {}, 'own', indexNames);
    const { range, own: ofRank } = RETURNED;
    this.ranges = indexNames.map((name) =>
      this.known(ranges[name], `range of '${name}'`, range, this.rangeFunctions),
    );
    this.starts = indexNames.map(
      (name, n) => this.maybe(starts[name], `\`starts\` of '${name}'`, range) ?? this.ranges[n],
    );
    this.hasStarts = given.starts !== undefined;
    this.own = indexNames.map(
      (name, n) => this.maybe(own[name], `\`own\` of '${name}'`, ofRank) ?? this.ranges[n],
    );
  }

  /** What messages call a function of the flow with that number. */
  flowPart(part: string, f: number): string {
    return `\`${part}\` of flow '${this.runs.flowNames[f]}'`;
  }

  /** The same of a control flow. */
  controlPart(part: string, c: number): string {
    return `\`${part}\` of control '${this.controlNames[c]}'`;
  }

  private defineFlows(given: Partial<LooseDefinition>): void {
    const { runs } = this;
    const { flowNames } = runs;
    const { targets, datum } = RETURNED;
    const flows = this.partsOf(given.flows, 'flows', flowNames);
    const edges = flowNames.map((name) =>
      this.partsOf(flows[name], `flow '${name}'`, ['from', 'to', 'datum']),
    );
    const of = (part: string, f: number): string => this.flowPart(part, f);
    this.from = edges.map(({ from }, f) =>
      this.known(
        from,
        of('from', f),
        sourcesOf(runs.elements[f], runs.lists?.[f] === 1, runs.lists !== undefined),
      ),
    );
    this.to = edges.map(({ to }, f) => this.maybe(to, of('to', f), targets));
    this.datum = edges.map((edge, f) => this.maybe(edge['datum'], of('datum', f), datum));
    this.sending = [...this.to.keys()].filter(
      (f) => runs.lists?.[f] !== 1 && (this.isWritten[f] || this.to[f] !== undefined),
    );
  }

  private defineControls(given: Partial<LooseDefinition>): void {
    const { controlNames } = this;
    const { controls } = RETURNED;
    const orders = this.partsOf(given.controls ?? {}, 'controls', controlNames);
    const ends = controlNames.map((name) =>
      this.partsOf(orders[name] ?? {}, `control '${name}'`, ['from', 'to']),
    );
    const of = (part: string, c: number): string => this.controlPart(part, c);
    this.controlFrom = ends.map(({ from }, c) => this.maybe(from, of('from', c), controls));
    this.controlTo = ends.map(({ to }, c) => this.maybe(to, of('to', c), controls));
    this.hasControls = controlNames.length > 0;
  }

  /** The properties of a part of the definition, which may have those in `known`. */
  private partsOf(
    given: unknown,
    what: string,
    known: readonly string[],
  ): Readonly<Record<string, unknown>> {
    if (!isRecord(given)) throw this.wrong(`needs an object as its ${what}, not ${shown(given)}`);
    return optionsOf(given, known, `${what} of class '${this.name}'`);
  }

  /** The options of the insertion of a task, if it needs some. */
  optionsOf(
    of: Indices,
    priority: number,
    rank: number | undefined,
    after: TaskHandle[] | undefined,
  ): TaskOptions | undefined {
    const device = this.device?.(of);
    const isPlain = priority === 0 && after === undefined && device === undefined;
    if (isPlain && rank === undefined) return undefined;
    // `insert` takes undefined for an option that is not given. One shape of object is the fastest.
    return { priority, device, rank, after } as TaskOptions;
  }

  /** The rank that `on` gives the task. */
  rankOf(of: Indices): number | undefined {
    const at = this.on?.(of);
    return at === undefined || typeof at === 'number' ? at : at.rank;
  }

  private wrong(text: string, remedy?: string): HeadraceError {
    const details = { task: this.name, remedy };
    return new HeadraceError('ERR_GRAPH_CLASS', `class '${this.name}' ${text}`, details);
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

/** The values of the parameters of a task class. */
function paramsOf({ name: runs, paramNames, definition: { params = {} } }: TaskClass): Returned {
  const mistakeIn = (value: unknown): Mistake | undefined => {
    const values = value as Readonly<Record<string, unknown>>;
    const wrong = paramNames.find((name) => !isParameter(params[name], values[name]));
    if (wrong === undefined) {
      const unknown = Object.keys(values).find((name) => !paramNames.includes(name));
      if (unknown === undefined) return undefined;
      const of = `${shown(unknown)}, which is no parameter of task class '${runs}'`;
      return { code: 'ERR_UNKNOWN_ARGUMENT', words: of };
    }
    const words = `${shown(values[wrong])} as '${wrong}'; it must be ${PARAMETERS[params[wrong]]}`;
    return { code: 'ERR_ARGUMENT_TYPE', words };
  };
  return {
    words: `an object with ${paramNames.join(', ')}`,
    fits: (value) => typeof value === 'object' && value !== null,
    mistakeIn,
  };
}

const PARAMETERS: Readonly<Record<ParameterType, string>> = {
  f64: 'a number',
  i32: 'an integer of 32 bits',
  bool: 'true or false',
};

function isParameter(type: ParameterType, value: unknown): boolean {
  if (type === 'bool') return typeof value === 'boolean';
  return typeof value === 'number' && (type === 'f64' || (value | 0) === value);
}
