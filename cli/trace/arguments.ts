// Words of a trace command: options by a table for node:util's parseArgs, and the number of files.
// Every wrong word ends in a UsageError with the usage of the command.
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { describeThrown } from '../../trace/thrown.js';
import { nearest, UsageError } from '../options.js';

/** Options as `parseArgs` takes them. */
type TraceOptions = NonNullable<ParseArgsConfig['options']>;

/** The words of a command line: files and option values (string, true, or a list for repeated options). */
export interface TraceArguments {
  readonly files: readonly string[];
  readonly text: (name: string) => string | undefined;
  readonly list: (name: string) => readonly string[];
  readonly flag: (name: string) => boolean;
}

/**
 * Parses the words after a subcommand. `files` are the least and the most positional words.
 * Throws UsageError with `usage`.
 */
export function parseTraceArguments(
  argv: readonly string[],
  options: TraceOptions,
  files: readonly [number, number],
  usage: string,
): TraceArguments {
  const known: TraceOptions = { ...options, help: { type: 'boolean' } };
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args: [...argv], options: known, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(explain(error, known), usage);
  }
  const { values, positionals } = parsed;
  const flag = (name: string): boolean => values[name] === true;
  if (!flag('help')) {
    if (positionals.length < files[0]) {
      throw new UsageError(
        files[0] === 1 ? 'a trace file is needed' : `${files[0]} trace files are needed`,
        usage,
      );
    }
    if (positionals.length > files[1]) {
      throw new UsageError(`unexpected argument ${JSON.stringify(positionals[files[1]])}`, usage);
    }
  }
  return {
    files: positionals,
    flag,
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    list: (name) => (Array.isArray(values[name]) ? (values[name] as string[]) : []),
  };
}

/** A whole number within limits, or undefined when the option was not given. */
export function wholeNumber(
  given: TraceArguments,
  name: string,
  limits: readonly [number, number],
  usage: string,
): number | undefined {
  const text = given.text(name);
  if (text === undefined) return undefined;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= limits[0] && value <= limits[1]) return value;
  throw new UsageError(
    `--${name} expects a whole number from ${limits[0]} to ${limits[1]}, found ${JSON.stringify(text)}`,
    usage,
  );
}

/** One of a few words, or the fallback when the option was not given. */
export function oneOf<const W extends string>(
  given: TraceArguments,
  name: string,
  words: readonly W[],
  fallback: NoInfer<W>,
  usage: string,
): W {
  const text = given.text(name);
  if (text === undefined) return fallback;
  const found = words.find((word) => word === text);
  if (found !== undefined) return found;
  const near = nearest(text, words);
  throw new UsageError(
    `--${name} expects ${words.join(' or ')}, found ${JSON.stringify(text)}` +
      (near === undefined ? '' : `; did you mean ${near}?`),
    usage,
  );
}

// parseArgs' own words, shortened, with the nearest known option.
function explain(error: unknown, known: TraceOptions): string {
  const message = describeThrown(error);
  const option = /'(-[^\s'<]+)/.exec(message)?.[1];
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' && option !== undefined) {
    const near = nearest(option.replace(/^-+/, ''), Object.keys(known));
    return `unknown option ${option}${near === undefined ? '' : `, did you mean --${near}?`}`;
  }
  return message.split('. ')[0];
}
