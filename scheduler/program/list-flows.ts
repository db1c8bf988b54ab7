// Flows that take an array of data.
//
// A task class with such flows has a shape for every number of data in its lists: a class whose flows are `parts[0]`,
// `parts[1]` and so on, made at the first insertion with these numbers. Everything behind the insertion (engine, ranks, plans,
// traces, errors) knows shapes only, so all tasks of one engine class have the same flows.
// After the declared parameters a shape has one per list, `parts.length`: kernels learn from it where a list ends.
import { isAsyncFunction } from 'node:util/types';
import { HeadraceError } from '../../devices/errors.js';
import { MOST_ARGUMENTS } from '../../devices/submission.js';
import { shown } from '../checks.js';
import { checkArgumentNames, missing } from './argument-names.js';
import { isMember, memberOf, sizeOf } from './member-names.js';
import { type Flow, type ParameterType, type TaskClass, variantOf } from './task-class.js';

type Values = Record<string, unknown>;

/** The shapes of each class, by the numbers of data in its lists. */
const shapes: WeakMap<TaskClass, Map<string, TaskClass>> = new WeakMap();

/** The class, and the arguments, of a task without lists. */
interface PlainTask {
  readonly cls: TaskClass;
  readonly args: Values;
}

/**
 * The shape of a task with lists, and its arguments by the shape's names.
 * @throws HeadraceError `ERR_MISSING_ARGUMENT`, `ERR_ARGUMENT_TYPE`, `ERR_TASK_TOO_LARGE`, `ERR_UNKNOWN_ARGUMENT`
 */
export function withoutLists(cls: TaskClass, given: Values): PlainTask {
  const args: Values = {};
  const sizes: number[] = [];
  cls.flowNames.forEach((flow, f) => {
    const value = given[flow];
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
  for (const name of cls.paramNames) args[name] = given[name];
  checkArgumentNames(cls, given);
  return { cls: shapeOf(cls, sizes), args };
}

/** The shape of a class with so many data in its lists. A class without lists is its own shape. */
function shapeOf(cls: TaskClass, sizes: readonly number[]): TaskClass {
  if (cls.lists === undefined) return cls;
  const known = shapes.get(cls) ?? new Map<string, TaskClass>();
  shapes.set(cls, known);
  const key = sizes.join();
  const shape = known.get(key) ?? makeShape(cls, sizes);
  known.set(key, shape);
  return shape;
}

/** The shape of a class with as many data in its lists as the flows with these names; none makes the lists empty. */
export function shapeWith(cls: TaskClass, names: readonly string[]): TaskClass {
  const lists = cls.flowNames.filter((_, f) => cls.lists?.[f] === 1);
  return shapeOf(
    cls,
    lists.map((list) => names.filter((name) => isMember(list, name)).length),
  );
}

function makeShape(cls: TaskClass, sizes: readonly number[]): TaskClass {
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
  const { body, explain } = cls.definition;
  const inLists = (values: Values): Values => grouped(cls, sizes, values);
  return variantOf(cls, {
    flows,
    params,
    ...(body === undefined ? {} : { body: withLists(body as never, inLists) }),
    ...(explain === undefined
      ? {}
      : {
          explain: (code, task) =>
            explain(code, {
              params: Object.fromEntries(cls.paramNames.map((name) => [name, task.params[name]])),
              data: inLists(task.data) as never,
            }),
        }),
  });
}

/** A body that takes the arguments of a shape. It is asynchronous if the given one is declared so. */
function withLists(
  body: (args: Values) => void | PromiseLike<void>,
  inLists: (values: Values) => Values,
): (args: Values) => void | PromiseLike<void> {
  if (!isAsyncFunction(body)) return (args) => body(inLists(args));
  return async (args) => {
    await body(inLists(args));
  };
}

/** Values by the names of the class, from those by the names of a shape. */
function grouped(cls: TaskClass, sizes: readonly number[], values: Values): Values {
  const result: Values = {};
  let next = 0;
  cls.flowNames.forEach((flow, f) => {
    result[flow] =
      cls.lists?.[f] === 1
        ? Array.from({ length: sizes[next++] }, (_, i) => values[memberOf(flow, i)])
        : values[flow];
  });
  for (const name of cls.paramNames) result[name] = values[name];
  return result;
}

function checkList(cls: TaskClass, flow: string, value: unknown, args: Values): unknown[] {
  if (value === undefined) throw missing(cls, `an array of data for flow '${flow}'`, args);
  if (!Array.isArray(value)) {
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `task class '${cls.name}': flow '${flow}' needs an array of data, not ${shown(value)}`,
    );
  }
  if (value.length > MOST_ARGUMENTS) {
    throw new HeadraceError(
      'ERR_TASK_TOO_LARGE',
      `task class '${cls.name}': flow '${flow}' has ${value.length} data, and a task takes ${MOST_ARGUMENTS} data and parameters`,
      { task: cls.name, limit: MOST_ARGUMENTS, remedy: 'split the task' },
    );
  }
  return value;
}
