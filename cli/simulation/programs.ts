// The programs that `headrace simulate` knows: their matrices, their tasks, and their work.
import { cholesky, choleskyFlops } from '../../algorithms/cholesky.js';
import { gemm, gemmFlops } from '../../algorithms/gemm.js';
import {
  type BlockCyclic,
  type Graph,
  read,
  squareGrid,
  type TiledMatrix,
  task,
  write,
} from '../../scheduler/index.js';

/** What the command line asks for. */
export interface ProgramSize {
  readonly ranks: number;
  readonly gpus: number;
  /** Order of the matrices; undefined: that of the program. */
  readonly n: number | undefined;
  /** Rows and columns of a tile. */
  readonly tile: number;
  /** Time steps. */
  readonly steps: number;
}

/** The matrices of a program; all are equal in size and distribution. */
export interface ProgramLayout {
  readonly rows: number;
  readonly columns: number;
  readonly tile: number;
  readonly grid?: BlockCyclic;
  readonly rankGrid?: BlockCyclic;
}

/** A program over matrices that begin in host memory. */
export interface Program {
  readonly matrices: readonly string[];
  readonly lower: boolean;
  readonly layout: (size: ProgramSize) => ProgramLayout;
  readonly insert: (graph: Graph, m: readonly TiledMatrix<'f64'>[], steps: number) => void;
  readonly flops: (layout: ProgramLayout, steps: number) => number;
  /** Number of tasks for matrices with that many tiles. */
  readonly tasks: (tileRows: number, tileColumns: number, steps: number) => number;
}

/** Order of a matrix of the linear algebra programs. */
const ORDER = 65536;

function squareLayout({ n = ORDER, tile }: ProgramSize): ProgramLayout {
  return { rows: n, columns: n, tile };
}

/**
 * One step of the five-point stencil on one tile. At the edge of the grid a tile is its own neighbour, which means that
 * nothing flows across the edge.
 */
const step = task({
  name: 'stencil',
  flows: {
    to: write('f64'),
    middle: read('f64'),
    north: read('f64'),
    south: read('f64'),
    west: read('f64'),
    east: read('f64'),
  },
  params: { rows: 'i32', columns: 'i32' },
  kernel: 'stencil_2d_f64',
  gpuKernel: 'stencil_2d_f64',
});

/** Floating-point operations per element and step: five products and their sum. */
const STEP_FLOPS = 9;

/**
 * By default one tile for every GPU, or rank without GPUs. Each rank owns a rectangle of tiles, and so does each of its
 * GPUs: only tiles at the rim have neighbours elsewhere.
 */
function stencilLayout({ ranks, gpus, n, tile }: ProgramSize): ProgramLayout {
  const rankGrid = squareGrid(ranks);
  const grid = squareGrid(Math.max(1, gpus));
  const rows = n ?? rankGrid.rows * grid.rows * tile;
  const columns = n ?? rankGrid.columns * grid.columns * tile;
  const share = (length: number, among: number): number => Math.max(1, Math.ceil(length / among));
  const blockRows = share(Math.ceil(rows / tile), rankGrid.rows);
  const blockColumns = share(Math.ceil(columns / tile), rankGrid.columns);
  return {
    rows,
    columns,
    tile,
    rankGrid: { ...rankGrid, blockRows, blockColumns },
    grid: {
      ...grid,
      blockRows: share(blockRows, grid.rows),
      blockColumns: share(blockColumns, grid.columns),
    },
  };
}

/** The index of a neighbour among `count`, where `i` may be -1 or `count`. */
type Near = (i: number, count: number) => number;

const atEdge: Near = (i, count) => Math.min(Math.max(0, i), count - 1);
const around: Near = (i, count) => (i + count) % count;

/** Jacobi iteration on a grid: each step reads the tiles of one matrix and writes those of the other. */
function insertStencil(
  graph: Graph,
  [a, b]: readonly TiledMatrix<'f64'>[],
  steps: number,
  near: Near = atEdge,
): void {
  let [from, to] = [a, b];
  const { tileRows, tileColumns } = a;
  for (let t = 0; t < steps; t++) {
    for (let j = 0; j < tileColumns; j++) {
      for (let i = 0; i < tileRows; i++) {
        graph.insert(step, {
          to: to.at(i, j),
          middle: from.at(i, j),
          north: from.at(near(i - 1, tileRows), j),
          south: from.at(near(i + 1, tileRows), j),
          west: from.at(i, near(j - 1, tileColumns)),
          east: from.at(i, near(j + 1, tileColumns)),
          rows: from.rowsOf(i),
          columns: from.columnsOf(j),
        });
      }
    }
    [from, to] = [to, from];
  }
}

export const programs: Readonly<Record<string, Program>> = {
  cholesky: {
    matrices: ['A'],
    lower: true,
    layout: squareLayout,
    insert: (graph, [a]) => cholesky(graph, a),
    flops: ({ rows }) => choleskyFlops(rows),
    tasks: (tiles) => (tiles * (tiles + 1) * (tiles + 2)) / 6,
  },
  gemm: {
    matrices: ['A', 'B', 'C'],
    lower: false,
    layout: squareLayout,
    insert: (graph, [a, b, c]) => gemm(graph, a, b, c),
    flops: ({ rows }) => gemmFlops(rows, rows, rows),
    tasks: (tiles) => tiles ** 3,
  },
  stencil: {
    matrices: ['U', 'V'],
    lower: false,
    layout: stencilLayout,
    insert: insertStencil,
    flops: ({ rows, columns }, steps) => STEP_FLOPS * rows * columns * steps,
    tasks: (tileRows, tileColumns, steps) => tileRows * tileColumns * steps,
  },
};

/** The stencil on a torus. Every rank has as many messages as every other one, on any number of ranks from four on. */
export const torus: Program = {
  ...programs.stencil,
  insert: (graph, matrices, steps) => insertStencil(graph, matrices, steps, around),
};
