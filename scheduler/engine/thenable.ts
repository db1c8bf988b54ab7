// Results of user code that may stand for a later value: promises, and all objects with a `then`.
// Invariant: nothing here throws. An error in a thenable rejects its promise, and no callback runs before the caller
// has returned.

/**
 * Returns the promise of a thenable, or undefined for a plain value. As with `await`, an object whose `then` is no
 * function is a plain value, and a `then` that throws rejects.
 */
export function promiseOf(value: unknown): Promise<unknown> | undefined {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function'))
    return undefined;
  let then: unknown;
  try {
    then = (value as PromiseLike<unknown>).then;
  } catch (cause) {
    return Promise.reject(cause);
  }
  if (typeof then !== 'function') return undefined;
  const call = then as (...callbacks: unknown[]) => unknown;
  // A promise accepts only the first answer, and delivers it later.
  return new Promise((resolve, reject) => void Reflect.apply(call, value, [resolve, reject]));
}
