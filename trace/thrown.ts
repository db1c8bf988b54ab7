// Words for values that other code throws: a program may throw anything, also values without a text.
// Invariant: no function here throws, whatever its argument. It is in the lowest room because every room above needs it.

import { shown } from './shown.js';

/** Whether a value is an Error. False for one that throws when it is examined. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** The words of a thrown value: the message of an error, else the value as text, else its type. */
export function describeThrown(value: unknown): string {
  try {
    const text = isError(value) ? `${value.message}` : String(value);
    // The text of an object without a `toString` of its own says nothing.
    return text.startsWith('[object ') ? (JSON.stringify(value) ?? shown(value)) : text;
  } catch {
    return `${shown(value)} that has no text`;
  }
}
