// The trace room as a whole, for users (`headrace/trace`) and for tools. The engine imports only the recorder's files.
export * from './analysis/index.js';
export type { Lists } from './columns.js';
export * from './crop.js';
export * from './errors.js';
export * from './export/index.js';
export * from './format.js';
export * from './group-recorder.js';
export * from './html/index.js';
export * from './load.js';
export * from './reader.js';
export * from './recorder.js';
export * from './recorder-input.js';
export * from './records.js';
export * from './sinks.js';
export * from './surroundings-recorder.js';
export * from './trace.js';
export * from './unit-writer.js';
