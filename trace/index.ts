// What the rest of the project and users may import from the trace room.
export * from './crop.js';
export * from './errors.js';
export * from './format.js';
export * from './load.js';
export * from './reader.js';
export * from './recorder.js';
export * from './records.js';
export * from './sinks.js';
export * from './trace.js';
