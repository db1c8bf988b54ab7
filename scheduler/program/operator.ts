// What a flow reduces by: the operator and the number of partial results, and their possible mistakes.
import { AccessMode } from '../../trace/format.js';
import { isRecord, propertyOf, shown } from '../checks.js';
import type { ElementType } from './element-type.js';

/** An operator that is built in. */
export type BuiltInOperator = 'sum' | 'product' | 'min' | 'max';

/** A task class, as far as an operator must know it. */
export interface OperatorClass {
  readonly name: string;
  readonly modes: readonly number[];
  readonly elements: readonly ElementType[];
  readonly paramNames: readonly string[];
}

/**
 * An operator of the program: two task classes without parameters and lists. It must be associative and commutative, up to
 * rounding.
 */
export interface OwnOperator {
  /** Class with one flow, `write`: it sets a partial result to the identity. */
  readonly identity: OperatorClass;
  /** Class with two flows, `readWrite` and `read`: it combines the second partial result into the first. */
  readonly combine: OperatorClass;
}

/** The operator of a reducing flow. */
export type Operator = BuiltInOperator | OwnOperator;

/** What a flow reduces by. */
export interface Reduction {
  readonly operator: Operator;
  /** Partial results on each rank. */
  readonly partials: number;
  /** The partial results are combined in an order that the program gives. */
  readonly deterministic: boolean;
}

export const DEFAULT_PARTIALS = 8;
const MOST_PARTIALS = 1024;

const BUILT_IN: Readonly<Record<BuiltInOperator, true>> = {
  sum: true,
  product: true,
  min: true,
  max: true,
};

/** The modes of the flows of each class. */
const SHAPES: Readonly<Record<keyof OwnOperator, readonly number[]>> = {
  identity: [AccessMode.write],
  combine: [AccessMode.readWrite, AccessMode.read],
};
const SHAPE_NAMES: Readonly<Record<keyof OwnOperator, string>> = {
  identity: 'one flow: write',
  combine: 'two flows: readWrite, then read',
};

/** Why a flow cannot reduce like that; undefined if it can. */
export function reductionProblem(
  element: ElementType,
  operator: unknown,
  partials: unknown,
  deterministic: unknown = true,
): string | undefined {
  if (typeof deterministic !== 'boolean')
    return `has ${shown(deterministic)} as \`deterministic\`: it takes true or false`;
  const number = partials as number;
  if (!Number.isInteger(partials) || number < 1 || number > MOST_PARTIALS)
    return `has ${shown(partials)} partials: it takes an integer from 1 to ${MOST_PARTIALS}`;
  return operatorProblem(element, operator);
}

function operatorProblem(element: ElementType, operator: unknown): string | undefined {
  if (typeof operator === 'string' && Object.hasOwn(BUILT_IN, operator)) return undefined;
  if (!isRecord(operator)) {
    const names = Object.keys(BUILT_IN).join(', ');
    return `has the operator ${shown(operator)}: it takes ${names}, or { identity, combine }`;
  }
  for (const part of ['identity', 'combine'] as const) {
    const of = `\`${part}\` of an operator`;
    const cls = propertyOf(operator, part, 'ERR_OPTION', 'an operator') as OperatorClass;
    const modes = isRecord(cls) ? propertyOf(cls, 'modes', 'ERR_OPTION', of) : undefined;
    if (!Array.isArray(modes))
      return `has an operator whose \`${part}\` is ${shown(cls)}, no task class`;
    const { name, elements, paramNames } = cls;
    const has = `has an operator whose \`${part}\`, task class '${name}',`;
    const isShape = modes.length === SHAPES[part].length;
    if (!isShape || modes.some((mode, i) => mode !== SHAPES[part][i]))
      return `${has} has other flows: it needs ${SHAPE_NAMES[part]}`;
    if (paramNames.length > 0) return `${has} has a parameter '${paramNames[0]}'`;
    const other = elements.find((of) => of !== element);
    if (other !== undefined) return `${has} takes ${other}, not ${element}`;
  }
  return undefined;
}
