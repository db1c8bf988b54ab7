// The order in which the products of C += A B are inserted. The traffic into device memory depends on it.
//
// Invariant: every product is visited once, and the products of one tile of C in the order of the inner dimension, so the
// result does not depend on the order of the tiles.
import type { TiledMatrix } from '../scheduler/index.js';
import { gpuGrid, roomPerGpu } from './panels.js';

/** Gets a call for every product: tile (i, j) of C gets the product of tiles (i, l) of A and (l, j) of B. */
type Visit = (i: number, j: number, l: number) => void;

/** Side of the blocks of C, in tiles, while the whole problem fits device memory. */
const BLOCK = 4;

/** Visits the products of the tiles of C with `inner` tiles in the inner dimension, where GPUs hold `tilesPerGpu` tiles. */
export function visitProducts(
  C: TiledMatrix,
  inner: number,
  tilesPerGpu: number,
  visit: Visit,
): void {
  const grid = gpuGrid(C);
  const rows = Math.ceil(C.tileRows / grid.rows);
  const columns = Math.ceil(C.tileColumns / grid.columns);
  if (rows * columns + (rows + columns) * inner <= tilesPerGpu) blockByBlock(C, inner, visit);
  else skewed(C, inner, largestBlock(rows, columns, roomPerGpu(tilesPerGpu)), visit);
}

/** Blocks of 4 x 4 tiles of C, one step of the inner dimension at a time. */
function blockByBlock(C: TiledMatrix, inner: number, visit: Visit): void {
  for (let top = 0; top < C.tileRows; top += BLOCK) {
    for (let left = 0; left < C.tileColumns; left += BLOCK) {
      for (let l = 0; l < inner; l++) {
        for (let i = top; i < Math.min(top + BLOCK, C.tileRows); i++) {
          for (let j = left; j < Math.min(left + BLOCK, C.tileColumns); j++) visit(i, j, l);
        }
      }
    }
  }
}

interface Block {
  readonly rows: number;
  readonly columns: number;
}

/**
 * The block of a GPU's share of C that needs the fewest tiles of A and B, if `room` tiles fit: the block itself and as
 * many tiles of A and of B as its shorter side has.
 */
function largestBlock(rows: number, columns: number, room: number): Block {
  let best: Block = { rows: 1, columns: 1 };
  let least = Number.POSITIVE_INFINITY;
  for (let r = 1; r <= rows; r++) {
    for (let c = 1; c <= columns; c++) {
      const reads = Math.ceil(rows / r) * columns + Math.ceil(columns / c) * rows;
      if (r * c + 2 * Math.min(r, c) <= room && reads < least) {
        least = reads;
        best = { rows: r, columns: c };
      }
    }
  }
  return best;
}

/**
 * Block after block of C, each GPU with a block of its share, and within a block skewed as in L. E. Cannon, "A cellular
 * computer to implement the Kalman filter algorithm" (1969): each column of the block is one row ahead of the
 * next one. So tiles of A and B arrive at an even pace instead of all at the beginning of a step, and tiles of C
 * change at an even pace between blocks. Lines run along the shorter side, because a tile is needed for that long.
 */
function skewed(C: TiledMatrix, inner: number, share: Block, visit: Visit): void {
  const grid = gpuGrid(C);
  const byColumns = share.columns <= share.rows;
  const [along, across] = byColumns
    ? [
        { tiles: C.tileRows, side: share.rows * grid.rows },
        { tiles: C.tileColumns, side: share.columns * grid.columns },
      ]
    : [
        { tiles: C.tileColumns, side: share.columns * grid.columns },
        { tiles: C.tileRows, side: share.rows * grid.rows },
      ];
  const down = Math.ceil(along.tiles / along.side);
  const blocks = down * Math.ceil(across.tiles / across.side);
  const steps = blocks * inner * along.side;
  for (let front = 0; front < steps + across.side - 1; front++) {
    for (let line = 0; line < across.side; line++) {
      const step = front - line;
      if (step < 0 || step >= steps) continue;
      const block = Math.floor(step / (inner * along.side));
      const l = Math.floor(step / along.side) % inner;
      const x = (block % down) * along.side + (step % along.side);
      const y = Math.floor(block / down) * across.side + line;
      if (x >= along.tiles || y >= across.tiles) continue;
      if (byColumns) visit(x, y, l);
      else visit(y, x, l);
    }
  }
}
