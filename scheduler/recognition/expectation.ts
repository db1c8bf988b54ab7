// What the program must insert for a plan to be played in its place: the tasks of a sequence, in the program's own objects, so
// that an insertion is compared without looking anything up.
import { guards } from '../../devices/guards.js';
import { type DatumId, FIRST_GPU, HOST, type TaskHandle } from '../../devices/handles.js';
import { ANY_DEVICE } from '../../stages/task-table.js';
import type { Insertions } from '../plans/insertions.js';
import { unknownNames } from '../program/argument-names.js';
import type { Datum } from '../program/datum.js';
import type { GivenTask, TaskOptions } from '../program/graph.js';
import { TASK_OPTIONS } from '../program/task-arguments.js';
import { ParameterKind, type Parameters, type TaskClass } from '../program/task-class.js';
import type { HandlesInOrder } from './held-handles.js';
import {
  CLOSED,
  type ExpectedArguments,
  type SameArguments,
  sameArguments,
  type TakeOpen,
} from './same-arguments.js';

/** An open one has its kind plus this. */
const OPEN = 1;
/** No space has this number, and no insertion asks for it. */
const NO_DEVICE = -2;

export class Expectation implements ExpectedArguments {
  readonly count: number;
  readonly insertions: Insertions;
  readonly classes: readonly TaskClass[];
  /** How the arguments of each task are compared. */
  readonly same: readonly SameArguments[];
  /** Data of all tasks, one after the other. */
  readonly data: readonly Datum[];
  /** Values of the parameters of all tasks, as the program gives them. */
  readonly given: readonly (number | boolean)[];
  /** CLOSED, or OPEN plus the kind, per parameter. */
  readonly open: Uint8Array;
  /** The parameters that are open, and the place of a parameter among them. */
  readonly openPlaces: Int32Array;
  readonly openNumber: Int32Array;
  /** First parameter of each task. */
  readonly firstParam: Int32Array;
  private readonly rows: ReadonlySet<number>;
  /** 1 for tasks without options. */
  readonly plain: Uint8Array;

  constructor(
    insertions: Insertions,
    classes: readonly TaskClass[],
    datumOf: (row: number) => Datum,
  ) {
    this.insertions = insertions;
    this.classes = classes;
    this.count = classes.length;
    this.same = classes.map(sameArguments);
    this.firstParam = new Int32Array(this.count);
    this.plain = new Uint8Array(this.count);
    const data: Datum[] = [];
    const given: (number | boolean)[] = [];
    const open: number[] = [];
    classes.forEach(({ flowNames, paramNames, definition }, n) => {
      this.firstParam[n] = given.length;
      const hasOptions =
        insertions.priorityOf(n) !== 0 ||
        insertions.deviceOf(n) !== ANY_DEVICE ||
        insertions.ranks.has(n) ||
        insertions.after.has(n);
      this.plain[n] = hasOptions ? 0 : 1;
      flowNames.forEach((_, i) => {
        data.push(datumOf(insertions.datum(n, i)));
      });
      paramNames.forEach((name, i) => {
        const kind = ParameterKind[(definition.params as Parameters)[name]];
        const value = insertions.parameter(n, i);
        given.push(kind === ParameterKind.bool ? value !== 0 : value);
        open.push(insertions.slot(n, i) === '' ? CLOSED : OPEN + kind);
      });
    });
    this.data = data;
    this.given = given;
    this.open = Uint8Array.from(open);
    this.openPlaces = Int32Array.from(open.flatMap((kind, i) => (kind === CLOSED ? [] : [i])));
    this.openNumber = new Int32Array(open.length).fill(-1);
    this.openPlaces.forEach((place, i) => {
      this.openNumber[place] = i;
    });
    this.rows = new Set(data.map(({ row }) => row));
  }

