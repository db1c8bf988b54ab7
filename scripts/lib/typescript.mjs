// TypeScript's own programming interface, loaded when it is used: the dependencies may have to be installed first.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** @returns {typeof import('typescript')} */
export function typescript() {
  return require('typescript');
}
