// Checks a tiled Cholesky factor without the code that made it: residual, triangular solves,
// products with the matrix. All sums are in double precision, whatever the factor's type.
// Only one column of tiles is copied at a time; no n x n copy is ever made.
import type { SymmetricMatrix } from './spd-matrix.js';
import { extentOf, firstOf, type TileGrid, type TileValues } from './tile-grid.js';

/** Tile (i, j), i >= j, of the factor. Values above the diagonal of a diagonal tile are ignored. */
type FactorTiles = (i: number, j: number) => TileValues;

/** Called between steps; the work is `done` of `total`. Throwing ends the check. */
type OnStep = (done: number, total: number) => void;

/** The result of `choleskyResidual`. */
export interface Residual {
  /** Frobenius norm of A - L L^T. */
  readonly residualNorm: number;
  /** Frobenius norm of A. */
  readonly matrixNorm: number;
  /** residualNorm / (n matrixNorm), the normwise backward error of LAPACK's test programs. */
  readonly backwardError: number;
}

const yieldToEvents = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const panel = 4;
const paddedTo4 = (size: number): number => (size + panel - 1) & -panel;

/**
 * Rows of a tile in groups of four, each group column by column, zeros in place of missing rows: the order in
 * which the product reads them. With `isLower` values above the diagonal count as zero.
 */
function packRows(
  tile: TileValues,
  rows: number,
  cols: number,
  isLower: boolean,
  out: Float64Array,
): void {
  let at = 0;
  for (let r0 = 0; r0 < rows; r0 += panel) {
    for (let c = 0; c < cols; c++) {
      for (let r = r0; r < r0 + panel; r++) {
        out[at++] = r < rows && !(isLower && r < c) ? tile[c * rows + r] : 0;
      }
    }
  }
}

/** C -= A B^T for packed A (m x k) and B (n x k); m and n are multiples of four, C has m rows. */
function subtractProduct(
  a: Float64Array,
  b: Float64Array,
  k: number,
  c: Float64Array,
  m: number,
  n: number,
): void {
  for (let j = 0; j < n; j += panel) {
    for (let i = 0; i < m; i += panel) {
      let p = i * k;
      let q = j * k;
      const end = p + panel * k;
      let [c00, c10, c20, c30, c01, c11, c21, c31] = [0, 0, 0, 0, 0, 0, 0, 0];
      let [c02, c12, c22, c32, c03, c13, c23, c33] = [0, 0, 0, 0, 0, 0, 0, 0];
      for (; p < end; p += panel, q += panel) {
        const a0 = a[p];
        const a1 = a[p + 1];
        const a2 = a[p + 2];
        const a3 = a[p + 3];
        let x = b[q];
        c00 += a0 * x;
        c10 += a1 * x;
        c20 += a2 * x;
        c30 += a3 * x;
        x = b[q + 1];
        c01 += a0 * x;
        c11 += a1 * x;
        c21 += a2 * x;
        c31 += a3 * x;
        x = b[q + 2];
        c02 += a0 * x;
        c12 += a1 * x;
        c22 += a2 * x;
        c32 += a3 * x;
        x = b[q + 3];
        c03 += a0 * x;
        c13 += a1 * x;
        c23 += a2 * x;
        c33 += a3 * x;
      }
      let o = i + j * m;
      c[o] -= c00;
      c[o + 1] -= c10;
      c[o + 2] -= c20;
      c[o + 3] -= c30;
      o += m;
      c[o] -= c01;
      c[o + 1] -= c11;
      c[o + 2] -= c21;
      c[o + 3] -= c31;
      o += m;
      c[o] -= c02;
      c[o + 1] -= c12;
      c[o + 2] -= c22;
      c[o + 3] -= c32;
      o += m;
      c[o] -= c03;
      c[o + 1] -= c13;
      c[o + 2] -= c23;
      c[o + 3] -= c33;
    }
  }
}

/**
 * ||A - L L^T||_F / (n ||A||_F), tile by tile: n^3 / 3 flops, memory for one column of tiles. Lets other
 * events through between tiles.
 */
