// The graph of a plan: the same `insert` as in a run, with open parameters. Nothing runs.
import { HeadraceError } from '../../devices/errors.js';
import type { DatumId, TaskHandle } from '../../devices/handles.js';
import { isInstance, notReadable, shown } from '../checks.js';
import type { RunState } from '../engine/run-state.js';
import type { ProgramInsertion, TaskInsertion } from '../engine/task-insertion.js';
import { hasDataParameters, plainTask } from '../program/class-shapes.js';
import { Datum } from '../program/datum.js';
import {
  Graph,
  type GraphRuntime,
  type ParameterArgument,
  type TaskArguments,
  type TaskOptions,
} from '../program/graph.js';
import {
  type Flows,
  isTaskClass,
  type OneOrList,
  type Parameters,
  type TaskClass,
} from '../program/task-class.js';
import type { PlanningEngine } from './planning-engine.js';
import { Slot } from './slot.js';

/** Data and parameters of a task of a plan, by name. A list gets an array of data. A parameter may be open. */
export type PlanArguments<F extends Flows, P extends Parameters> = {
  readonly [K in keyof F]: OneOrList<F[K], Datum<F[K]['element']>>;
} & { readonly [K in keyof P]: ParameterArgument<P[K]> | Slot };

/** Inserts tasks into a plan, in program order. */
export class PlanGraph extends Graph {
  /** @internal The classes of the program by the id of their row. */
  readonly classes: TaskClass[] = [];
  private readonly planning: PlanningEngine;
  private readonly owner: GraphRuntime;
  private isOver = false;

  /** @internal Data of the plan alone. */
  readonly temporaries: Datum[] = [];
  /** @internal Rank of each insertion; on several ranks only. */
  readonly rankOf: number[] = [];
  /** On several ranks: the run in which all ranks make the plan, if they do it together. */
  private readonly together: RunState | undefined;

  /** @internal Use `runtime.plan`. */
  constructor(runtime: GraphRuntime, planning: PlanningEngine, together?: RunState) {
    super(runtime, planning, planning.plannedRun);
    this.owner = runtime;
    this.planning = planning;
    this.together = together;
  }

  /**
   * Inserts a task after all tasks inserted before it, as `Graph.insert` does; a parameter may be a `slot`.
   *
   * @throws HeadraceError the errors of `Graph.insert`, and `ERR_PLAN_BODY` for a class whose body runs on the JavaScript thread
   */
  override insert<F extends Flows, P extends Parameters>(
    cls: TaskClass<F, P>,
    args: PlanArguments<F, P>,
    options?: TaskOptions,
  ): TaskHandle {
    if (this.isOver)
      throw new HeadraceError('ERR_RUN_OVER', 'the plan is made; no task can be inserted into it');
    const { insertions } = this.planning;
    const isGiven = isTaskClass(cls) && args !== null && typeof args === 'object';
    const given = (isGiven ? readOnce(cls as TaskClass, args) : args) as Record<string, unknown>;
    if (isGiven && (cls.lists !== undefined || hasDataParameters(cls, given))) {
      const plain = plainTask(cls, given);
      return this.insert(plain.cls, plain.args as PlanArguments<Flows, Parameters>, options);
    }
    const closed = isGiven ? this.prepare(cls as never, given) : given;
    const handle = super.insert(cls, closed as TaskArguments<F, P>, options);
    // Tasks of reductions may have come before it.
    const last = insertions.count - 1;
    this.classes[insertions.classOf(last).id] = cls as unknown as TaskClass;
    if (closed !== given) this.openAll(cls as never, given, last);
    return handle;
  }

  /** @internal The planner knows the data by name. */
  override insertInOrder(
    cls: TaskClass,
    data: readonly Datum[],
    params: Readonly<Record<string, unknown>> | undefined,
    options: TaskOptions | undefined,
  ): TaskHandle {
    this.owner.parts.refuseAll(cls.name, data);
    return this.insertNamed(cls, data, params, options);
  }

  /** @internal On several ranks the tasks of all are kept, and compared with those of the other ranks. */
  protected override place(insertion: ProgramInsertion, rank: number): TaskHandle {
    const { together, owner, planning } = this;
    const { peers } = owner;
    if (peers === undefined) return super.place(insertion, rank);
    const { cls, flows, params } = insertion;
    const target = rank >= 0 ? rank : peers.plan.rankOf(cls, flows);
    const before = (insertion.after ?? []) as readonly number[];
    if (together !== undefined)
      peers.runs.graphs.count(together, cls, flows, params, peers.plan.data.gid, target);
    this.rankOf.push(target);
    return planning.keep(insertion as TaskInsertion, before) as TaskHandle;
  }

  /** @internal */
  protected override isHandle(handle: number): boolean {
    if (this.owner.peers === undefined) return super.isHandle(handle);
    return Number.isInteger(handle) && handle >= 0 && handle < this.planning.insertions.count;
  }

  /** Resolves at once: planning needs no space. */
  override space(): Promise<void> {
    return Promise.resolve();
  }

  /** Rejects with `ERR_PLAN_VALUE`: nothing runs while a plan is made. */
  override value(datum: Datum): Promise<number> {
    const of = isInstance(datum, Datum) ? `datum '${datum.name}'` : shown(datum);
    return Promise.reject(
      new HeadraceError(
        'ERR_PLAN_VALUE',
        `the program of a plan asks for the value of ${of}, and no task runs while a plan is made`,
        { remedy: 'give the play a condition on the datum: plan.run({ while: ... })' },
      ),
    );
  }

  override check(datum: Datum, reads: boolean, of?: string): void {
    this.know(datum);
    super.check(datum, reads, of);
  }

  /** @internal A play uses it again. */
  override freeTemporary(datum: Datum): void {
    this.temporaries.push(datum);
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
      if (!isInstance(given[name], Slot)) continue;
      if (closed === given) closed = { ...given };
      closed[name] = cls.definition.params?.[name] === 'bool' ? false : 0;
    }
    return closed;
  }

  private openAll(cls: TaskClass, given: Record<string, unknown>, insertion: number): void {
    cls.paramNames.forEach((name, parameter) => {
      const value = given[name];
      if (isInstance(value, Slot))
        this.planning.insertions.leaveOpen({ insertion, parameter, slot: value.name });
    });
  }

  private know(datum: unknown): void {
    if (!isInstance(datum, Datum) || this.planning.directory.info[datum.row] === datum) return;
    if (datum.owner === this.owner.programData && !datum.closed)
      this.planning.mirror(datum.row as DatumId);
  }
}

/** The arguments of a task, of which each is read once: a plan looks at them several times. */
function readOnce(cls: TaskClass, args: object): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  const read = (name: string): void => {
    try {
      const value = (args as Record<string, unknown>)[name];
      if (name !== '__proto__') given[name] = value;
      else Object.defineProperty(given, name, { value, enumerable: true });
    } catch (cause) {
      throw notReadable(cause, 'ERR_ARGUMENT_TYPE', `${shown(name)} of ${argumentsOf(cls)}`);
    }
  };
  for (const name of namesOf(cls, args)) read(name);
  for (const name of cls.flowNames) if (!(name in given)) read(name);
  for (const name of cls.paramNames) if (!(name in given)) read(name);
  return given;
}

function namesOf(cls: TaskClass, args: object): readonly string[] {
  try {
    return Object.keys(args);
  } catch (cause) {
    throw notReadable(cause, 'ERR_ARGUMENT_TYPE', argumentsOf(cls));
  }
}

function argumentsOf({ name }: TaskClass): string {
  return `the arguments of task class '${name}'`;
}
