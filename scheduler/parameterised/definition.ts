// What the program says of a class of a parameterised graph, as types. A first call declares names, indices and task
// classes; a second one gives the functions, so that classes may name each other in any order.

import type { Datum } from '../program/datum.js';
import type { ElementType } from '../program/element-type.js';
import type { Flow, Flows, Parameters, TaskClass } from '../program/task-class.js';
import type { ControlEnd, Controls, FlowEnd, Source, Targets } from './ends.js';
import type { OwnRange, Range } from './range.js';

/** Declaration of a class of tasks. */
export interface ClassDeclaration {
  /** The task class that its tasks run. Its flows are the flows of the graph. */
  // biome-ignore lint/suspicious/noExplicitAny: a declaration takes task classes of any flows and parameters.
  readonly runs: TaskClass<any, any>;
  /** Names of the indices. The range of one may depend on those before it. */
  readonly indices: readonly string[];
  /** Names of control flows. */
  readonly controls?: readonly string[];
}

/** Declarations by the names of the classes. */
export type Declarations = Readonly<Record<string, ClassDeclaration>>;

type FlowsOf<D extends ClassDeclaration> =
  D['runs'] extends TaskClass<infer F, infer _P> ? (F extends Flows ? F : never) : never;
type ParametersOf<D extends ClassDeclaration> =
  D['runs'] extends TaskClass<infer _F, infer P> ? (P extends Parameters ? P : never) : never;
type ControlsOf<D extends ClassDeclaration> = D['controls'] extends readonly string[]
  ? D['controls'][number]
  : never;

/** The indices of a task of a class. */
export type IndicesOf<D extends ClassDeclaration> = {
  readonly [K in D['indices'][number]]: number;
};

/** Names in a list before one of them. */
type Before<I extends readonly string[], K> = I extends readonly [
  infer H extends string,
  ...infer T extends readonly string[],
]
  ? H extends K
    ? never
    : H | Before<T, K>
  : never;

/** Carries the declaration of a class in the type of its functions. @internal */
export declare const declared: unique symbol;

/** The flows and control flows of a class: functions from the indices of a task to an end of an edge. */
export type ClassEnds<D extends ClassDeclaration> = {
  readonly [K in keyof FlowsOf<D>]: (of: IndicesOf<D>) => FlowEnd<FlowsOf<D>[K]['element']>;
} & { readonly [K in ControlsOf<D>]: (of: IndicesOf<D>) => ControlEnd } & {
  /** @internal */
  readonly [declared]?: D;
};

/** The edges of one flow. A list takes an array of sources. */
export interface FlowEdges<F extends Flow, I> {
  /** Where the input comes from; for a flow that is only written, the datum that is overwritten. */
  readonly from: (
    of: I,
  ) => F['list'] extends true ? readonly Source<F['element']>[] : Source<F['element']>;
  /** Where the value goes that the task leaves. A flow that is only read passes its input on. */
  readonly to?: F['list'] extends true ? undefined : (of: I) => Targets<F['element']>;
  /** For a flow that is written, the datum in which the value lies that the task leaves; needed to start locally (see `order`). */
  readonly datum?: F['mode'] extends 'read' ? undefined : (of: I) => Datum<F['element']>;
}

/** The edges of one control flow: all tasks in `from` come before, all in `to` after. */
export interface ControlEdges<I> {
  /** Control flows of the tasks that come before. */
  readonly from?: (of: I) => Controls;
  /** Control flows of the tasks that come behind. */
  readonly to?: (of: I) => Controls;
}

/** Values of the parameters of a task. */
type ParameterValues<P extends Parameters> = {
  readonly [K in keyof P]: P[K] extends 'bool' ? boolean : number;
};

/** An index and the values of it between which a class repeats; one of the indices. */
export type Repeats<I extends string> = {
  readonly [K in I]: { readonly [L in K]: () => Range } & {
    readonly [L in Exclude<I, K>]?: undefined;
  };
}[I];

