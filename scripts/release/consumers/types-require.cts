import headrace = require('headrace');
import algorithms = require('headrace/algorithms');

export const create: typeof headrace.Runtime.create = headrace.Runtime.create;
export const cholesky: typeof algorithms.cholesky = algorithms.cholesky;
