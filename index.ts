// Package entry: the public API of Headrace.
export * from './scheduler/index.js';
