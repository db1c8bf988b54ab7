// Words for values that others throw: a program may throw anything, also what cannot be turned into text.
// Invariant: no function here throws, whatever it is given. It lies in the lowest room because every room above needs it.

/** Whether a value is an Error. False for one that does not let itself be asked. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** What a thrown value says: the message of an error, else the value as text, else its type. */
export function describeThrown(value: unknown): string {
  try {
    return `${isError(value) ? value.message : String(value)}`;
  } catch {
    return `a value of type ${typeof value} that has no text`;
  }
}
