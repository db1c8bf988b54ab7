// Checks of values that a program passes in. A value may be of any type, whatever its declared type says.
// Invariant: these checks run no code of the program, except getters and traps of its own objects.
import { HeadraceError } from '../devices/errors.js';

const MOST_LETTERS = 40;

/** A short text for a value of the program, for messages. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.length > MOST_LETTERS ? `'${value.slice(0, MOST_LETTERS)}...'` : `'${value}'`;
    case 'bigint':
      return `${value}n`;
    case 'function':
      return 'a function';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? 'an array' : 'an object';
    default:
      return String(value);
  }
}

/**
 * Checks an object of options: its type and the names of its properties.
 * @throws HeadraceError `ERR_OPTION`; `what` names the object in the message.
 */
export function checkOptions(given: unknown, known: readonly string[], what: string): void {
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    throw new HeadraceError('ERR_OPTION', `${what} must be an object, not ${shown(given)}`);
  }
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new HeadraceError('ERR_OPTION', `${what} have no '${unknown}'`, {
    remedy: `the options are ${known.join(', ')}`,
  });
}

/** @throws HeadraceError `ERR_OPTION` unless the value is one of those allowed; `what` names it in the message. */
export function oneOf<T extends string>(value: unknown, what: string, allowed: readonly T[]): T {
  if (allowed.includes(value as T)) return value as T;
  throw new HeadraceError(
    'ERR_OPTION',
    `${what} must be one of ${allowed.join(', ')}, not ${shown(value)}`,
  );
}

/** @throws HeadraceError `ERR_OPTION` unless the value is a text; `what` names it in the message. */
export function checkText(value: unknown, what: string): string {
  if (typeof value === 'string') return value;
  throw new HeadraceError('ERR_OPTION', `${what} must be a text, not ${shown(value)}`);
}

/** @throws HeadraceError `ERR_OPTION` unless the value is true or false; `what` names it in the message. */
export function checkTruth(value: unknown, what: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new HeadraceError('ERR_OPTION', `${what} must be true or false, not ${shown(value)}`);
}