/** Definition of a class of tasks. All functions get the indices of a task and must be pure. */
export type ClassDefinition<D extends ClassDeclaration> = {
  /** Values of each index, from the indices before it. */
  readonly ranges: {
    readonly [K in D['indices'][number]]: (
      of: Pick<IndicesOf<D>, Before<D['indices'], K>>,
    ) => Range;
  };
  /**
   * Ranges outside of which every task has an input from another task. They only save time: without them the graph looks for
   * first tasks in all ranges.
   */
  readonly starts?: {
    readonly [K in D['indices'][number]]?: (
      of: Pick<IndicesOf<D>, Before<D['indices'], K>>,
    ) => Range;
  };
  /**
   * The position of the task in an order that all ranks share: a number that no other task of the instance has, larger than those of
   * all tasks that come before it. Within a class it grows with the indices, the last one fastest. With the order of all classes, `on`, and
   * `datum` of all flows that are written, a rank of a pruned run looks at its own tasks only (docs/parameterised-graphs.md).
   */
  readonly order?: (of: IndicesOf<D>) => number;
  /** Ranges outside of which no task belongs to rank `rank`. They only save time: without them a rank looks for its tasks in all ranges. */
  readonly own?: {
    readonly [K in D['indices'][number]]?: (
      of: Pick<IndicesOf<D>, Before<D['indices'], K>>,
      rank: number,
    ) => OwnRange;
  };
  /** The datum whose owner runs the task, or the rank. Default: the owner of the first datum that it writes. */
  readonly on?: (of: IndicesOf<D>) => Datum | number;
  /**
   * A promise that saves calls of the functions: of two tasks whose indices differ in this one only, both in the range, `from` and `to` return
   * the same, except that in each end the index that the end's class names in its `repeats` differs as those of the two tasks do. The ranges
   * of the other indices are the same. The range has steps of 1. `verify` and checked runs look whether the promise is kept; other runs rely on it.
   */
  readonly repeats?: Repeats<D['indices'][number]>;
  /** The edges of every flow. */
  readonly flows: {
    readonly [K in keyof FlowsOf<D>]: FlowEdges<FlowsOf<D>[K], IndicesOf<D>>;
  };
  /** The edges of the control flows. */
  readonly controls?: { readonly [K in ControlsOf<D>]?: ControlEdges<IndicesOf<D>> };
  /** Larger ones are inserted and run first; an integer, 0 by default. */
  readonly priority?: (of: IndicesOf<D>) => number;
  /** Device that runs the task: a GPU number from 0, or 'host'. Default: placement decides. */
  readonly device?: (of: IndicesOf<D>) => number | 'host' | undefined;
} & (keyof ParametersOf<D> extends never
  ? {
      /** The task class has none. */
      readonly params?: undefined;
    }
  : {
      /** Values of the parameters of the task class, or the function that returns those of a task. */
      readonly params:
        | ((of: IndicesOf<D>) => ParameterValues<ParametersOf<D>>)
        | ParameterValues<ParametersOf<D>>;
    });

/** Data of a graph that tasks of other ranks read as they were before it, by indices. All functions must be pure. */
export interface InputDefinition<I extends readonly string[], E extends ElementType = ElementType> {
  /** Names of the indices. The range of one may depend on those before it. */
  readonly indices: I;
  /** Values of each index, from the indices before it. */
  readonly ranges: {
    readonly [K in I[number]]: (of: { readonly [L in Before<I, K>]: number }) => Range;
  };
  /** Ranges outside of which no datum belongs to rank `rank`. They only save time. */
  readonly own?: {
    readonly [K in I[number]]?: (
      of: { readonly [L in Before<I, K>]: number },
      rank: number,
    ) => OwnRange;
  };
  /** The rank that owns the datum. It saves making handles of the data of other ranks. */
  readonly on?: (of: { readonly [K in I[number]]: number }) => Datum | number;
  /** The datum. */
  readonly datum: (of: { readonly [K in I[number]]: number }) => Datum<E>;
  /** The flows that take its value from before the graph. */
  readonly to: (of: { readonly [K in I[number]]: number }) => Targets<NoInfer<E>>;
}
