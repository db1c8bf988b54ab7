// Command lines of the scripts: `--help` prints the usage text; a wrong word ends with code 2 and a message.
import { parseArgs } from 'node:util';

/** Ends the process with code 2 and a message: the command line is wrong. */
export function usageError(usage, message) {
  process.stderr.write(`${message}\n\n${usage}`);
  process.exit(2);
}

/**
 * Values and further words of this process's command line; every script has `--help`.
 *
 * @param {string} usage
 * @param {import('node:util').ParseArgsConfig['options']} [options]
 * @param {{ words?: boolean, args?: string[] }} [more] words: further words are allowed
 */
export function commandLine(usage, options = {}, more = {}) {
  let parsed;
  try {
    parsed = parseArgs({
      args: more.args ?? process.argv.slice(2),
      options: { ...options, help: { type: 'boolean' } },
      allowPositionals: more.words === true,
    });
  } catch (error) {
    usageError(usage, error.message);
  }
  if (parsed.values.help === true) {
    process.stdout.write(usage);
    process.exit(0);
  }
  return parsed;
}

/** Returns a positive number given as text, or ends the process. */
export function positive(usage, name, text) {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  return usageError(usage, `--${name} wants a positive number, not '${text}'`);
}

/** Returns a whole positive number given as text, or ends the process. */
export function whole(usage, name, text) {
  const value = positive(usage, name, text);
  if (Number.isSafeInteger(value)) return value;
  return usageError(usage, `--${name} wants a whole number, not '${text}'`);
}
