// The garbage collector, called at once.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects what nothing refers to any more. */
export const collect: () => void = runInNewContext('gc');
