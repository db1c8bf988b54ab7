// The types of flows and parameters, which task classes, bodies and kernels share.
import type { ElementArray, ElementType } from './element-type.js';
import type { Operator } from './operator.js';

/** The access of a flow to its datum, and its element type. */
export interface Flow<E extends ElementType = ElementType, M extends FlowMode = FlowMode> {
  readonly element: E;
  readonly mode: M;
  /** Time at which an input of another rank is fetched; default: the value of the class. */
  readonly fetch?: FetchPolicy;
  /** It takes an array of data: see `list`. */
  readonly list?: boolean;
  /** The operator of a reducing flow, and the number of its partial results on a rank: see `reduce`. */
  readonly operator?: Operator;
  readonly partials?: number;
  /** Of a reducing flow: false if its partial results may be combined in any order. */
  readonly deterministic?: boolean;
}
/** A flow that takes an array of data. Each task chooses their number. */
export interface ListFlow<E extends ElementType = ElementType, M extends FlowMode = FlowMode>
  extends Flow<E, M> {
  readonly list: true;
}
/**
 * Time at which an input that another rank produces is fetched. `'push'`: when that rank announces it, ahead of the
 * task. `'pull'`: when all other inputs of the task are there and all its memory can be reserved. Pull keeps memory free
 * but starts the transfer late.
 */
export type FetchPolicy = 'push' | 'pull';
/** Options of an input. */
export interface InputOptions {
  /** Time at which it is fetched if another rank produces it; default: the value of the class. */
  readonly fetch?: FetchPolicy;
}
/** The access of a flow to its datum. */
export type FlowMode = 'read' | 'write' | 'readWrite' | 'reduce' | 'commute';

/** A scalar parameter: any number, an integer of 32 bits, or a truth value. */
export type ParameterType = 'f64' | 'i32' | 'bool';
/** Numbers of the parameter types. @internal */
export const ParameterKind = { f64: 0, i32: 1, bool: 2 } as const;
/** The value of a parameter in a body. */
export type ParameterValue<P extends ParameterType> = P extends 'bool' ? boolean : number;

/** Flows of a task class by name, in the order of a kernel's arguments. */
export type Flows = Readonly<Record<string, Flow>>;
/** Parameters of a task class by name, in the order of a kernel's arguments. */
export type Parameters = Readonly<Record<string, ParameterType>>;

/** What a flow is in the arguments: `One`, or an array of them for a list. */
export type OneOrList<F extends Flow, One> = F['list'] extends true ? readonly One[] : One;

/** The elements of a datum in a body. */
export type FlowArray<F extends Flow> = F['mode'] extends 'read'
  ? Readonly<ElementArray<F['element']>>
  : ElementArray<F['element']>;
