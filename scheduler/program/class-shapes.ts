// Flows that take an array of data, and parameters that are given as data.
//
// A task class has a shape for every number of data in its lists and every set of parameters that are given as data. A shape is
// a class whose flows are `parts[0]`, `parts[1]` and so on, and whose last flows are these parameters, made at the first such
// insertion. Everything behind the insertion (engine, ranks, plans, traces, errors) knows shapes only, so all tasks of one engine
// class have the same flows.
// After the declared parameters a shape has one per list, `parts.length`: kernels learn from it where a list ends. A kernel gets
// the parameters of the declared class: the value of one that is a datum is read when the kernel starts (`Backend.steered`).
import { isAsyncFunction } from 'node:util/types';
import { HeadraceError } from '../../devices/errors.js';
import { MOST_ARGUMENTS } from '../../devices/submission.js';
import { isInstance, reading, shown } from '../checks.js';
import { checkArgumentNames, missing } from './argument-names.js';
import { TaskContext } from './body-context.js';
import { Datum } from './datum.js';
import type { ElementType } from './element-type.js';
import { isMember, memberOf, sizeOf } from './member-names.js';
import { type Flow, type ParameterType, type TaskClass, variantOf } from './task-class.js';

type Values = Record<string, unknown>;
type ShapeBody = (args: Values, context: unknown) => void | PromiseLike<void>;

/** Element type of a datum that is given as a parameter. */
const DATUM_TYPES: Readonly<Record<ParameterType, ElementType | undefined>> = {
  f64: 'f64',
  i32: 'i32',
  bool: undefined,
};

/** The shapes of each class, by the numbers of data in its lists and the parameters that are data. */
const shapes: WeakMap<TaskClass, Map<string, TaskClass>> = new WeakMap();

/** What one shape of a class has. */
interface Shape {
  /** Number of data, per list. */
  readonly sizes: readonly number[];
  /** Names of the parameters that are data. */
  readonly data: readonly string[];
}

/** The class, and the arguments, of a task without lists and without parameters that are data. */
interface PlainTask {
  readonly cls: TaskClass;
  readonly args: Values;
}

/** Whether a parameter of the class is a datum in these arguments. */
export function hasDataParameters(cls: TaskClass, given: Values): boolean {
  return cls.paramNames.some((name) => isDatumOf(cls, name, given[name]));
}

function isDatumOf(cls: TaskClass, name: string, value: unknown): boolean {
  const type = cls.definition.params?.[name];
  return isInstance(value, Datum) && type !== undefined && DATUM_TYPES[type] !== undefined;
}

/**
 * The shape of a task with lists or with parameters that are data, and its arguments by the shape's names.
 * @throws HeadraceError `ERR_MISSING_ARGUMENT`, `ERR_ARGUMENT_TYPE`, `ERR_TASK_TOO_LARGE`, `ERR_UNKNOWN_ARGUMENT`
 */
export function plainTask(cls: TaskClass, given: Values): PlainTask {
  const args: Values = {};
  const sizes: number[] = [];
  const read = (what: string, name: string): unknown =>
    reading('ERR_ARGUMENT_TYPE', `task class '${cls.name}': ${what} '${name}'`, () => given[name]);
  cls.flowNames.forEach((flow, f) => {
    const value = read('flow', flow);
    if (cls.lists?.[f] !== 1) {
      args[flow] = value;
      return;
    }
    const data = checkList(cls, flow, value, given);
    const { length } = data;
    for (let i = 0; i < length; i++) args[memberOf(flow, i)] = data[i];
    args[sizeOf(flow)] = length;
    sizes.push(length);
  });
  for (const name of cls.paramNames) args[name] = read('parameter', name);
  checkArgumentNames(cls, given);
  const data = cls.paramNames.filter((name) => isDatumOf(cls, name, args[name]));
  return { cls: shapeOf(cls, { sizes, data }), args };
}

/** A shape of a class. A class without lists, none of whose parameters is a datum, is its own shape. */
function shapeOf(cls: TaskClass, shape: Shape): TaskClass {
  if (cls.lists === undefined && shape.data.length === 0) return cls;
  const known = shapes.get(cls) ?? new Map<string, TaskClass>();
  shapes.set(cls, known);
  const key = JSON.stringify(shape);
  const found = known.get(key) ?? makeShape(cls, shape);
  known.set(key, found);
  return found;
}

