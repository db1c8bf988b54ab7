// Results of user code that may stand for something later: promises, and whatever else has a `then`.
// Invariant: nothing here throws; what goes wrong with a thenable rejects its promise, and no callback runs before the
// caller has returned.

/**
 * The promise that a thenable stands for; undefined when the value is none, so that it is over already. As with `await`,
 * an object whose `then` is no function is a plain value, and a `then` that throws rejects.
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
  // A promise takes the first answer only, and answers later.
  return new Promise((resolve, reject) => void Reflect.apply(call, value, [resolve, reject]));
}
