// The reduction of ../reduce.ts as a parameterised graph. The inner nodes of the tree are temporaries: each is made with its task and
// freed behind its reader.
import {
  Datum,
  HeadraceError,
  type ParameterisedGraph,
  parameterised,
  range,
  temporary,
} from '../../scheduler/index.js';
import { combinationOf, type ReduceOperation } from '../reduce-classes.js';

/** Arguments of `reduceGraph`. All data have the same element type and shape. */
export interface ReduceArguments {
  /** The values, in the order of their combination; at least two. */
  readonly inputs: readonly Datum[];
  /** Gets the result; needs no value. */
  readonly result: Datum;
  readonly operation: ReduceOperation;
}

/**
 * Combines the inputs element by element in a binary tree, with the bits of `reduce`. An instance throws `ERR_SHAPE` for fewer than
 * two inputs.
 */
export const reduceGraph: ParameterisedGraph<ReduceArguments> = parameterised(
  'reduce',
  (graph, { inputs, result, operation }) => {
    if (!Array.isArray(inputs) || inputs.some((input) => !(input instanceof Datum)))
      throw new HeadraceError('ERR_ARGUMENT_TYPE', 'reduceGraph: inputs must be an array of data');
    if (!(result instanceof Datum))
      throw new HeadraceError('ERR_ARGUMENT_TYPE', 'reduceGraph: result must be a datum');
    if (inputs.length < 2)
      throw new HeadraceError('ERR_SHAPE', 'reduceGraph needs at least two inputs');
    const { element, length, rows } = result;
    const { node } = graph.declare({
      node: { runs: combinationOf(operation, element), indices: ['level', 'i'] },
    });
    /** Nodes of a level; level 0 are the inputs. The last one of an odd number goes up a level as it is. */
    const width = (level: number): number => Math.ceil(inputs.length / 2 ** level);
    const top = Math.ceil(Math.log2(inputs.length));
    const isPair = (level: number, i: number): boolean => 2 * i + 1 < width(level - 1);
    const value = (level: number, i: number): Datum | ReturnType<typeof node.to> => {
      if (level === 0) return inputs[i];
      return isPair(level, i) ? node.to({ level, i }) : value(level - 1, 2 * i);
    };
    const parent = (level: number, i: number): ReturnType<typeof node.to> => {
      const above = { level: level + 1, i: i >> 1 };
      if (i % 2 === 1) return node.right(above);
      return isPair(above.level, above.i) ? node.left(above) : parent(above.level, above.i);
    };
    graph.define(node, {
      ranges: {
        level: () => range(1, top + 1),
        i: ({ level }) => range(0, width(level - 1) >> 1),
      },
      on: ({ level, i }) => (level === top ? result : inputs[i * 2 ** level]),
      flows: {
        to: {
          from: ({ level }) => (level === top ? result : temporary(element, length, { rows })),
          to: ({ level, i }) => (level === top ? result : parent(level, i)),
        },
        left: { from: ({ level, i }) => value(level - 1, 2 * i) },
        right: { from: ({ level, i }) => value(level - 1, 2 * i + 1) },
      },
    });
  },
);
