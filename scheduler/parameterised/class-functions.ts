// The functions that the program gives for a class, and what is wrong with one of them. A walk calls them as they are, several times
// per task. If it fails, this file calls all of them again, which are pure, and finds the one that throws or returns what it must
// not: so the error names the class, the function and the indices, and no walk pays for that.

import { HeadraceError } from '../../devices/errors.js';
import { describeThrown } from '../../trace/thrown.js';
import { isInstance, shown } from '../checks.js';
import { Datum } from '../program/datum.js';
import type { ElementType } from '../program/element-type.js';
import { hasParts } from '../program/parts/ended-parts.js';
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
  /** A mistake in a value that fits, in the words behind "returns". */
  readonly mistakeIn?: (value: unknown) => Mistake | undefined;
}

/** A mistake with the code of its error. */
export interface Mistake {
  readonly code: string;
  readonly words: string;
}

type ReturnedKind =
  | 'source'
  | 'sources'
  | 'targets'
  | 'range'
  | 'steady'
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
  steady: {
    words: 'a range in steps of 1, such as range(2, 10)',
    fits: (value) => value instanceof Range && value.step === 1,
  },
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
  let found: HeadraceError | undefined;
  let count = 0;
  for (const cls of classes) {
    const { indexNames, rangeFunctions, functions } = cls;
    const ranges = rangeFunctions.map((range, n) => (of: Indices): Range => {
      found ??= mistakeAt(cls, range, of, n);
      return found === undefined ? (range.call(of, 0) as Range) : NO_INDICES;
    });
    const all = new AllIndices(indexNames, ranges);
    for (let of = all.next(); of !== undefined; of = all.next()) {
      for (const each of functions) found ??= mistakeAt(cls, each, of, indexNames.length);
      if (found !== undefined || ++count > MOST_TASKS) return found;
    }
    if (found !== undefined) return found;
  }
  return undefined;
}

const NO_INDICES = new Range(0, 0);

/** The mistake of a function at the first `depth` indices. */
function mistakeAt(
  { name, indexNames }: Owner,
  { what, call, returned }: ClassFunction,
  of: Indices,
  depth: number,
): HeadraceError | undefined {
  const task = depth === 0 ? `class '${name}'` : taskName(name, indexNames.slice(0, depth), of);
  try {
    const mistake = mistakeOf(returned, call(of, 0));
    if (mistake === undefined) return undefined;
    const { code, words } = mistake;
    return new HeadraceError(code, `${what} of ${task} returns ${words}`, { task });
  } catch (cause) {
    // An error of Headrace, such as ERR_NO_TILE, keeps its code.
    const code = isInstance(cause, HeadraceError) ? cause.code : 'ERR_GRAPH_CLASS';
    const text = `${what} of ${task} failed: ${describeThrown(cause)}`;
    return new HeadraceError(code, text, { task, cause });
  }
}

function mistakeOf(
  { code = 'ERR_GRAPH_CLASS', words, fits, mistakeIn }: Returned,
  value: unknown,
): Mistake | undefined {
  if (fits(value)) return mistakeIn?.(value);
  return { code, words: `${shown(value)}; it must be ${words}` };
}

/** What a flow with elements of that type may come from. `takesParts`: the tasks have lists, and are inserted as by `Graph.insert`. */
export function sourcesOf(element: ElementType, isList: boolean, takesParts: boolean): Returned {
  const mistakeIn = (value: unknown): Mistake | undefined =>
    (isList ? (value as readonly unknown[]) : [value])
      .map((one) => (one instanceof Datum ? mistakeInDatum(one, element, takesParts) : undefined))
      .find((mistake) => mistake !== undefined);
  return { ...(isList ? RETURNED.sources : RETURNED.source), mistakeIn };
}

function mistakeInDatum(
  datum: Datum,
  element: ElementType,
  takesParts: boolean,
): Mistake | undefined {
  if (datum.closed)
    return { code: 'ERR_DATUM_CLOSED', words: `datum '${datum.name}', which is closed` };
  if (!takesParts && (hasParts(datum.view) || datum.ofBody !== undefined)) {
    const { name, whole } = datum;
    const what = whole === undefined ? `datum '${name}', which has parts` : `part '${name}'`;
    return { code: 'ERR_PART', words: `${what}; a parameterised graph does not take parts` };
  }
  if (datum.element === element) return undefined;
  const words = `datum '${datum.name}' of ${datum.element}, and the flow takes ${element}`;
  return { code: 'ERR_ARGUMENT_TYPE', words };
}
