// The viewer as a self-contained page.
export * from './page.js';
export * from './payload.js';
