// Compares the arguments of an insertion with those that are expected. Each class has functions of its own, which name its arguments in
// their source: V8 then reads them at a fixed place of the object, while a name out of a list is looked up each time. That is most of
// what a comparison costs.
import type { Datum } from '../program/datum.js';
import type { TaskClass } from '../program/task-class.js';

type Names = Pick<TaskClass, 'flowNames' | 'paramNames'>;

/** A parameter that is not open. */
export const CLOSED = 0;

/** Notes the value of an open parameter. False if it has another kind. */
export type TakeOpen = (value: unknown, place: number) => boolean;

export interface SameArguments {
  /** Whether the arguments have the data from place `at` on. */
  readonly data: (
    named: Readonly<Record<string, unknown>>,
    data: readonly Datum[],
    at: number,
  ) => boolean;
  /** Whether the arguments have the values from place `at` on. Those of open parameters are given to `take`. */
  readonly parameters: (
    named: Readonly<Record<string, unknown>>,
    given: readonly (number | boolean)[],
    open: Uint8Array,
    at: number,
    take: TakeOpen,
  ) => boolean;
}

const compiled: WeakMap<Names, SameArguments> = new WeakMap();

/** The functions of a class. */
export function sameArguments(cls: Names): SameArguments {
  const known = compiled.get(cls);
  if (known !== undefined) return known;
  let made: SameArguments;
  try {
    made = compile(cls);
  } catch {
    // The process runs no code that is made of text (`node --disallow-code-generation-from-strings`).
    made = byName(cls);
  }
  compiled.set(cls, made);
  return made;
}

function compile({ flowNames, paramNames }: Names): SameArguments {
  const field = (name: string): string => `named[${JSON.stringify(name)}]`;
  const all = (terms: readonly string[]): string => `return ${terms.join(' && ') || 'true'};`;
  const flows = flowNames.map((name, i) => `${field(name)} === data[at + ${i}]`);
  const values = paramNames.map((name, i) => {
    const place = `at + ${i}`;
    const same = `Object.is(${field(name)}, given[${place}])`;
    return `(open[${place}] === ${CLOSED} ? ${same} : take(${field(name)}, ${place}))`;
  });
  return {
    data: new Function('named', 'data', 'at', all(flows)) as SameArguments['data'],
    parameters: new Function(
      ...['named', 'given', 'open', 'at', 'take'],
      all(values),
    ) as SameArguments['parameters'],
  };
}

/** The same functions, which look the names up. */
export function byName({ flowNames, paramNames }: Names): SameArguments {
  return {
    data: (named, data, at) => flowNames.every((name, i) => named[name] === data[at + i]),
    parameters: (named, given, open, at, take) =>
      paramNames.every((name, i) =>
        open[at + i] === CLOSED ? Object.is(named[name], given[at + i]) : take(named[name], at + i),
      ),
  };
}
