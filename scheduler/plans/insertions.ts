// The tasks of a plan as they were inserted, so that they can be inserted again without the program.
//
// A plan may have millions of tasks, so they are kept as columns of numbers.
import type { Column, DatumId } from '../../devices/handles.js';
import { resized } from '../../devices/resized.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { RunState } from '../engine/run-state.js';
import type { TaskInsertion } from '../engine/task-insertion.js';

/** A parameter of an inserted task that is open. */
export interface OpenParameter {
  readonly insertion: number;
  /** Position of the parameter. */
  readonly parameter: number;
  readonly slot: string;
}

/** Tasks for which the columns have room at first: small columns are made without a buffer of their own. */
const FEW = 4;
const NONE: readonly number[] = [];

export class Insertions {
  count = 0;
  /** Tasks that must be over first, by number of insertion. */
  readonly after: Map<number, readonly number[]> = new Map();
  /** The ranks that the program has named, by number of insertion. */
  readonly ranks: Map<number, number> = new Map();
  readonly open: OpenParameter[] = [];
  /** By insertion and parameter. */
  private readonly slots: Map<number, Map<number, string>> = new Map();
  /** The classes by id, and the id of the class of each insertion. */
  private readonly classes: TaskClassRow[] = [];
  private classIds: Int32Array = new Int32Array(FEW);
  private flows: Int32Array = new Int32Array(4 * FEW);
  private params: Float64Array = new Float64Array(FEW);
  private firstFlow: Int32Array = new Int32Array(FEW);
  private firstParam: Int32Array = new Int32Array(FEW);
  private priority: Float64Array = new Float64Array(FEW);
  private device: Int16Array = new Int16Array(FEW);
  /** The largest numbers that a task has. */
  mostFlows = 0;
  mostParams = 0;
  /** Flows and parameters in use. */
  private usedFlows = 0;
  private usedParams = 0;

  /** Keeps an insertion; `after` by number, and a `rank` if the program has named one. Returns its number. */
  add(
    insertion: Omit<TaskInsertion, 'run' | 'after'>,
    after: readonly number[],
    rank?: number,
  ): number {
    const n = this.count++;
    const { cls, flows, params } = insertion;
    const [nFlows, nParams] = [cls.modes.length, cls.paramNames.length];
    this.mostFlows = Math.max(this.mostFlows, nFlows);
    this.mostParams = Math.max(this.mostParams, nParams);
    if (n === this.classIds.length) this.resizeTasks(2 * (n + 1));
    if (this.usedFlows + nFlows > this.flows.length)
      this.flows = resized(this.flows, 2 * (this.usedFlows + nFlows));
    if (this.usedParams + nParams > this.params.length)
      this.params = resized(this.params, 2 * (this.usedParams + nParams));
    this.classes[cls.id] = cls;
    this.classIds[n] = cls.id;
    this.firstFlow[n] = this.usedFlows;
    this.firstParam[n] = this.usedParams;
    for (let i = 0; i < nFlows; i++) this.flows[this.usedFlows++] = flows[i];
    for (let i = 0; i < nParams; i++) this.params[this.usedParams++] = params[i];
    this.priority[n] = insertion.priority;
    this.device[n] = insertion.device;
    if (after.length > 0) this.after.set(n, after);
    if (rank !== undefined) this.ranks.set(n, rank);
    return n;
  }

  /** All tasks are there: gives the memory back that the columns do not need. */
  trim(): void {
    this.resizeTasks(this.count);
    this.flows = resized(this.flows, this.usedFlows);
    this.params = resized(this.params, this.usedParams);
  }

