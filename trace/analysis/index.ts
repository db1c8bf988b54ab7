// The analysis of traces.
export * from './bounds.js';
export * from './classes.js';
export * from './graph.js';
export * from './intervals.js';
export * from './lanes.js';
export * from './memory.js';
export * from './overlap.js';
export * from './summary.js';
export * from './traffic.js';
export * from './waits.js';
