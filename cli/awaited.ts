// The promises that a command waits for. If the process runs out of work before the command has a result, the error
// names them. Each thread has a list of its own.

interface Awaited {
  readonly what: string;
  readonly state: (() => string) | undefined;
}

const open: Set<Awaited> = new Set();

/** Waits for the promise. Meanwhile `what` is on the list, with `state` to describe its progress. */
export async function awaited<T>(
  what: string,
  promise: PromiseLike<T>,
  state?: () => string,
): Promise<T> {
  const entry = { what, state };
  open.add(entry);
  try {
    return await promise;
  } finally {
    open.delete(entry);
  }
}

/** The list as text, the innermost last; empty if nothing is awaited. */
export function describeAwaited(): string {
  return [...open]
    .map(({ what, state }) => (state === undefined ? what : `${what}:\n${state()}`))
    .join('\n');
}
