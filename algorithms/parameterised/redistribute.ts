// The redistribution of ../redistribute.ts as a parameterised graph: every tile of B is a chain of the rectangles in which tiles of A
// overlap it, column by column.
import {
  type ParameterisedGraph,
  parameterised,
  range,
  type TiledMatrix,
} from '../../scheduler/index.js';
import { checkRedistribution, overlap, rectangleOf, sourcesOf } from '../redistribute.js';
import type { Real } from '../tile-classes.js';

/** Arguments of `redistributeGraph`: matrices of the same elements, rows and columns. */
export interface RedistributeArguments {
  readonly A: TiledMatrix<Real>;
  /** Its tiles must have values (any): a tile is assembled in several steps. */
  readonly B: TiledMatrix<Real>;
}

/**
 * B := A for matrices of different tiles, grids and origins.
 *
 * An instance throws `ERR_SIZE_MISMATCH` when the matrices differ in size or one of them is a triangle, `ERR_DUPLICATE_DATUM` when they
 * are the same, and `ERR_ARGUMENT_TYPE`.
 */
export const redistributeGraph: ParameterisedGraph<RedistributeArguments> = parameterised(
  'redistribute',
  (graph, { A, B }) => {
    checkRedistribution('redistributeGraph', A, B);
    const { copy } = graph.declare({
      copy: { runs: rectangleOf(B.element), indices: ['i', 'j', 'q', 'p'] },
    });
    /** Rows and columns of the tiles of A that overlap a tile of B. */
    const p = (i: number) => sourcesOf(i * B.tile, B.rowsOf(i), A.tile);
    const q = (j: number) => sourcesOf(j * B.tile, B.columnsOf(j), A.tile);

    // B_ij := A_pq where they overlap
    graph.define(copy, {
      ranges: {
        i: () => range(0, B.tileRows),
        j: () => range(0, B.tileColumns),
        q: ({ j }) => q(j),
        p: ({ i }) => p(i),
      },
      starts: {
        q: ({ j }) => range(q(j).first, q(j).first + 1),
        p: ({ i }) => range(p(i).first, p(i).first + 1),
      },
      on: ({ i, j }) => B.rankOf(i, j),
      flows: {
        to: {
          from: (at) => {
            if (at.p > p(at.i).first) return copy.to({ ...at, p: at.p - 1 });
            if (at.q > q(at.j).first) return copy.to({ ...at, q: at.q - 1, p: p(at.i).end - 1 });
            return B.at(at.i, at.j);
          },
          to: (at) => {
            if (at.p + 1 < p(at.i).end) return copy.to({ ...at, p: at.p + 1 });
            if (at.q + 1 < q(at.j).end) return copy.to({ ...at, q: at.q + 1, p: p(at.i).first });
            return B.at(at.i, at.j);
          },
        },
        from: { from: (at) => A.at(at.p, at.q) },
      },
      params: (at) => overlap(A, B, at),
    });
  },
);
