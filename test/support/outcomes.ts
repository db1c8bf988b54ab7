// How a promise ends.

/** The code of the error with which it rejects; 'none' if it resolves. */
export const codeOf = (promise: PromiseLike<unknown>): Promise<string> =>
  Promise.resolve(promise).then(
    () => 'none',
    (error: unknown) => (error as { code: string }).code,
  );
