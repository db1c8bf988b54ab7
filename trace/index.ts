// What the rest of the project and users may import from the trace room.
export * from './errors.js';
export * from './format.js';
export * from './recorder.js';
export * from './sinks.js';
