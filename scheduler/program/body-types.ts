// What tasks are inserted with, by programs and by bodies: the arguments and options of a task, the graph, and the context of a body.
import type { TaskHandle } from '../../devices/handles.js';
import type { Datum } from './datum.js';
import type { ElementType } from './element-type.js';
import type { Flows, OneOrList, Parameters, ParameterType } from './flows.js';
import type { TaskClass } from './task-class.js';

/** Data and parameters of a task, by name. A list gets an array of data. */
export type TaskArguments<F extends Flows, P extends Parameters> = {
  readonly [K in keyof F]: OneOrList<F[K], Datum<F[K]['element']>>;
} & { readonly [K in keyof P]: ParameterArgument<P[K]> };

/** A parameter of a task: a value, or a datum whose first element is the value when the task starts. */
export type ParameterArgument<T extends ParameterType> = T extends 'bool'
  ? boolean
  : number | Datum<T & ElementType>;

/** Options of one task. */
export interface TaskOptions {
  /** Among ready tasks on the same device, larger priorities run first; an integer, 0 by default. */
  readonly priority?: number;
  /** Device that runs the task: a GPU number from 0, or 'host'. Default: placement decides. */
  readonly device?: number | 'host';
  /** Rank that runs the task, on several ranks; default: the owner of the first datum that the task writes. */
  readonly rank?: number;
  /** Tasks that must be over (or ahead in queue order) first, besides those that the data imply. */
  readonly after?: readonly TaskHandle[];
}

/** The graph of a run, as bodies see it. `Graph` has the documentation of the methods. */
export interface TaskGraph {
  /** Inserts a task after all tasks inserted before it: see `Graph.insert`. */
  insert<F extends Flows, P extends Parameters>(
    cls: TaskClass<F, P>,
    args: TaskArguments<F, P>,
    options?: TaskOptions,
  ): TaskHandle;
  /** Checks that tasks of the run can use a datum: see `Graph.check`. */
  check(datum: Datum, reads: boolean, of?: string): void;
  /** The first element of a datum after all tasks inserted so far that write it: see `Graph.value`. */
  value(datum: Datum): Promise<number>;
  /** Resolves when the window has room: see `Graph.space`. */
  space(): Promise<void>;
  /** Whether a datum belongs to this rank. */
  owns(datum: Datum): boolean;
  /** Whether this rank may leave out a task on these data: see `Graph.skips`. */
  skips(...data: readonly (Datum | number)[]): boolean;
  /** This process's number among `ranks`. */
  readonly rank: number;
  /** Number of processes that run this program together. */
  readonly ranks: number;
}

/** What a JavaScript body on the engine's thread gets besides its arguments. */
export interface BodyContext<F extends Flows = Flows> {
  /** The graph of the run. `graph.insert` inserts tasks that come after all tasks inserted so far. */
  readonly graph: TaskGraph;
  /** The data of the task by flow, for tasks that the body inserts or spawns. */
  readonly data: { readonly [K in keyof F]: OneOrList<F[K], Datum<F[K]['element']>> };
  /**
   * Inserts a task that belongs to this one. It starts when the body has ended, and this task is over when all tasks that its
   * body has spawned are: tasks that come after this one see what they write. Spawned tasks of one body follow each other by
   * their data, in the order of the calls. They may use the data of this task (and write those that it writes), temporaries of
   * its body, and other data that no task behind this one uses. On several ranks they run on the rank of this task, and of other data
   * they may use only those that bodies of this rank have made. Parts of the data of this task and of temporaries are made by this body
   * (`data.x.part(...)`), and end with this task.
   *
   * @throws HeadraceError `ERR_SPAWN_ORDER`; `ERR_PART` for parts of other data; `ERR_INSERT_ALONE` if it concerns another rank; `ERR_RUN_OVER` after the end of the
   *   body; and the errors of `Graph.insert`
   */
  spawn<G extends Flows, P extends Parameters>(
    cls: TaskClass<G, P>,
    args: TaskArguments<G, P>,
    options?: TaskOptions,
  ): TaskHandle;
  /**
   * A datum without a value for the tasks that the body spawns. It is closed when this task is over.
   *
   * @throws HeadraceError the errors of `runtime.data(element, length)`; `ERR_RUN_OVER` after the end of the body
   */
  temporary<E extends ElementType>(element: E, length: number): Datum<E>;
}