/**
 * The shape of a class with as many data in its lists as the flows with these names, whose parameters are data if they are among
 * the names; no name makes the lists empty.
 */
export function shapeWith(cls: TaskClass, names: readonly string[]): TaskClass {
  const lists = cls.flowNames.filter((_, f) => cls.lists?.[f] === 1);
  return shapeOf(cls, {
    sizes: lists.map((list) => names.filter((name) => isMember(list, name)).length),
    data: cls.paramNames.filter((name) => names.includes(name)),
  });
}

function makeShape(cls: TaskClass, shape: Shape): TaskClass {
  const { sizes, data } = shape;
  const flows: Record<string, Flow> = {};
  const params: Record<string, ParameterType> = { ...cls.definition.params };
  let next = 0;
  cls.flowNames.forEach((name, f) => {
    const { list: _, ...flow } = cls.definition.flows[name];
    if (cls.lists?.[f] !== 1) {
      flows[name] = flow;
      return;
    }
    const size = sizes[next++];
    for (let i = 0; i < size; i++) flows[memberOf(name, i)] = flow;
    params[sizeOf(name)] = 'i32';
  });
  for (const name of data) {
    flows[name] = { element: DATUM_TYPES[params[name]] as ElementType, mode: 'read' };
    delete params[name];
  }
  const { body, explain } = cls.definition;
  const inLists = (values: Values): Values => grouped(cls, sizes, values);
  const declared = (values: Values): Values => withParameters(cls, data, values, inLists(values));
  const parts = {
    flows,
    params,
    ...(body === undefined ? {} : { body: withValues(body as never, declared, inLists) as never }),
    ...(explain === undefined
      ? {}
      : {
          explain: (code: number, task: { readonly params: Values; readonly data: Values }) =>
            explain(code, {
              // Only the device that ran the task has read the value of a datum.
              params: Object.fromEntries(
                cls.paramNames.map((name) => [name, task.params[name] ?? Number.NaN]),
              ) as never,
              data: inLists(task.data) as never,
            }),
        }),
  };
  return variantOf(cls, parts, data);
}

function contextIn(context: unknown, inLists: (values: Values) => Values): unknown {
  return context instanceof TaskContext ? context.grouped(inLists) : context;
}

/** A body that takes the arguments of a shape. It is asynchronous if the given one is declared so. */
function withValues(
  body: ShapeBody,
  declared: (values: Values) => Values,
  inLists: (values: Values) => Values,
): ShapeBody {
  if (!isAsyncFunction(body))
    return (args, context) => body(declared(args), contextIn(context, inLists));
  return async (args, context) => {
    await body(declared(args), contextIn(context, inLists));
  };
}

/** Adds the parameters of the class: a number, or the first element of its datum. */
function withParameters(
  cls: TaskClass,
  data: readonly string[],
  values: Values,
  into: Values,
): Values {
  for (const name of cls.paramNames)
    into[name] = data.includes(name) ? (values[name] as Float64Array)[0] : values[name];
  return into;
}

/** Data by the names of the class, from those by the names of a shape. */
function grouped(cls: TaskClass, sizes: readonly number[], values: Values): Values {
  const result: Values = {};
  let next = 0;
  cls.flowNames.forEach((flow, f) => {
    result[flow] =
      cls.lists?.[f] === 1
        ? Array.from({ length: sizes[next++] }, (_, i) => values[memberOf(flow, i)])
        : values[flow];
  });
  return result;
}

function checkList(cls: TaskClass, flow: string, value: unknown, args: Values): unknown[] {
  if (value === undefined) throw missing(cls, `an array of data for flow '${flow}'`, args);
  const of = `task class '${cls.name}': flow '${flow}'`;
  const data = reading('ERR_ARGUMENT_TYPE', of, () =>
    Array.isArray(value) ? (value.length > MOST_ARGUMENTS ? value : [...value]) : undefined,
  );
  if (data === undefined) {
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `${of} needs an array of data, not ${shown(value)}`,
    );
  }
  if (data.length > MOST_ARGUMENTS) {
    throw new HeadraceError(
      'ERR_TASK_TOO_LARGE',
      `${of} has ${data.length} data, and a task takes ${MOST_ARGUMENTS} data and parameters`,
      { task: cls.name, limit: MOST_ARGUMENTS, remedy: 'split the task' },
    );
  }
  return data;
}
