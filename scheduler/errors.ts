// Public door to the typed errors; see devices/errors.ts for why they live there.
export { type ErrorDetails, HeadraceError, RunAbortedError } from '../devices/errors.js';
