// Lets this process switch guards off (devices/simulated/cases/set-guard.ts). A test imports this file before every other
// one, and a test program is started with `node --import`.
Reflect.set(globalThis, Symbol.for('headrace.removable-guards'), true);
