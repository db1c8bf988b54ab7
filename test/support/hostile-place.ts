// A place in a public call for a value that may be wrong, and how tests write such places down.
import {
  type Datum,
  type Flow,
  type Plan,
  type Runtime,
  readWrite,
  type TaskClass,
  task,
} from '../../index.js';

/** A value in place of one of another type. */
export const as = (value: unknown): never => value as never;

/** What the places use. */
export interface World {
  readonly runtime: Runtime;
  /** Four numbers, two rows. */
  readonly x: Datum<'f64'>;
  readonly y: Datum<'f64'>;
  /** x += y with the open parameter `n`. */
  readonly plan: Plan;
  /** A file with it. */
  readonly file: string;
  /** A datum without parts. */
  readonly z: Datum<'f64'>;
}

/** One place. */
export interface Place {
  readonly call: string;
  readonly option: string;
  /** In every message about a wrong value there. */
  readonly mentions: RegExp;
  readonly give: (world: World, value: unknown) => unknown;
}

export type Give = Place['give'];

export function closing(give: (world: World, value: unknown) => { close(): unknown }): Give {
  return (world, value) => give(world, value).close();
}

/** A place, or what messages mention in place of its name and the place. */
type Named = Give | readonly [mentions: RegExp, give: Give];

/** The places of one call, by the names of options. Messages mention the name unless other words are given. */
export function places(call: string, gives: Readonly<Record<string, Named>>): Place[] {
  return Object.entries(gives).map(([option, named]) => {
    if (typeof named === 'function')
      return { call, option, mentions: new RegExp(escaped(option)), give: named };
    const [mentions, give] = named;
    return { call, option, mentions, give };
  });
}

function escaped(text: string): string {
  return text.replace(/[[\]().]/g, '\\$&');
}

/** The same place for each option. */
export function each(
  names: readonly string[],
  give: (name: string) => Named,
): Record<string, Named> {
  return Object.fromEntries(names.map((name) => [name, give(name)]));
}

/** A class with parameters of all types. */
export const wide: TaskClass<
  { readonly to: Flow<'f64', 'readWrite'> },
  { readonly real: 'f64'; readonly whole: 'i32'; readonly yes: 'bool' }
> = task({
  name: 'wide',
  flows: { to: readWrite('f64') },
  params: { real: 'f64', whole: 'i32', yes: 'bool' },
  body: () => {},
});
