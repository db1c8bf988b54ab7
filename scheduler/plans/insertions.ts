// The tasks of a plan as they were inserted, so that they can be inserted again without the program.
import type { Column, DatumId } from '../../devices/handles.js';
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

export class Insertions {
  readonly classes: TaskClassRow[] = [];
  /** Tasks that must be over first, by number of insertion. */
  readonly after: Map<number, readonly number[]> = new Map();
  readonly open: OpenParameter[] = [];
  /** By insertion and parameter. */
  private readonly slots: Map<number, Map<number, string>> = new Map();
  private readonly flows: number[] = [];
  private readonly params: number[] = [];
  private readonly firstFlow: number[] = [];
  private readonly firstParam: number[] = [];
  private readonly priority: number[] = [];
  private readonly device: number[] = [];

  get count(): number {
    return this.classes.length;
  }

  /** Keeps an insertion; `after` by number. Returns its number. */
  add(insertion: Omit<TaskInsertion, 'run' | 'after'>, after: readonly number[]): number {
    const n = this.classes.length;
    const { cls } = insertion;
    this.classes.push(cls);
    this.firstFlow.push(this.flows.length);
    this.firstParam.push(this.params.length);
    for (let i = 0; i < cls.modes.length; i++) this.flows.push(insertion.flows[i]);
    for (let i = 0; i < cls.paramNames.length; i++) this.params.push(insertion.params[i]);
    this.priority.push(insertion.priority);
    this.device.push(insertion.device);
    if (after.length > 0) this.after.set(n, after);
    return n;
  }

  /** The datum of flow `i` of insertion `n`. */
  datum(n: number, i: number): DatumId {
    return this.flows[this.firstFlow[n] + i] as DatumId;
  }

  /** The value of parameter `i` of insertion `n`. */
  parameter(n: number, i: number): number {
    return this.params[this.firstParam[n] + i];
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
    const cls = this.classes[n];
    into.cls = cls;
    into.run = run;
    const flows = into.flows as Column<Int32Array, DatumId>;
    const params = into.params as Float64Array;
    for (let i = 0; i < cls.modes.length; i++) flows[i] = this.datum(n, i);
    for (let i = 0; i < cls.paramNames.length; i++) params[i] = this.parameter(n, i);
    into.priority = this.priority[n];
    into.device = this.device[n] as TaskInsertion['device'];
  }
}
