// The flows of task classes, as a program writes them: `read('f64')`, `reduce('f64', 'sum')`, `list(write('i32'))`.
import { HeadraceError } from '../../devices/errors.js';
import { entriesOf, isRecord, oneOf, optionsOf, shown } from '../checks.js';
import { ELEMENT_TYPES, type ElementType, isElementType } from './element-type.js';
import type { FetchPolicy, Flow, FlowMode, InputOptions, ListFlow } from './flows.js';
import { DEFAULT_PARTIALS, type Operator, reductionProblem } from './operator.js';

export const FETCH_POLICIES: readonly FetchPolicy[] = ['push', 'pull'];
const INPUT_OPTIONS: readonly string[] = ['fetch'];
const REDUCE_OPTIONS: readonly string[] = ['partials', 'deterministic'];
/** The properties of a flow. */
export const FLOW_PARTS: readonly string[] = [
  ...['element', 'mode', 'list', 'operator'],
  ...INPUT_OPTIONS,
  ...REDUCE_OPTIONS,
];

/** The task reads the datum and leaves it as it is. @throws HeadraceError `ERR_OPTION` */
export function read<E extends ElementType>(
  element: E,
  options: InputOptions = {},
): Flow<E, 'read'> {
  return { element: elementOf('read', element), mode: 'read', ...inputOptions(options) };
}
/**
 * The task overwrites all of the datum without reading it; the datum need not have a value yet.
 * @throws HeadraceError `ERR_OPTION`
 */
export function write<E extends ElementType>(element: E): Flow<E, 'write'> {
  return { element: elementOf('write', element), mode: 'write' };
}
/** The task reads the datum and changes it. @throws HeadraceError `ERR_OPTION` */
export function readWrite<E extends ElementType>(
  element: E,
  options: InputOptions = {},
): Flow<E, 'readWrite'> {
  return { element: elementOf('readWrite', element), mode: 'readWrite', ...inputOptions(options) };
}

/** @throws HeadraceError `ERR_OPTION` */
function elementOf<E extends ElementType>(flow: string, element: E): E {
  if (isElementType(element)) return element;
  throw new HeadraceError('ERR_OPTION', `${flow}(${shown(element)}) has no element type`, {
    remedy: `the element types are ${ELEMENT_TYPES.join(', ')}`,
  });
}

function inputOptions(options: InputOptions): InputOptions {
  const { fetch } = optionsOf(options, INPUT_OPTIONS, 'the options of a flow');
  return fetch === undefined
    ? {}
    : { fetch: oneOf(fetch, 'the option fetch of a flow', FETCH_POLICIES) };
}

/** Options of a reducing flow. */
export interface ReduceOptions {
  /**
   * Partial results on each rank: as many of the tasks run in parallel there. The result's rounding depends on it. An integer
   * from 1 to 1024, by default 8. The first task of a reduction decides.
   */
  readonly partials?: number;
  /**
   * False: the partial results of a rank are combined in the order in which they become ready, so that none waits for another. The
   * rounding of the result then depends on timing. By default true: the order is that of a tree, and the bits are the same every time.
   */
  readonly deterministic?: boolean;
}

/**
 * The task combines a contribution into the datum, with an operator. Such tasks run in parallel, and the array that they get
 * holds a partial result: `body: ({ total }) => { total[0] += mine; }`. The first other access to the datum follows all
 * of them and sees the whole result (docs/guide.md, "Reductions").
 *
 * @throws HeadraceError `ERR_OPTION`
 */
export function reduce<E extends ElementType>(
  element: E,
  operator: Operator,
  options: ReduceOptions = {},
): Flow<E, 'reduce'> {
  elementOf('reduce', element);
  const given = optionsOf(options, REDUCE_OPTIONS, 'the options of a flow');
  const { partials = DEFAULT_PARTIALS, deterministic = true } = given;
  const problem = reductionProblem(element, operator, partials, deterministic);
  if (problem !== undefined)
    throw new HeadraceError('ERR_OPTION', `reduce(${shown(element)}, ...) ${problem}`);
  return { element, mode: 'reduce', operator, partials, deterministic };
}

/**
 * The task reads the datum and changes it, like `readWrite`, and its order among the tasks that commute on the datum does not
 * matter: they run one after the other, in the order in which they become ready. All other tasks that use the datum come before or
 * after them, in program order. On several ranks and in plans the order is that of the program.
 *
 * @throws HeadraceError `ERR_OPTION`
 */
export function commute<E extends ElementType>(element: E): Flow<E, 'commute'> {
  return { element: elementOf('commute', element), mode: 'commute' };
}

/**
 * A flow that takes an array of data, such as `list(read('f64'))`: all have the element type and the access of `flow`. The array
 * may be empty. A kernel gets the data one after the other in place of the flow, and their number behind the declared
 * parameters.
 *
 * @throws HeadraceError `ERR_OPTION`
 */
export function list<E extends ElementType, M extends FlowMode>(flow: Flow<E, M>): ListFlow<E, M> {
  const parts = isRecord(flow) ? entriesOf(flow, 'ERR_OPTION', 'the flow of a list') : [];
  const copy = Object.fromEntries(parts) as unknown as Flow<E, M>;
  if (!isElementType(copy.element))
    throw new HeadraceError('ERR_OPTION', `list(${shown(flow)}) has no flow`, {
      remedy: "write it like list(read('f64'))",
    });
  return { ...copy, list: true };
}
