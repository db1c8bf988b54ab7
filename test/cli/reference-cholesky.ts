// The textbook factorisation, tile by tile on plain arrays: the reference for the checks and the command.
import type { SymmetricMatrix } from '../../cli/spd-matrix.js';
import {
  type Dtype,
  extentOf,
  firstOf,
  type TileGrid,
  type TileValues,
} from '../../cli/tile-grid.js';

/** Lower factor as tiles; what stands above the diagonal of diagonal tiles is garbage on purpose. */
export function referenceCholesky(
  grid: TileGrid,
  matrix: SymmetricMatrix,
  dtype: Dtype = 'f64',
): (i: number, j: number) => TileValues {
  const { n } = grid;
  const l = new Float64Array(n * n); // column by column
  for (let j = 0; j < grid.count; j++) {
    for (let i = j; i < grid.count; i++) {
      const [rows, cols] = [extentOf(grid, i), extentOf(grid, j)];
      const block = new Float64Array(rows * cols);
      matrix.fill(firstOf(grid, i), firstOf(grid, j), rows, cols, block);
      for (let c = 0; c < cols; c++) {
        for (let r = 0; r < rows; r++) {
          l[(firstOf(grid, j) + c) * n + firstOf(grid, i) + r] = block[c * rows + r];
        }
      }
    }
  }
  for (let k = 0; k < n; k++) {
    const pivot = Math.sqrt(l[k * n + k]);
    for (let i = k; i < n; i++) l[k * n + i] /= pivot;
    for (let j = k + 1; j < n; j++) {
      for (let i = j; i < n; i++) l[j * n + i] -= l[k * n + i] * l[k * n + j];
    }
  }
  return (i, j) => {
    const [rows, cols] = [extentOf(grid, i), extentOf(grid, j)];
    const tile = dtype === 'f64' ? new Float64Array(rows * cols) : new Float32Array(rows * cols);
    for (let c = 0; c < cols; c++) {
      for (let r = 0; r < rows; r++) {
        const isGarbage = i === j && r < c;
        tile[c * rows + r] = isGarbage ? 777 : l[(firstOf(grid, j) + c) * n + firstOf(grid, i) + r];
      }
    }
    return tile;
  };
}