export async function choleskyResidual(
  grid: TileGrid,
  matrix: SymmetricMatrix,
  factor: FactorTiles,
  onStep: OnStep = () => {},
): Promise<Residual> {
  const { tile, count, n } = grid;
  const edge = paddedTo4(Math.min(tile, n));
  const packed = Array.from({ length: count }, () => new Float64Array(0));
  const left = new Float64Array(edge * tile);
  const block = new Float64Array(tile * tile);
  const rest = new Float64Array(edge * edge);
  const total = (count * (count + 1)) / 2;
  let done = 0;
  let residual = 0;
  let norm = 0;
  for (let j = 0; j < count; j++) {
    const cols = extentOf(grid, j);
    for (let k = 0; k <= j; k++) {
      if (packed[k].length === 0) packed[k] = new Float64Array(edge * tile);
      packRows(factor(j, k), cols, extentOf(grid, k), k === j, packed[k]);
    }
    for (let i = j; i < count; i++) {
      const rows = extentOf(grid, i);
      const height = paddedTo4(rows);
      matrix.fill(firstOf(grid, i), firstOf(grid, j), rows, cols, block);
      rest.fill(0);
      const weight = i === j ? 1 : 2; // a block below the diagonal stands for the one above it too
      let sum = 0;
      for (let c = 0; c < cols; c++) {
        for (let r = 0; r < rows; r++) {
          const value = block[c * rows + r];
          rest[c * height + r] = value;
          sum += value * value;
        }
      }
      norm += weight * sum;
      for (let k = 0; k <= j; k++) {
        const depth = extentOf(grid, k);
        if (i > j) packRows(factor(i, k), rows, depth, false, left);
        subtractProduct(
          i === j ? packed[k] : left,
          packed[k],
          depth,
          rest,
          height,
          paddedTo4(cols),
        );
      }
      sum = 0;
      for (let c = 0; c < cols; c++) {
        for (let r = 0; r < rows; r++) sum += rest[c * height + r] ** 2;
      }
      residual += weight * sum;
      done += 1;
      onStep(done, total);
      await yieldToEvents();
    }
  }
  const residualNorm = Math.sqrt(residual);
  const matrixNorm = Math.sqrt(norm);
  return { residualNorm, matrixNorm, backwardError: residualNorm / (n * matrixNorm) };
}

/** A x for a symmetric matrix given by its blocks on and below the diagonal. */
export function multiply(grid: TileGrid, matrix: SymmetricMatrix, x: Float64Array): Float64Array {
  const y = new Float64Array(grid.n);
  const block = new Float64Array(grid.tile * grid.tile);
  for (let j = 0; j < grid.count; j++) {
    const [col0, cols] = [firstOf(grid, j), extentOf(grid, j)];
    for (let i = j; i < grid.count; i++) {
      const [row0, rows] = [firstOf(grid, i), extentOf(grid, i)];
      matrix.fill(row0, col0, rows, cols, block);
      for (let c = 0; c < cols; c++) {
        let dot = 0;
        for (let r = 0; r < rows; r++) {
          const value = block[c * rows + r];
          y[row0 + r] += value * x[col0 + c];
          dot += value * x[row0 + r];
        }
        if (i > j) y[col0 + c] += dot;
      }
    }
  }
  return y;
}

/** Solves L y = b by forward substitution. */
export function solveLower(grid: TileGrid, factor: FactorTiles, b: Float64Array): Float64Array {
  const y = b.slice();
  for (let j = 0; j < grid.count; j++) {
    const [col0, cols] = [firstOf(grid, j), extentOf(grid, j)];
    const diagonal = factor(j, j);
    for (let c = 0; c < cols; c++) {
      y[col0 + c] /= diagonal[c * cols + c];
      for (let r = c + 1; r < cols; r++) y[col0 + r] -= diagonal[c * cols + r] * y[col0 + c];
    }
    for (let i = j + 1; i < grid.count; i++) {
      const [row0, rows] = [firstOf(grid, i), extentOf(grid, i)];
      const tile = factor(i, j);
      for (let c = 0; c < cols; c++) {
        const scale = y[col0 + c];
        for (let r = 0; r < rows; r++) y[row0 + r] -= tile[c * rows + r] * scale;
      }
    }
  }
  return y;
}

/** Solves L^T x = y by backward substitution. */
export function solveLowerTransposed(
  grid: TileGrid,
  factor: FactorTiles,
  y: Float64Array,
): Float64Array {
  const x = y.slice();
  for (let j = grid.count - 1; j >= 0; j--) {
    const [col0, cols] = [firstOf(grid, j), extentOf(grid, j)];
    for (let i = j + 1; i < grid.count; i++) {
      const [row0, rows] = [firstOf(grid, i), extentOf(grid, i)];
      const tile = factor(i, j);
      for (let c = 0; c < cols; c++) {
        let dot = 0;
        for (let r = 0; r < rows; r++) dot += tile[c * rows + r] * x[row0 + r];
        x[col0 + c] -= dot;
      }
    }
    const diagonal = factor(j, j);
    for (let c = cols - 1; c >= 0; c--) {
      let dot = 0;
      for (let r = c + 1; r < cols; r++) dot += diagonal[c * cols + r] * x[col0 + r];
      x[col0 + c] = (x[col0 + c] - dot) / diagonal[c * cols + c];
    }
  }
  return x;
}

/** Largest magnitude. */
export function maxNorm(x: Float64Array): number {
  let largest = 0;
  for (const value of x) largest = Math.max(largest, Math.abs(value)); // keeps NaN
  return largest;
}

/** max |x - exact| / max |exact|. */
export function forwardError(x: Float64Array, exact: Float64Array): number {
  return maxNorm(x.map((value, i) => value - exact[i])) / maxNorm(exact);
}

/** max |b - A x| / (||A||_F max |x| + max |b|): how well x solves the system, whatever the true solution. */
export function solveResidual(
  grid: TileGrid,
  matrix: SymmetricMatrix,
  x: Float64Array,
  b: Float64Array,
  matrixNorm: number,
): number {
  const product = multiply(grid, matrix, x);
  return maxNorm(b.map((value, i) => value - product[i])) / (matrixNorm * maxNorm(x) + maxNorm(b));
}