  /** The parameter of a slot (Sequence.follows), at the places of `given`. */
  placeOf(slot: string): number {
    const [n, i] = slot.split('.');
    return this.firstParam[Number(n)] + Number(i);
  }

  /** Whether an insertion has the class and the data of the first task; not if they cannot be read. Says so without making anything. */
  mayBegin({ cls, args, inOrder }: GivenTask): boolean {
    const [first] = this.classes;
    if (cls !== first) return false;
    const { data } = this;
    if (inOrder !== undefined) return first.flowNames.every((_, i) => inOrder[i] === data[i]);
    if (!isObject(args)) return false;
    try {
      return first.flowNames.every((name, i) => args[name] === data[i]);
    } catch {
      return false;
    }
  }

  /** The data, each once. */
  get used(): ReadonlySet<Datum> {
    return new Set(this.data);
  }

  /** Whether a task uses datum `d`. */
  uses(d: DatumId): boolean {
    return this.rows.has(d);
  }
}

/** The comparison of one run with an expectation. */
export class Comparison {
  readonly expected: Expectation;
  /** Insertions that were as expected. */
  next = 0;
  /** Values of the open parameters, at the places of `Expectation.given`. */
  readonly values: Float64Array;
  /** Nothing is compared any more. */
  isOver = false;
  private flowAt = 0;
  private paramAt = 0;
  /** Id that the first task would have. */
  private base: number;
  private readonly isChecked: boolean;
  private readonly take: TakeOpen = (value, place) => this.takeOpen(value, place);
  private readonly handles: HandlesInOrder | undefined;

  /**
   * `isChecked`: all names of arguments and options are looked at. `handles`: those of the insertions on several ranks, where each task runs
   * where its data belong.
   */
  constructor(expected: Expectation, base: number, isChecked: boolean, handles?: HandlesInOrder) {
    this.handles = handles;
    this.expected = expected;
    this.base = base;
    this.isChecked = isChecked;
    this.values = new Float64Array(expected.open.length);
  }

  /** Handle of the insertion that was accepted last. */
  get handle(): TaskHandle {
    const last = this.next - 1;
    const { handles } = this;
    return handles === undefined ? (((this.base + last) | 0) as TaskHandle) : handles.at(last);
  }

  /**
   * Goes on where another comparison stands, which has accepted the insertions of the run so far: they are those of this one, too. False
   * if they are not.
   */
  takesOver(other: Comparison): boolean {
    const { expected } = this;
    const { next } = other;
    if (next > expected.count) return false;
    for (; this.next < next; this.next++) {
      if (!expected.insertions.hasTaskOf(other.expected.insertions, this.next)) return false;
      const { flowNames, paramNames } = expected.classes[this.next];
      for (let i = 0; i < paramNames.length; i++, this.paramAt++) {
        const at = this.paramAt;
        const given = other.valueAt(at);
        if (expected.open[at] === CLOSED && !Object.is(Number(expected.given[at]), given))
          return false;
        this.values[at] = given;
      }
      this.flowAt += flowNames.length;
    }
    return true;
  }

  /** The value of a parameter of an insertion that was accepted, as a number. */
  private valueAt(at: number): number {
    const { open, given } = this.expected;
    return open[at] === CLOSED ? Number(given[at]) : this.values[at];
  }

  /** Compares the next insertions with the same tasks, from the first one on; that one would have the id `base`. */
  restart(base: number): void {
    this.base = base;
    this.next = 0;
    this.flowAt = 0;
    this.paramAt = 0;
  }

  /** All insertions up to the last one are those that were compared before the last `restart`, with the same values of open parameters. */
  acceptAgain(): void {
    this.next = this.expected.count;
  }

