// Both ends of an edge of a parameterised graph: a flow or a control flow of the task with certain indices. And temporaries:
// data that the graph makes for a task and frees behind the last reader.

import { HeadraceError } from '../../devices/errors.js';
import { optionsOf, shown } from '../checks.js';
import type { Datum } from '../program/datum.js';
import { checkLength, checkShape } from '../program/datum-options.js';
import { ELEMENT_TYPES, type ElementType, isElementType } from '../program/element-type.js';

/** The indices of a task, by name. */
export type Indices = Readonly<Record<string, number>>;

/** The class of a task, as far as an end knows it. @internal */
export interface EndClass {
  readonly name: string;
  /** Position in its instance. */
  readonly number: number;
}

/** A flow of one task. As a source it is the value that the task leaves, as a target the input that it takes. */
export class FlowEnd<E extends ElementType = ElementType> {
  /** Element type of the flow. */
  declare readonly element: E;
  /** The constructor writes each field once: declared fields are not made undefined before. @internal */
  declare readonly cls: EndClass;
  /** Position among the flows of the task class. @internal */
  declare readonly flow: number;
  /** @internal */
  declare readonly indices: Indices;

  /** @internal Use the functions that `declare` returns. */
  constructor(cls: EndClass, flow: number, indices: Indices) {
    this.cls = cls;
    this.flow = flow;
    this.indices = indices;
  }
}

/** A control flow of one task: an order without data. */
export class ControlEnd {
  /** @internal */
  readonly cls: EndClass;
  /** Position among the control flows of the class. @internal */
  readonly control: number;
  /** @internal */
  readonly indices: Indices;

  /** @internal Use the functions that `declare` returns. */
  constructor(cls: EndClass, control: number, indices: Indices) {
    this.cls = cls;
    this.control = control;
    this.indices = indices;
  }
}

const TEMPORARY_OPTIONS: readonly string[] = ['rows', 'device'];

/** Options of a temporary. */
export interface TemporaryOptions {
  /** Rows of the column-major matrix that its elements form. Default: one column. */
  readonly rows?: number;
  /** Device that runs the tasks that write it: a GPU number from 0, or 'host'. */
  readonly device?: number | 'host';
}

/** A datum that the graph makes for the task, without a value, and frees when the last task that uses it is over. */
export class Temporary<E extends ElementType = ElementType> {
  /** Element type. */
  readonly element: E;
  /** Number of elements. */
  readonly length: number;
  /** Rows and device. */
  readonly options: TemporaryOptions;

  /** @internal Use `temporary`. */
  constructor(element: E, length: number, options: TemporaryOptions) {
    this.element = element;
    this.length = length;
    this.options = options;
  }
}

/** A temporary of `length` elements, for the `from` of a flow that is written. @throws HeadraceError `ERR_OPTION` */
export function temporary<E extends ElementType>(
  element: E,
  length: number,
  options: TemporaryOptions = {},
): Temporary<E> {
  if (!isElementType(element))
    throw new HeadraceError('ERR_OPTION', `a temporary has no elements of ${shown(element)}`, {
      remedy: `the element types are ${ELEMENT_TYPES.join(', ')}`,
    });
  checkLength('temporary', length);
  const given = optionsOf(options, TEMPORARY_OPTIONS, 'the options of a temporary');
  if (given.rows !== undefined) checkShape('temporary', element, length, given.rows);
  const { device } = given;
  if (device !== undefined && device !== 'host' && !Number.isInteger(device))
    throw new HeadraceError(
      'ERR_NO_DEVICE',
      `the device of a temporary must be 'host' or the number of a GPU, not ${shown(device)}`,
    );
  return new Temporary(element, length, given);
}

/**
 * Where the input of a flow comes from: a datum (its value from before the graph), the flow of another task, or a new
 * temporary.
 */
export type Source<E extends ElementType = ElementType> = Datum<E> | FlowEnd<E> | Temporary<E>;

/** Where an output goes: inputs of other tasks, or home to a datum. `undefined` and `false` are nothing. */
export type Targets<E extends ElementType = ElementType> =
  | FlowEnd<E>
  | Datum<E>
  | undefined
  | false
  | readonly Targets<E>[];

/** Control flows of other tasks. `undefined` and `false` are nothing. */
export type Controls = ControlEnd | undefined | false | readonly Controls[];
