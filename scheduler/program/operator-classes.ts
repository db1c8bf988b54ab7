// The tasks of a reduction: one sets a partial result to the identity of the operator, the other combines two of them.
// Those of the operators that are built in are native kernels (native/kernels/combine.cpp), the same bits on all devices.
import type { ElementType } from './element-type.js';
import type { BuiltInOperator, Operator } from './operator.js';
import { commute, read, readWrite, type TaskClass, task, write } from './task-class.js';

/** Classes and parameters of the tasks of a reduction. The data of `combine` come in the order of its flows. */
export interface OperatorTasks {
  readonly identity: TaskClass;
  readonly combine: TaskClass;
  readonly identityParams: Readonly<Record<string, number>>;
  readonly combineParams: Readonly<Record<string, number>>;
}

/** Numbers of the element types and operators (native/kernels/combine.h). */
const ELEMENTS: Readonly<Record<ElementType, number>> = { f64: 0, f32: 1, i32: 2, u32: 3, u8: 4 };
const OPERATORS: Readonly<Record<BuiltInOperator, number>> = { sum: 0, product: 1, min: 2, max: 3 };

/** The least and the greatest value of each type. */
const BOUNDS: Readonly<Record<ElementType, readonly [number, number]>> = {
  f64: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  f32: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  i32: [-(2 ** 31), 2 ** 31 - 1],
  u32: [0, 2 ** 32 - 1],
  u8: [0, 255],
};

/** x op identity is x, bit for bit: -0 + -0 is -0. */
function identityOf(operator: BuiltInOperator, element: ElementType): number {
  const [least, greatest] = BOUNDS[element];
  return { sum: -0, product: 1, min: greatest, max: least }[operator];
}

interface ClassPair {
  readonly identity: TaskClass;
  readonly combine: TaskClass;
}

const pairs: Map<ElementType, ClassPair> = new Map();

function pairOf(element: ElementType): ClassPair {
  const known = pairs.get(element);
  if (known !== undefined) return known;
  const made = {
    identity: task({
      name: 'identity of a reduction',
      flows: { partial: write(element) },
      params: { element: 'i32', count: 'f64', value: 'f64' },
      kernel: 'reduce_identity',
    }) as unknown as TaskClass,
    combine: task({
      name: 'combination of a reduction',
      flows: { to: readWrite(element), from: read(element) },
      params: { element: 'i32', count: 'f64', operator: 'i32' },
      kernel: 'reduce_combine',
    }) as unknown as TaskClass,
  };
  pairs.set(element, made);
  return made;
}

/** By classes that combine: the same for partial results that come in any order. */
const commuting: WeakMap<TaskClass, TaskClass> = new WeakMap();

/** The class that combines like `cls`. Its tasks on one datum commute. */
function commutingOf(cls: TaskClass): TaskClass {
  const known = commuting.get(cls);
  if (known !== undefined) return known;
  const { definition, flowNames, elements } = cls;
  const [to, from] = flowNames;
  const flows = { [to]: commute(elements[0]), [from]: read(elements[1]) };
  // No module exports it.
  const made = task({ ...definition, module: undefined, flows } as never) as unknown as TaskClass;
  commuting.set(cls, made);
  return made;
}

/** The tasks of a reduction of `length` elements. */
export function tasksOf(
  operator: Operator,
  element: ElementType,
  length: number,
  deterministic: boolean,
): OperatorTasks {
  const tasks = tasksInOrder(operator, element, length);
  return deterministic ? tasks : { ...tasks, combine: commutingOf(tasks.combine) };
}

function tasksInOrder(operator: Operator, element: ElementType, length: number): OperatorTasks {
  if (typeof operator !== 'string') {
    const { identity, combine } = operator;
    const none = {};
    return {
      identity: identity as TaskClass,
      combine: combine as TaskClass,
      identityParams: none,
      combineParams: none,
    };
  }
  const common = { element: ELEMENTS[element], count: length };
  return {
    ...pairOf(element),
    identityParams: { ...common, value: identityOf(operator, element) },
    combineParams: { ...common, operator: OPERATORS[operator] },
  };
}
