// TypeScript's programming interface, loaded on use, because the dependencies may have to be installed first.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** @returns {typeof import('typescript')} */
export function typescript() {
  return require('typescript');
}
