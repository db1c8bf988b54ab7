// What a command waits for, so that it can be said when the process runs out of things to do before the command has
// a result. Each thread has a list of its own.

interface Awaited {
  readonly what: string;
  readonly state: (() => string) | undefined;
}

const open: Set<Awaited> = new Set();

/** Waits for the promise; while it does, `what` is on the list, with `state` to describe how far it is. */
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

/** The list as text, the innermost last; empty when nothing is awaited. */
export function describeAwaited(): string {
  return [...open]
    .map(({ what, state }) => (state === undefined ? what : `${what}:\n${state()}`))
    .join('\n');
}
