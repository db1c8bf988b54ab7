// Arguments and options of one insertion: their possible mistakes, and the errors for them.
// Invariant: nothing here changes the graph.

import { HeadraceError } from '../../devices/errors.js';
import type { TaskHandle } from '../../devices/handles.js';
import { describeThrown } from '../../trace/thrown.js';
import { isInstance, optionsOf, reading, shown } from '../checks.js';
import { missing } from './argument-names.js';
import type { BoundClass } from './bound-class.js';
import { Datum, type DatumOwner } from './datum.js';

/** Names of the options of an insertion. */
export const TASK_OPTIONS: readonly string[] = ['priority', 'device', 'rank', 'after'];
/** The value that each kind of parameter accepts, by its number in `BoundClass.kinds`. */
const KIND_NAMES: readonly string[] = ['a number', 'an integer of 32 bits', 'true or false'];

function subject(bound: BoundClass): string {
  return `task class '${bound.row.name}'`;
}

/** The arguments of a task are not an object. */
export function badArguments(bound: BoundClass, args: unknown): HeadraceError {
  return new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `${subject(bound)} needs an object with its data and parameters, not ${shown(args)}`,
  );
}

/** @throws HeadraceError `ERR_OPTION` if the options are no object or have unknown names. */
export function checkTaskOptions(bound: BoundClass, options: unknown): void {
  optionsOf(options as object, TASK_OPTIONS, `${subject(bound)}: the options of a task`);
}

/** Reading the options threw `cause`. @throws HeadraceError `ERR_OPTION` that names the option, if it throws again */
export function unreadableOptions(
  bound: BoundClass,
  options: unknown,
  cause: unknown,
): HeadraceError {
  checkTaskOptions(bound, options);
  return cannotRead('ERR_OPTION', `${subject(bound)}: the options of a task`, cause);
}

/** Reading the arguments threw `cause`: an error of a check, or one of the program's own getters. Finds the argument. */
export function unreadable(
  bound: BoundClass,
  args: Readonly<Record<string, unknown>>,
  owner: DatumOwner,
  cause: unknown,
): HeadraceError {
  if (isInstance(cause, HeadraceError)) return cause;
  const { flowNames, paramNames } = bound.row;
  for (const [i, name] of [...flowNames, ...paramNames].entries()) {
    const what = i < flowNames.length ? 'flow' : 'parameter';
    let value: unknown;
    try {
      value = args[name];
    } catch (error) {
      return cannotRead('ERR_ARGUMENT_TYPE', `${subject(bound)}: ${what} '${name}'`, error);
    }
    if (what === 'flow' && !isInstance(value, Datum)) return badDatum(bound, i, value, args, owner);
  }
  return cannotRead('ERR_ARGUMENT_TYPE', `${subject(bound)}: its arguments`, cause);
}

function cannotRead(code: string, what: string, cause: unknown): HeadraceError {
  return new HeadraceError(code, `${what} cannot be read: ${describeThrown(cause)}`, { cause });
}

/** Priority of a task. @throws HeadraceError `ERR_OPTION` */
export function checkPriority(bound: BoundClass, priority: unknown): number {
  const value = priority as number;
  if ((typeof priority === 'number' ? value | 0 : Number.NaN) === value) return value;
  throw new HeadraceError(
    'ERR_OPTION',
    `${subject(bound)}: priority must be an integer of 32 bits, not ${shown(priority)}`,
  );
}

/** Rank of a task. @throws HeadraceError `ERR_NO_RANK` */
export function checkRank(bound: BoundClass, rank: unknown, ranks: number): number {
  const value = rank as number;
  if (Number.isInteger(rank) && value >= 0 && value < ranks) return value;
  throw new HeadraceError(
    'ERR_NO_RANK',
    `${subject(bound)}: there is no rank ${shown(rank)}: the number of ranks is ${ranks}`,
    { limit: ranks },
  );
}

/**
 * The handles in `after`, as a list of the runtime's own.
 * @throws HeadraceError `ERR_ARGUMENT_TYPE` when it is no array of handles, `ERR_UNKNOWN_TASK` when a handle names no
 *   task that was inserted.
 */
