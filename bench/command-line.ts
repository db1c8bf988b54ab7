// Command lines of the benchmarks: `--help` prints the usage text; a wrong word ends with code 2 and a message.
import { type ParseArgsConfig, parseArgs } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;
type Values<O extends Options> = ReturnType<
  typeof parseArgs<{ options: O & { help: { type: 'boolean' } } }>
>['values'];

/** Ends the process with code 2: the command line is wrong. */
export function usageError(usage: string, message: string): never {
  process.stderr.write(`${message}\n\n${usage}`);
  process.exit(2);
}

/** Values of this process's command line; every benchmark has `--help`. */
export function commandLine<const O extends Options>(usage: string, options: O): Values<O> {
  let values: Values<O>;
  try {
    values = parseArgs({ options: { ...options, help: { type: 'boolean' } } }).values as Values<O>;
  } catch (error) {
    usageError(usage, (error as Error).message);
  }
  if ((values as { help?: boolean }).help === true) {
    process.stdout.write(usage);
    process.exit(0);
  }
  return values;
}

/** A positive number given as text, or the end of the process. */
export function positive(usage: string, name: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  return usageError(usage, `--${name} wants a positive number, not '${text}'`);
}
