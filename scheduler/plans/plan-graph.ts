// The graph of a plan: the same `insert` as in a run, with open parameters. Nothing runs.
import { HeadraceError } from '../../devices/errors.js';
import type { DatumId, TaskHandle } from '../../devices/handles.js';
import { Datum } from '../program/datum.js';
import {
  Graph,
  type GraphRuntime,
  type TaskArguments,
  type TaskOptions,
} from '../program/graph.js';
import {
  type Flows,
  ParameterKind,
  type Parameters,
  type TaskClass,
} from '../program/task-class.js';
import type { PlanningEngine } from './planning-engine.js';
import { Slot } from './slot.js';

/** Data and parameters of a task of a plan, by name. A parameter may be open. */
export type PlanArguments<F extends Flows, P extends Parameters> = {
  readonly [K in keyof F]: Datum<F[K]['element']>;
} & { readonly [K in keyof P]: (P[K] extends 'bool' ? boolean : number) | Slot };

/** An open parameter of a plan: what values its tasks accept. */
export interface OpenSlot {
  readonly name: string;
  /** A task takes it as an integer of 32 bits. */
  isWhole: boolean;
  /** A task takes it as a truth value. */
  isTruth: boolean;
}

/** Inserts tasks into a plan, in program order. */
export class PlanGraph extends Graph {
  /** @internal By name. */
  readonly slots: Map<string, OpenSlot> = new Map();
  /** @internal Class of each insertion. */
  readonly classes: TaskClass[] = [];
  private readonly planning: PlanningEngine;
  private readonly owner: GraphRuntime;
  private isOver = false;

  /** @internal Use `runtime.plan`. */
  constructor(runtime: GraphRuntime, planning: PlanningEngine) {
    super(runtime, planning, planning.plannedRun);
    this.owner = runtime;
    this.planning = planning;
  }

  /**
   * Inserts a task after all tasks inserted before it, as `Graph.insert` does; a parameter may be a `slot`.
   *
   * @throws HeadraceError the errors of `Graph.insert`, and `ERR_PLAN_BODY` for a class whose body is JavaScript
   */
  override insert<F extends Flows, P extends Parameters>(
    cls: TaskClass<F, P>,
    args: PlanArguments<F, P>,
    options?: TaskOptions,
  ): TaskHandle {
    if (this.isOver)
      throw new HeadraceError('ERR_RUN_OVER', 'the plan is made; no task can be inserted into it');
    const { insertions } = this.planning;
    const given = args as unknown as Record<string, unknown>;
    const closed =
      given === null || typeof given !== 'object' ? given : this.prepare(cls as never, given);
    const before = insertions.count;
    const handle = super.insert(cls, closed as TaskArguments<F, P>, options);
    this.classes[before] = cls as unknown as TaskClass;
    if (closed !== given) this.openAll(cls as never, given, before);
    return handle;
  }

  /** Resolves at once: planning needs no space. */
  override space(): Promise<void> {
    return Promise.resolve();
  }

  override check(datum: Datum, reads: boolean, of?: string): void {
    this.know(datum);
    super.check(datum, reads, of);
  }

  /** No task can be inserted any more. */
  end(): void {
    this.isOver = true;
  }

  /** Makes the data known to the planner. Returns the arguments with a number in place of each slot. */
  private prepare(cls: TaskClass, given: Record<string, unknown>): Record<string, unknown> {
    let closed = given;
    for (const name of cls.flowNames ?? []) this.know(given[name]);
    for (const name of cls.paramNames ?? []) {
      if (!(given[name] instanceof Slot)) continue;
      if (closed === given) closed = { ...given };
      closed[name] = cls.definition.params?.[name] === 'bool' ? false : 0;
    }
    return closed;
  }

  private openAll(cls: TaskClass, given: Record<string, unknown>, insertion: number): void {
    const bound = this.owner.classes.bind(cls);
    cls.paramNames.forEach((name, parameter) => {
      const value = given[name];
      if (!(value instanceof Slot)) return;
      const slot = this.slots.get(value.name) ?? {
        name: value.name,
        isWhole: false,
        isTruth: false,
      };
      this.slots.set(value.name, slot);
      if (bound.kinds[parameter] === ParameterKind.i32) slot.isWhole = true;
      if (bound.kinds[parameter] === ParameterKind.bool) slot.isTruth = true;
      this.planning.insertions.leaveOpen({ insertion, parameter, slot: value.name });
    });
  }

  private know(datum: unknown): void {
    if (datum instanceof Datum && datum.owner === this.owner.programData && !datum.closed)
      this.planning.mirror(datum.row as DatumId);
  }
}
