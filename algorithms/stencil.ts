// One-dimensional stencil over blocks (Jacobi iteration): in every step each element becomes a weighted sum of its
// 2r + 1 neighbours, u'[i] = w[0] u[i-r] + ... + w[2r] u[i+r], with zeros beyond both ends. A block reads its
// own old values and those of its two neighbours. Two sets of blocks take turns.
// Invariant: sums go from left to right, so results equal those of the serial loop bit for bit.
import {
  Datum,
  type Flow,
  type Graph,
  HeadraceError,
  read,
  type TaskClass,
  task,
  write,
} from '../scheduler/index.js';
import { checkCount, checkGraph, checkList, wrongType } from './arguments.js';

type Read = Flow<'f64', 'read'>;

/** Task class of one block and step. */
export type StencilClass = TaskClass<
  {
    readonly to: Flow<'f64', 'write'>;
    readonly left: Read;
    readonly middle: Read;
    readonly right: Read;
    readonly weights: Read;
  },
  { readonly radius: 'i32'; readonly leftCount: 'i32'; readonly count: 'i32' }
>;

/** One thread per element; products are rounded before they are added, as in JavaScript. */
const cudaSource = `
extern "C" __global__ void stencil_1d_f64(double* to, const double* left, const double* middle,
                                          const double* right, const double* weights, int radius,
                                          int leftCount, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double sum = 0;
  for (int k = -radius; k <= radius; ++k) {
    const int at = i + k;
    sum += weights[k + radius] *
           (at < 0 ? left[leftCount + at] : at < count ? middle[at] : right[at - count]);
  }
  to[i] = sum;
}
`;

/**
 * One block and one step in JavaScript; on CUDA GPUs a kernel compiled at run time; on other GPUs the kernel
 * `stencil_1d_f64`, if one is loaded (its parameters are the radius, the number of elements of the left neighbour,
 * and that of the block).
 */
export const stencilBlock: StencilClass = task({
  name: 'stencil',
  flows: {
    to: write('f64'),
    left: read('f64'),
    middle: read('f64'),
    right: read('f64'),
    weights: read('f64'),
  },
  params: { radius: 'i32', leftCount: 'i32', count: 'i32' },
  gpuKernel: 'stencil_1d_f64',
  cuda: {
    source: cudaSource,
    function: 'stencil_1d_f64',
    arguments: ['to', 'left', 'middle', 'right', 'weights', 'radius', 'leftCount', 'count'],
    grid: { parameter: 'count', per: 128 },
    block: 128,
    options: ['--fmad=false'],
  },
  body: ({ to, left, middle, right, weights, radius }) => {
    const n = middle.length;
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let k = -radius; k <= radius; k++) {
        const at = i + k;
        const value = at < 0 ? left[left.length + at] : at < n ? middle[at] : right[at - n];
        sum += weights[k + radius] * value;
      }
      to[i] = sum;
    }
  },
});

/** Data of a stencil. All blocks have at least `radius` elements. */
export interface StencilData {
  /** The blocks from left to right. */
  readonly blocks: readonly Datum<'f64'>[];
  /** Blocks of the same lengths; need no values. */
  readonly scratch: readonly Datum<'f64'>[];
  /** The 2r + 1 weights. */
  readonly weights: Datum<'f64'>;
  /** At least r zeros: the values beyond both ends. */
  readonly beyond: Datum<'f64'>;
}

/**
 * Inserts the tasks of `steps` steps.
 *
 * @returns the blocks that hold the result: `blocks` for an even number of steps, else `scratch`
 * @throws HeadraceError `ERR_SHAPE` when the lengths do not fit together, `ERR_DUPLICATE_DATUM` when a datum comes twice;
 *   `ERR_ARGUMENT_TYPE` and the errors of `Graph.check`, each before the first task is inserted
 */
export function stencil(
  graph: Graph,
  data: StencilData,
  steps: number,
  block: StencilClass = stencilBlock,
): readonly Datum<'f64'>[] {
  checkGraph('stencil', graph);
  checkCount('stencil', 'steps', steps);
  if (typeof data !== 'object' || data === null)
    throw wrongType('stencil', 'data', 'an object', data);
  // Copies: what is checked is what is used.
  const { blocks: first, scratch: second, weights, beyond } = data;
  const blocks = checkList('stencil', 'blocks', first);
  const scratch = checkList('stencil', 'scratch', second);
  const radius = check(graph, { blocks, scratch, weights, beyond });
  let from = blocks;
  let into = scratch;
  for (let t = 0; t < steps; t++) {
    for (let b = 0; b < from.length; b++) {
      const left = b === 0 ? beyond : from[b - 1];
      const right = b === from.length - 1 ? beyond : from[b + 1];
      graph.insert(block, {
        to: into[b],
        left,
        middle: from[b],
        right,
        weights,
        radius,
        leftCount: left.length,
        count: from[b].length,
      });
    }
    [from, into] = [into, from];
  }
  return from === blocks ? first : second;
}

/** Checks the data and returns the radius. */
function check(graph: Graph, { blocks, scratch, weights, beyond }: StencilData): number {
  const seen: Map<Datum, string> = new Map();
  const see = (name: string, datum: Datum, reads: boolean): void => {
    if (!(datum instanceof Datum)) throw wrongType('stencil', name, 'a datum', datum);
    const { name: called, element } = datum;
    if (element !== 'f64') throw wrongType('stencil', name, 'a datum of f64', element);
    graph.check(datum, reads, `stencil: datum '${called}' of ${name}`);
    const before = seen.get(datum);
    // What is only read may be read twice.
    if (before !== undefined && before !== 'weights') {
      throw new HeadraceError(
        'ERR_DUPLICATE_DATUM',
        `stencil: ${before} and ${name} are both datum '${called}'`,
        { datum: called },
      );
    }
    seen.set(datum, name);
  };
  for (const [i, block] of blocks.entries()) see(`blocks[${i}]`, block, true);
  for (const [i, block] of scratch.entries()) see(`scratch[${i}]`, block, false);
  see('weights', weights, true);
  see('beyond', beyond, true);
  const radius = (weights.length - 1) / 2;
  const fits =
    Number.isInteger(radius) &&
    blocks.length === scratch.length &&
    beyond.length >= radius &&
    blocks.every((block, i) => block.length >= radius && block.length === scratch[i].length);
  if (fits) return radius;
  throw new HeadraceError(
    'ERR_SHAPE',
    `a stencil of radius ${radius} needs an odd number of weights, blocks and scratch of the same lengths, and at least ${radius} elements in each block and beyond`,
  );
}