  /** The same tasks in a list that grows on its own. */
  copy(): Insertions {
    const copy = new Insertions();
    copy.count = this.count;
    copy.usedFlows = this.usedFlows;
    copy.usedParams = this.usedParams;
    for (const [n, before] of this.after) copy.after.set(n, before);
    for (const [n, rank] of this.ranks) copy.ranks.set(n, rank);
    for (const open of this.open) copy.leaveOpen(open);
    for (const [id, cls] of this.classes.entries()) copy.classes[id] = cls;
    copy.classIds = this.classIds.slice();
    copy.flows = this.flows.slice();
    copy.params = this.params.slice();
    copy.firstFlow = this.firstFlow.slice();
    copy.firstParam = this.firstParam.slice();
    copy.priority = this.priority.slice();
    copy.device = this.device.slice();
    return copy;
  }

  /** Whether all data of the tasks are such. */
  haveOnly(isSuch: (d: DatumId) => boolean): boolean {
    for (let i = 0; i < this.usedFlows; i++) if (!isSuch(this.flows[i] as DatumId)) return false;
    return true;
  }

  /** The class of insertion `n`. */
  classOf(n: number): TaskClassRow {
    return this.classes[this.classIds[n]];
  }

  /** Whether task `n` is that of another list, whatever its parameters. */
  hasTaskOf(others: Insertions, n: number): boolean {
    const cls = this.classOf(n);
    if (
      cls !== others.classOf(n) ||
      this.priorityOf(n) !== others.priorityOf(n) ||
      this.deviceOf(n) !== others.deviceOf(n) ||
      this.ranks.get(n) !== others.ranks.get(n)
    )
      return false;
    if (!cls.modes.every((_, i) => this.datum(n, i) === others.datum(n, i))) return false;
    const [own = NONE, other = NONE] = [this.after.get(n), others.after.get(n)];
    return own.length === other.length && own.every((before, i) => before === other[i]);
  }

  /** The datum of flow `i` of insertion `n`. */
  datum(n: number, i: number): DatumId {
    return this.flows[this.firstFlow[n] + i] as DatumId;
  }

  /** The value of parameter `i` of insertion `n`. */
  parameter(n: number, i: number): number {
    return this.params[this.firstParam[n] + i];
  }

  /** The values of the parameters of all insertions, one after the other. */
  allParameters(): Float64Array {
    return this.params.slice(0, this.usedParams);
  }

  /** The priority of insertion `n`. */
  priorityOf(n: number): number {
    return this.priority[n];
  }

  /** The space that insertion `n` asks for, or ANY_DEVICE. */
  deviceOf(n: number): number {
    return this.device[n];
  }

  /** Leaves parameter `parameter` of insertion `insertion` open. */
  leaveOpen(open: OpenParameter): void {
    this.open.push(open);
    const { insertion, parameter, slot } = open;
    const slots = this.slots.get(insertion) ?? new Map<number, string>();
    this.slots.set(insertion, slots.set(parameter, slot));
  }

  /** The slot of parameter `i` of insertion `n`; '' if the parameter is not open. */
  slot(n: number, i: number): string {
    return this.slots.get(n)?.get(i) ?? '';
  }

  /** Fills `into` with insertion `n`, for run `run`; the tasks before it stay the caller's. */
  read(
    n: number,
    run: RunState,
    into: { -readonly [K in keyof TaskInsertion]: TaskInsertion[K] },
  ): void {
    const cls = this.classOf(n);
    into.cls = cls;
    into.run = run;
    const flows = into.flows as Column<Int32Array, DatumId>;
    const params = into.params as Float64Array;
    for (let i = 0; i < cls.modes.length; i++) flows[i] = this.datum(n, i);
    for (let i = 0; i < cls.paramNames.length; i++) params[i] = this.parameter(n, i);
    into.priority = this.priority[n];
    into.device = this.device[n] as TaskInsertion['device'];
  }

  private resizeTasks(length: number): void {
    this.classIds = resized(this.classIds, length);
    this.firstFlow = resized(this.firstFlow, length);
    this.firstParam = resized(this.firstParam, length);
    this.priority = resized(this.priority, length);
    this.device = resized(this.device, length);
  }
}
