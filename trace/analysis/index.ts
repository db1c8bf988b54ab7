// The analysis of traces.
export * from './bounds.js';
export * from './causes.js';
export * from './classes.js';
export * from './critical-path.js';
export * from './diff.js';
export * from './graph.js';
export * from './intervals.js';
export * from './lanes.js';
export * from './memory.js';
export * from './overlap.js';
export * from './summary.js';
export * from './summary-text.js';
export * from './text.js';
export * from './traffic.js';
export * from './waits.js';
export * from './what-if.js';
