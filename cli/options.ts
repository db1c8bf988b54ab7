// Command-line options as typed descriptions: one table gives the parser, the types and the usage text.
// Invariant: nothing is clamped or ignored; every wrong word ends in a UsageError that names the option, the expected
// value and the given one.
import { parseArgs } from 'node:util';
import { HeadraceError } from '../scheduler/errors.js';
import { parseBytes } from '../scheduler/program/options.js';

/** A wrong command line: exit code 2, with the usage text of the command concerned. */
export class UsageError extends HeadraceError {
  /** Usage text of the command; '' where the error names none. */
  readonly usage: string;

  constructor(message: string, usage = '') {
    super('ERR_USAGE', message);
    this.name = 'UsageError';
    this.usage = usage;
  }
}

/** One option; `T` is the type of its value. */
interface Option<T> {
  /** The placeholder of the value in the usage text; undefined: the option takes none. */
  readonly metavar: string | undefined;
  /** A letter that stands for the name, after one dash. */
  readonly short?: string | undefined;
  readonly help: string;
  /** Turns the text into the value, or gives the expected form. */
  readonly parse: (text: string) => { readonly value: T } | { readonly expected: string };
  /** Value without the option. */
  readonly fallback: T;
  /** The form of that value in the usage text; undefined: none. */
  readonly shown: string | undefined;
}

/** A command's options by name, without the dashes. */
type OptionTable = Readonly<Record<string, Option<unknown>>>;

/** The values of a table of options. */
export type OptionValues<S extends OptionTable> = {
  readonly [K in keyof S]: S[K] extends Option<infer T> ? T : never;
};

interface Text {
  readonly help: string;
  /** Shown in the usage text instead of the fallback, if the fallback needs words. */
  readonly shown?: string;
}

/** A whole number within limits. */
export function integer<F extends number | undefined>(
  spec: Text & { readonly min: number; readonly max: number; readonly fallback: F },
): Option<number | F> {
  const {
    min,
    max,
    fallback,
    help,
    shown = fallback === undefined ? undefined : String(fallback),
  } = spec;
  return {
    metavar: 'N',
    help,
    fallback,
    shown,
    parse(text) {
      const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
      const isInside = value >= min && value <= max;
      return isInside ? { value } : { expected: `a whole number from ${min} to ${max}` };
    },
  };
}

/** An amount of memory; the value is in bytes. */
export function size(spec: Text & { readonly fallback: string }): Option<number> {
  const parse = (text: string): { value: number } | { expected: string } => {
    const expected = 'a size such as 24MiB, 1.5GiB or 4096';
    try {
      const value = parseBytes(text, 'size');
      return value >= 1 && Number.isSafeInteger(value) ? { value } : { expected };
    } catch {
      return { expected };
    }
  };
  const { help, fallback, shown = fallback } = spec;
  return { metavar: 'SIZE', help, fallback: parseBytes(fallback, 'size'), shown, parse };
}

/** One of a few words. */
export function choice<const W extends string, F extends W | undefined>(
  words: readonly W[],
  spec: Text & { readonly fallback: F },
): Option<W | F> {
  return {
    metavar: words.join('|'),
    help: spec.help,
    fallback: spec.fallback,
    shown: spec.shown ?? spec.fallback,
    parse(text) {
      const value = words.find((word) => word === text);
      return value === undefined ? { expected: words.join(' or ') } : { value };
    },
  };
}

/** A file name or other text; undefined when not given. */
export function text(
  spec: Text & { readonly metavar: string; readonly short?: string },
): Option<string | undefined> {
  return {
    metavar: spec.metavar,
    short: spec.short,
    help: spec.help,
    fallback: undefined,
    shown: spec.shown,
    parse: (value) => (value === '' ? { expected: 'a value that is not empty' } : { value }),
  };
}

/** An option without a value. */
export function flag(spec: Text): Option<boolean> {
  return {
    metavar: undefined,
    help: spec.help,
    fallback: false,
    shown: undefined,
    parse: () => ({ value: true }),
  };
}

/**
 * Reads the options of a command. Positional arguments are an error; the last of repeated options counts.
 *
 * @throws UsageError with the usage text of the command
 */
export function parseOptions<S extends OptionTable>(
  argv: readonly string[],
  table: S,
  usage: string,
): OptionValues<S> {
  const values = new Map<string, unknown>(
    Object.entries(table).map(([name, option]) => [name, option.fallback]),
  );
  for (const [name, given] of Object.entries(split(argv, table, usage))) {
    const option = table[name];
    const result = option.parse(given);
    if ('expected' in result) {
      throw new UsageError(
        `--${name} expects ${result.expected}, found ${JSON.stringify(given)}`,
        usage,
      );
    }
    values.set(name, result.value);
  }
  return Object.fromEntries(values) as OptionValues<S>;
}

/** How many of the first words are options of the table and their values. */
export function leadingOptions(argv: readonly string[], table: OptionTable): number {
  let count = 0;
  while (count < argv.length && argv[count].startsWith('-')) {
    const word = argv[count];
    const takesNext = Object.entries(table).some(
      ([name, { metavar, short }]) =>
        metavar !== undefined && (word === `--${name}` || word === `-${short}`),
    );
    count += takesNext ? 2 : 1;
  }
  return Math.min(count, argv.length);
}

/** The given options and their texts ('' for flags). */
function split(argv: readonly string[], table: OptionTable, usage: string): Record<string, string> {
  const { tokens } = parseArgs({
    args: [...argv],
    strict: false,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(table).map(([name, option]) => [
        name,
        {
          type: option.metavar === undefined ? ('boolean' as const) : ('string' as const),
          ...(option.short === undefined ? {} : { short: option.short }),
        },
      ]),
    ),
  });
  const given: Record<string, string> = {};
  for (const token of tokens) {
    if (token.kind === 'positional') {
      throw new UsageError(`unexpected argument ${JSON.stringify(token.value)}`, usage);
    }
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(table, token.name) ? table[token.name] : undefined;
    if (option === undefined) {
      const near = nearest(token.name, Object.keys(table));
      const hint = near === undefined ? '' : `, did you mean --${near}?`;
      throw new UsageError(`unknown option ${token.rawName}${hint}`, usage);
    }
    if (option.metavar === undefined && token.value !== undefined) {
      throw new UsageError(`--${token.name} takes no value`, usage);
    }
    const isMissing =
      token.value === undefined || (!token.inlineValue && token.value.startsWith('--'));
    if (option.metavar !== undefined && isMissing) {
      throw new UsageError(`--${token.name} needs a value`, usage);
    }
    given[token.name] = token.value ?? '';
  }
  return given;
}

/** The known word at most two edits away from a mistyped one. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const near = known
    .map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
    .filter(({ candidate, distance }) => distance <= 2 && distance < candidate.length)
    .sort((a, b) => a.distance - b.distance);
  return near[0]?.candidate;
}

/** Insertions, deletions and replacements that turn a into b (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j] + 1, next[j - 1] + 1));
    }
    row = next;
  }
  return row[b.length];
}

/** The options of a usage text, one per line, aligned. */
export function describeOptions(table: OptionTable): string {
  const lines = Object.entries(table).map(([name, option]) => ({
    left:
      (option.short === undefined ? '' : `-${option.short}, `) +
      (option.metavar === undefined ? `--${name}` : `--${name} ${option.metavar}`),
    right: option.shown === undefined ? option.help : `${option.help} [${option.shown}]`,
  }));
  const width = Math.max(...lines.map(({ left }) => left.length));
  return lines.map(({ left, right }) => `  ${left.padEnd(width)}  ${right}\n`).join('');
}