  /**
   * Whether the next insertion is this one. If it is not, or something is wrong with it, nothing changes. `args` and `inOrder`: see
   * `InsertionWatch.accepts`.
   */
  accepts(
    cls: unknown,
    args: unknown,
    options: TaskOptions | undefined,
    inOrder?: readonly Datum[],
  ): boolean {
    const { expected, next, flowAt, paramAt } = this;
    if (next >= expected.count || cls !== expected.classes[next]) return false;
    const known = expected.classes[next];
    const { flowNames, paramNames } = known;
    try {
      const isSame =
        inOrder === undefined
          ? isObject(args) && expected.same[next].all(args, expected, flowAt, paramAt, this.take)
          : this.isInOrder(inOrder, args);
      if (!isSame && guards.recognisedSame) return false;
      if (options === undefined && expected.plain[next] === 0 && guards.recognisedSame)
        return false;
      if (options !== undefined && !this.sameOptions(options)) return false;
      const hasNames = inOrder === undefined || paramNames.length > 0;
      if (hasNames && this.isChecked && unknownNames(known, args as object).length > 0)
        return false;
    } catch {
      // Getters threw. The insertion itself reads them again, and names the one.
      return false;
    }
    if (!this.isAt(next)) return false;
    this.flowAt = flowAt + flowNames.length;
    this.paramAt = paramAt + paramNames.length;
    this.next = next + 1;
    return true;
  }

  /** Whether the next task has these data, which nobody has closed, and these parameters. */
  private isInOrder(inOrder: readonly Datum[], args: unknown): boolean {
    const { expected, next, flowAt, paramAt } = this;
    const { flowNames, paramNames } = expected.classes[next];
    for (let i = 0; i < flowNames.length; i++) {
      const datum = expected.data[flowAt + i];
      if (inOrder[i] !== datum || datum.token === undefined) return false;
    }
    if (paramNames.length === 0) return true;
    const same = expected.same[next];
    return isObject(args) && same.parameters(args, expected, flowAt, paramAt, this.take);
  }

  /** Whether task `next` is still the one to come: arguments and options may have getters, which may insert it, or end the comparison. */
  isAt(next: number): boolean {
    return this.next === next && !this.isOver;
  }

  /** Takes the value of the open parameter at a place. A getter may have inserted the task of this place, whose value stays. */
  private takeOpen(value: unknown, place: number): boolean {
    if (place < this.paramAt || this.isOver) return false;
    const kind = this.expected.open[place] - OPEN;
    if (kind === ParameterKind.bool) {
      if (typeof value !== 'boolean') return false;
      this.values[place] = value ? 1 : 0;
      return true;
    }
    if (typeof value !== 'number') return false;
    if (kind === ParameterKind.i32 && (value | 0) !== value) return false;
    this.values[place] = value;
    return true;
  }

  private sameOptions(options: TaskOptions): boolean {
    const { insertions } = this.expected;
    const { next: n, base } = this;
    if (options === null || typeof options !== 'object') return false;
    const { priority = 0, device, rank, after = [] } = options;
    const space = device === undefined ? ANY_DEVICE : spaceNumber(device);
    const isAlone = this.handles === undefined;
    const hasOtherRank = isAlone ? (rank ?? 0) !== 0 : rank !== insertions.ranks.get(n);
    if (hasOtherRank || !Array.isArray(after)) return false;
    if (guards.recognisedSame) {
      if (priority !== insertions.priorityOf(n) || space !== insertions.deviceOf(n)) return false;
      const before = insertions.after.get(n) ?? [];
      if (after.length !== before.length) return false;
      for (let i = 0; i < before.length; i++)
        if (after[i] !== ((base + before[i]) | 0)) return false;
    }
    const isEmpty = (options.priority ?? device ?? options.rank ?? options.after) === undefined;
    return (
      !(isEmpty || this.isChecked) || Object.keys(options).every((k) => TASK_OPTIONS.includes(k))
    );
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object';
}

/** NO_DEVICE for what is no device. */
function spaceNumber(device: unknown): number {
  if (device === 'host') return HOST;
  return typeof device === 'number' && device >= 0 ? FIRST_GPU + device : NO_DEVICE;
}
