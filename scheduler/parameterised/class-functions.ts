// The functions that the program gives for a class, and what is wrong with one of them. A walk calls them as they are, several times
// per task. If it fails, this file calls all of them again, which are pure, and finds the one that throws or returns what it must
// not: so the error names the class, the function and the indices, and no walk pays for that.

import { HeadraceError } from '../../devices/errors.js';
import { describeThrown } from '../../trace/thrown.js';
import { isInstance, shown } from '../checks.js';
import { Datum } from '../program/datum.js';
import { AllIndices } from './all-indices.js';
import { ControlEnd, FlowEnd, type Indices, Temporary } from './ends.js';
import { Range } from './range.js';
import { taskName } from './task-key.js';

/** Tasks of an instance that are looked at. */
const MOST_TASKS = 100_000;

/** What a function may return. */
export interface Returned {
  /** Code of the error about another value; default `ERR_GRAPH_CLASS`. */
  readonly code?: string;
  readonly words: string;
  readonly fits: (value: unknown) => boolean;
}

type ReturnedKind =
  | 'source'
  | 'sources'
  | 'targets'
  | 'range'
  | 'own'
  | 'number'
  | 'integer'
  | 'place'
  | 'datum'
  | 'device'
  | 'controls';

const EDGE = 'ERR_GRAPH_EDGE';

/** What the functions may return. */
export const RETURNED: Readonly<Record<ReturnedKind, Returned>> = {
  source: { code: EDGE, words: 'a datum, the flow of another task or a temporary', fits: isSource },
  sources: {
    code: EDGE,
    words: 'an array of data and flows of other tasks',
    fits: (value) => Array.isArray(value) && value.every(isSource),
  },
  targets: { code: EDGE, words: 'flows of other tasks and data', fits: areTargets },
  range: { words: 'a range, such as range(0, 10)', fits: (value) => value instanceof Range },
  own: {
    words: 'a range or an array of integers',
    fits: (value) =>
      value instanceof Range ||
      (Array.isArray(value) && value.every((one) => Number.isSafeInteger(one))),
  },
  number: {
    words: 'a finite number',
    fits: (value) => Number.isFinite(value),
  },
  integer: {
    words: 'an integer of 32 bits',
    fits: (value) => typeof value === 'number' && (value | 0) === value,
  },
  place: {
    words: 'a datum or a rank',
    fits: (value) => value instanceof Datum || Number.isInteger(value),
  },
  datum: { words: 'a datum', fits: (value) => value instanceof Datum },
  device: {
    words: "undefined, 'host' or the number of a GPU",
    fits: (value) => value === undefined || value === 'host' || Number.isInteger(value),
  },
  controls: { code: EDGE, words: 'control flows of other tasks', fits: areControls },
};

function hasIndices({ indices }: FlowEnd | ControlEnd): boolean {
  return typeof indices === 'object' && indices !== null;
}

function isSource(value: unknown): boolean {
  if (value instanceof FlowEnd) return hasIndices(value);
  return value instanceof Datum || value instanceof Temporary;
}

function areTargets(value: unknown): boolean {
  if (value instanceof FlowEnd) return hasIndices(value);
  if (value === undefined || value === false || value instanceof Datum) return true;
  return Array.isArray(value) && value.every(areTargets);
}

function areControls(value: unknown): boolean {
  if (value instanceof ControlEnd) return hasIndices(value);
  if (value === undefined || value === false) return true;
  return Array.isArray(value) && value.every(areControls);
}

/** The class whose functions they are. */
interface Owner {
  readonly name: string;
  readonly indexNames: readonly string[];
}

/** A function of a class, by the name that messages give it. */
export interface ClassFunction {
  readonly what: string;
  readonly call: (of: Indices, rank: number) => unknown;
  readonly returned: Returned;
}

/** @throws HeadraceError `ERR_GRAPH_CLASS` unless the value is a function; `what` names it in the message. */
export function checkFunction<T>({ name }: Owner, given: unknown, what: string): T {
  if (typeof given === 'function') return given as T;
  throw new HeadraceError(
    'ERR_GRAPH_CLASS',
    `class '${name}' needs a function as its ${what}, not ${shown(given)}`,
    { task: name },
  );
}

/** A class with all its functions. */
interface Looked extends Owner {
  /** By position of the index. */
  readonly rangeFunctions: readonly ClassFunction[];
  readonly functions: readonly ClassFunction[];
}

/**
 * The mistake of the first function that throws or returns what it must not; undefined if there is none. The search ends after
 * 100 000 tasks.
 */
export function functionMistake(classes: readonly Looked[]): HeadraceError | undefined {
  let count = 0;
  try {
    for (const cls of classes) {
      const { indexNames, rangeFunctions, functions } = cls;
      const ranges = rangeFunctions.map(
        (range, n) => (of: Indices) => checked(cls, range, of, n) as Range,
      );
      const all = new AllIndices(indexNames, ranges);
      for (let of = all.next(); of !== undefined; of = all.next()) {
        for (const each of functions) checked(cls, each, of, indexNames.length);
        if (++count > MOST_TASKS) return undefined;
      }
    }
  } catch (error) {
    if (error instanceof FunctionMistake) return error;
    throw error;
  }
  return undefined;
}

class FunctionMistake extends HeadraceError {}

/** The value of a function at the first `depth` indices. @throws FunctionMistake */
function checked(
  { name, indexNames }: Owner,
  { what, call, returned: { code = 'ERR_GRAPH_CLASS', words, fits } }: ClassFunction,
  of: Indices,
  depth: number,
): unknown {
  const task = depth === 0 ? `class '${name}'` : taskName(name, indexNames.slice(0, depth), of);
  let value: unknown;
  let isFit: boolean;
  try {
    value = call(of, 0);
    isFit = fits(value);
  } catch (cause) {
    // An error of Headrace, such as ERR_NO_TILE, keeps its code.
    const known = isInstance(cause, HeadraceError) ? cause.code : 'ERR_GRAPH_CLASS';
    const text = `${what} of ${task} failed: ${describeThrown(cause)}`;
    throw new FunctionMistake(known, text, { task, cause });
  }
  if (isFit) return value;
  throw new FunctionMistake(
    code,
    `${what} of ${task} returns ${shown(value)}; it must be ${words}`,
    {
      task,
    },
  );
}
