// A broadcast along a tree as a parameterised graph. Result i passes the value on to the results arity (i + 1) ... arity (i + 1) + arity - 1, the
// children of a heap, so the value reaches all results in a number of steps that is logarithmic in theirs.
import {
  type Datum,
  HeadraceError,
  type ParameterisedGraph,
  parameterised,
  range,
} from '../../scheduler/index.js';
import { checkCount, checkList } from '../arguments.js';
import { copyOf } from '../reduce-classes.js';

/** Arguments of `broadcastGraph`. All data have the same element type and number of elements. */
export interface BroadcastArguments {
  /** The value. */
  readonly source: Datum;
  /** Each gets the value, in a task on its rank; at least one. They need no values. */
  readonly results: readonly Datum[];
  /** How many results take the value from the source, and from each result: at least 1. Default: 2. */
  readonly arity?: number;
}

/**
 * Copies `source` to each of `results` along a tree. The bodies are JavaScript and run on the hosts of the ranks. An instance throws
 * `ERR_SHAPE` without results, and `ERR_ARGUMENT_TYPE`.
 */
export const broadcastGraph: ParameterisedGraph<BroadcastArguments> = parameterised(
  'broadcast',
  (graph, { source, results, arity = 2 }) => {
    checkList('broadcastGraph', 'results', results);
    checkCount('broadcastGraph', 'arity', arity, 1);
    const count = results.length;
    if (count === 0)
      throw new HeadraceError('ERR_SHAPE', 'broadcastGraph needs at least one of results');
    const { node } = graph.declare({ node: { runs: copyOf(source.element), indices: ['i'] } });
    // x_i = x_parent(i)
    graph.define(node, {
      ranges: { i: () => range(0, count) },
      starts: { i: () => range(0, Math.min(arity, count)) },
      on: ({ i }) => results[i],
      flows: {
        to: {
          from: ({ i }) => results[i],
          to: ({ i }) => {
            const first = arity * (i + 1);
            const children = range(first, Math.min(first + arity, count));
            return [children.map((child) => node.from({ i: child })), results[i]];
          },
        },
        from: {
          from: ({ i }) => (i < arity ? source : node.to({ i: Math.floor(i / arity) - 1 })),
        },
      },
    });
  },
);
