// Compares the arguments of an insertion with those that are expected. Each class has functions of its own, which name its arguments in
// their source: V8 then reads them at a fixed place of the object, while a name out of a list is looked up each time. That is most of
// what a comparison costs.
import type { Datum } from '../program/datum.js';
import type { TaskClass } from '../program/task-class.js';

type Names = Pick<TaskClass, 'flowNames' | 'paramNames'>;

/** A parameter that is not open. */
export const CLOSED = 0;

/** Arguments of tasks, one task after the other. */
export interface ExpectedArguments {
  readonly data: readonly Datum[];
  /** Values of parameters, and what they are: CLOSED, or open. */
  readonly given: readonly (number | boolean)[];
  readonly open: Uint8Array;
}

/** Notes the value of an open parameter. False if it has another kind. */
export type TakeOpen = (value: unknown, place: number) => boolean;

/** Whether arguments are those from places `flowAt` and `paramAt` on. The values of open parameters are given to `take`. */
type IsSame = (
  named: Readonly<Record<string, unknown>>,
  expected: ExpectedArguments,
  flowAt: number,
  paramAt: number,
  take: TakeOpen,
) => boolean;

export interface SameArguments {
  /** The data, which nobody has closed, and the parameters. */
  readonly all: IsSame;
  readonly parameters: IsSame;
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
  const flows = flowNames.map((name, i) => `${field(name)} === data[flowAt + ${i}]`);
  const areOpen = flowNames.map((_, i) => `data[flowAt + ${i}].token !== undefined`);
  const values = paramNames.map((name, i) => {
    const place = `paramAt + ${i}`;
    const same = `Object.is(${field(name)}, given[${place}])`;
    return `(open[${place}] === ${CLOSED} ? ${same} : take(${field(name)}, ${place}))`;
  });
  const all = (terms: readonly string[]): IsSame =>
    new Function(
      ...['named', '{ data, given, open }', 'flowAt', 'paramAt', 'take'],
      `return ${terms.join(' && ') || 'true'};`,
    ) as IsSame;
  return { all: all([...flows, ...areOpen, ...values]), parameters: all(values) };
}

/** The same functions, which look the names up. */
export function byName({ flowNames, paramNames }: Names): SameArguments {
  const parameters: IsSame = (named, { given, open }, _, paramAt, take) =>
    paramNames.every((name, i) => {
      const place = paramAt + i;
      if (open[place] !== CLOSED) return take(named[name], place);
      return Object.is(named[name], given[place]);
    });
  const all: IsSame = (named, expected, flowAt, paramAt, take) => {
    const { data } = expected;
    return (
      flowNames.every((name, i) => named[name] === data[flowAt + i]) &&
      flowNames.every((_, i) => data[flowAt + i].token !== undefined) &&
      parameters(named, expected, flowAt, paramAt, take)
    );
  };
  return { all, parameters };
}