export function checkAfter(
  bound: BoundClass,
  after: unknown,
  isHandle: (handle: number) => boolean,
): TaskHandle[] {
  const given = reading('ERR_ARGUMENT_TYPE', `${subject(bound)}: after`, () =>
    Array.isArray(after) ? Array.from(after as unknown[]) : undefined,
  );
  if (given === undefined) {
    throw new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `${subject(bound)}: after needs an array of task handles, not ${shown(after)}`,
      { remedy: 'write after: [handle]' },
    );
  }
  const handles: TaskHandle[] = [];
  for (const [i, handle] of given.entries()) {
    if (typeof handle !== 'number') {
      throw new HeadraceError(
        'ERR_ARGUMENT_TYPE',
        `${subject(bound)}: after[${i}] must be a task handle, not ${shown(handle)}`,
        { remedy: 'use the handle that graph.insert returned' },
      );
    }
    if (!isHandle(handle)) {
      throw new HeadraceError(
        'ERR_UNKNOWN_TASK',
        `${subject(bound)}: after[${i}] is ${shown(handle)}, and no such task was inserted`,
        { remedy: 'use the handle that graph.insert returned' },
      );
    }
    handles.push(handle as TaskHandle);
  }
  return handles;
}

/** Reading the arguments ran code of the program that inserted tasks or closed data. */
export function reentered(bound: BoundClass): HeadraceError {
  return new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `${subject(bound)}: reading its arguments inserted tasks or closed data`,
    { remedy: 'compute the arguments before the call of graph.insert' },
  );
}

/** The task cannot use the value for flow `i`. */
export function badDatum(
  bound: BoundClass,
  i: number,
  datum: unknown,
  args: object,
  owner: DatumOwner,
): HeadraceError {
  const { name, flowNames } = bound.row;
  const flow = flowNames[i];
  if (datum === undefined) {
    return missing(bound.row, `a datum for flow '${flow}'`, args);
  }
  if (!isInstance(datum, Datum)) {
    return new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `task class '${name}': flow '${flow}' needs a datum, not ${shown(datum)}`,
      { remedy: 'make one with runtime.data(array)' },
    );
  }
  const of = `task class '${name}': datum '${datum.name}' for flow '${flow}'`;
  const error = unusable(of, datum, owner);
  if (error !== undefined) return error;
  if (datum.token !== bound.tokens[i]) {
    return new HeadraceError(
      'ERR_ARGUMENT_TYPE',
      `task class '${name}': flow '${flow}' takes ${bound.cls.elements[i]}, but datum '${datum.name}' is ${datum.element}`,
      { datum: datum.name },
    );
  }
  return new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `${of} is a copy of the object that runtime.data returned`,
    { datum: datum.name },
  );
}

/** A function of the graph that takes a datum got another value. */
export function noDatum(of: string, value: unknown): HeadraceError {
  return new HeadraceError('ERR_ARGUMENT_TYPE', `${of} takes a datum, not ${shown(value)}`, {
    remedy: 'make one with runtime.data(array)',
  });
}

/** The reason why tasks on data of `owner` cannot use a datum; the message calls the datum `of`. Undefined if they can. */
export function unusable(of: string, datum: Datum, owner: DatumOwner): HeadraceError | undefined {
  const where = { datum: datum.name };
  if (datum.owner !== owner)
    return new HeadraceError('ERR_FOREIGN_DATUM', `${of} belongs to another runtime`, where);
  return datum.closed ? new HeadraceError('ERR_DATUM_CLOSED', `${of} is closed`, where) : undefined;
}

/** Flow `i` reads a datum that has no value. */
export function neverWritten(bound: BoundClass, i: number, datum: Datum): HeadraceError {
  return new HeadraceError(
    'ERR_NEVER_WRITTEN',
    `${subject(bound)}: flow '${bound.row.flowNames[i]}' reads datum '${datum.name}', which nothing has written`,
    {
      datum: datum.name,
      remedy: 'insert a task that writes it first, or create it from an array',
    },
  );
}

/** Flows `i` and `j` are one datum, and one of them writes. */
export function duplicateDatum(
  bound: BoundClass,
  i: number,
  j: number,
  datum: string,
): HeadraceError {
  const names = bound.row.flowNames;
  return new HeadraceError(
    'ERR_DUPLICATE_DATUM',
    `${subject(bound)}: flows '${names[i]}' and '${names[j]}' are both datum '${datum}', and one writes it`,
    { datum },
  );
}

/** The value of parameter `i` is missing or of another kind. */
export function badParameter(
  bound: BoundClass,
  i: number,
  value: unknown,
  args: object,
): HeadraceError {
  const { name, paramNames } = bound.row;
  if (value === undefined) {
    return missing(bound.row, `parameter '${paramNames[i]}'`, args);
  }
  return new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `task class '${name}': parameter '${paramNames[i]}' cannot be ${shown(value)}: it takes ${KIND_NAMES[bound.kinds[i]]}`,
  );
}
