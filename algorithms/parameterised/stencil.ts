// The one-dimensional stencil of ../stencil.ts as a parameterised graph. Blocks and scratch take turns: a block of step t
// overwrites that of step t - 2, which the three tasks of step t - 1 have read.
import { type ParameterisedGraph, parameterised, range } from '../../scheduler/index.js';
import { checkCount } from '../arguments.js';
import { type StencilData, stencilBlock } from '../stencil.js';
import { ownOf } from './own.js';

/** Arguments of `stencilGraph`. */
export interface StencilArguments extends StencilData {
  /** The result is in `blocks` if it is even, else in `scratch`. */
  readonly steps: number;
}

/** `steps` steps of the stencil. An instance throws `ERR_ARGUMENT_TYPE`. */
export const stencilGraph: ParameterisedGraph<StencilArguments> = parameterised(
  'stencil',
  (graph, { blocks, scratch, weights, beyond, steps }) => {
    checkCount('stencilGraph', 'steps', steps);
    const { step } = graph.declare({ step: { runs: stencilBlock, indices: ['t', 'b'] } });
    graph.share(weights, beyond);
    const count = blocks.length;
    const radius = (weights.length - 1) / 2;
    /** The data of which step t makes the new values. */
    const written = (t: number) => (t % 2 === 0 ? scratch : blocks);
    /** The value of block b before step t. */
    const old = (t: number, b: number) => {
      if (b < 0 || b >= count) return beyond;
      return t === 0 ? blocks[b] : step.to({ t: t - 1, b });
    };
    /** The flows of step t that read the value of block b. */
    const readers = (t: number, b: number) =>
      t < steps && [
        b > 0 && step.right({ t, b: b - 1 }),
        step.middle({ t, b }),
        b + 1 < count && step.left({ t, b: b + 1 }),
      ];
    const ownBlocks = ownOf(blocks);
    const ownScratch = ownOf(scratch);
    graph.inputs({
      indices: ['b'],
      ranges: { b: () => range(0, count) },
      own: { b: (_, rank) => ownBlocks(rank) },
      datum: ({ b }) => blocks[b],
      to: ({ b }) => readers(0, b),
    });
    graph.define(step, {
      ranges: { t: () => range(0, steps), b: () => range(0, count) },
      starts: { t: () => range(0, 1) },
      // The first two steps read and overwrite the data, and the last two leave their results there.
      repeats: { t: () => range(2, steps - 2) },
      order: ({ t, b }) => t * count + b,
      own: { b: ({ t }, rank) => (t % 2 === 0 ? ownScratch : ownBlocks)(rank) },
      on: ({ t, b }) => written(t)[b],
      flows: {
        to: {
          datum: ({ t, b }) => written(t)[b],
          from: ({ t, b }) => (t < 2 ? written(t)[b] : step.to({ t: t - 2, b })),
          to: ({ t, b }) => [
            readers(t + 1, b),
            t + 2 < steps ? step.to({ t: t + 2, b }) : written(t)[b],
          ],
        },
        left: { from: ({ t, b }) => old(t, b - 1) },
        middle: { from: ({ t, b }) => old(t, b) },
        right: { from: ({ t, b }) => old(t, b + 1) },
        weights: { from: () => weights },
      },
      params: ({ b }) => ({
        radius,
        leftCount: (b === 0 ? beyond : blocks[b - 1]).length,
        count: blocks[b].length,
      }),
    });
  },
);
