// Checks of values that a program passes in. A value may be of any type, whatever its declared type says.
// Invariant: these checks run no code of the program, except getters and traps of its own objects.
import { HeadraceError } from '../devices/errors.js';
import { shown } from '../trace/shown.js';
import { describeThrown } from '../trace/thrown.js';

export { shown } from '../trace/shown.js';

/** Whether a value is an instance of a class. False for a proxy that throws when it is asked. */
export function isInstance<T>(value: unknown, of: { readonly prototype: T }): value is T {
  try {
    return value instanceof (of as abstract new () => T);
  } catch {
    return false;
  }
}

/** Whether a value is an object that is no array. False for a proxy that throws when it is asked. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  try {
    return value !== null && typeof value === 'object' && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** What `read` returns, which reads objects of the program. @throws HeadraceError with `code`; `what` names what is read. */
export function reading<T>(code: string, what: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw notReadable(cause, code, what);
  }
}

/** The error for something of the program that could not be read, if it is not an error of ours already. */
export function notReadable(cause: unknown, code: string, what: string): HeadraceError {
  if (isInstance(cause, HeadraceError)) return cause;
  return new HeadraceError(code, `${what} cannot be read: ${describeThrown(cause)}`, { cause });
}

/** The properties of an object, each read once. @throws HeadraceError with `code`; `what` names the object in the message. */
export function entriesOf(given: object, code: string, what: string): [string, unknown][] {
  const names = reading(code, what, () => Object.keys(given));
  return names.map((name) => [name, propertyOf(given, name, code, what)]);
}

/** A property of an object, read once. @throws HeadraceError with `code`; `what` names the object in the message. */
export function propertyOf(given: object, name: string, code: string, what: string): unknown {
  try {
    return (given as Record<string, unknown>)[name];
  } catch (cause) {
    throw notReadable(cause, code, `${shown(name)} of ${what}`);
  }
}

/**
 * The options in an object, each read once, also those that it inherits.
 * @throws HeadraceError `ERR_OPTION` unless it is an object without other properties of its own; `what` names it in the message.
 */
export function optionsOf<T extends object>(
  given: T,
  known: readonly string[],
  what: string,
): Partial<T> {
  if (!isRecord(given))
    throw new HeadraceError('ERR_OPTION', `${what} must be an object, not ${shown(given)}`);
  const own = reading('ERR_OPTION', what, () => Object.keys(given));
  const unknown = own.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new HeadraceError('ERR_OPTION', `${what} have no ${shown(unknown)}`, {
      remedy: known.length === 0 ? 'there are none' : `the options are ${known.join(', ')}`,
    });
  const options: Record<string, unknown> = {};
  for (const name of known) {
    const value = propertyOf(given, name, 'ERR_OPTION', what);
    if (value !== undefined) options[name] = value;
  }
  return options as Partial<T>;
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

/** @throws HeadraceError `ERR_OPTION` unless the value can be the name of a file; `what` names it in the message. */
export function checkFile(value: unknown, what: string): string {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return value;
  throw new HeadraceError('ERR_OPTION', `${what} must be the name of a file, not ${shown(value)}`);
}

/** @throws HeadraceError `ERR_OPTION` unless the value is true or false; `what` names it in the message. */
export function checkTruth(value: unknown, what: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new HeadraceError('ERR_OPTION', `${what} must be true or false, not ${shown(value)}`);
}
