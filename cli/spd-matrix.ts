// Symmetric positive definite input matrices, handed out tile by tile: random ones, which are never stored
// whole, and ones read from a Matrix Market file.
import { HeadraceError } from '../scheduler/errors.js';
import type { MatrixMarket } from './matrix-market.js';
import type { TileValues } from './tile-grid.js';

/** A symmetric matrix that can produce any block on or below its diagonal. */
export interface SymmetricMatrix {
  readonly n: number;
  /** For people: `random matrix, seed 1`, `bcsstk15.mtx`. */
  readonly description: string;
  /**
   * Writes rows [row0, row0 + rows) of columns [col0, col0 + cols), column by column. Blocks either are
   * diagonal (row0 = col0, both triangles are written) or lie below the diagonal.
   */
  fill(row0: number, col0: number, rows: number, cols: number, out: TileValues): void;
}

/** Mixes a 32-bit number (the finaliser of MurmurHash3). */
function mix(h: number): number {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/**
 * A random matrix: entries uniform in [-1/2, 1/2), n added on the diagonal, hence strictly diagonally dominant
 * and positive definite. Entry (i, j) depends on the seed, i and j only, so tiles can be made in any order.
 */
export function randomSymmetricMatrix(n: number, seed = 1): SymmetricMatrix {
  return {
    n,
    description: `random matrix (seed ${seed})`,
    fill(row0, col0, rows, cols, out) {
      for (let c = 0; c < cols; c++) {
        const col = col0 + c;
        for (let r = 0; r < rows; r++) {
          const row = row0 + r;
          const low = Math.min(row, col);
          const high = Math.max(row, col);
          const bits = mix(mix(mix(seed) + low) + high);
          out[c * rows + r] = bits / 2 ** 32 + (row === col ? n : 0);
        }
      }
    },
  };
}

/** The same matrix with every entry rounded to single precision: the input of a run in f32. */
export function roundedTo32(matrix: SymmetricMatrix): SymmetricMatrix {
  return {
    n: matrix.n,
    description: matrix.description,
    fill(row0, col0, rows, cols, out) {
      matrix.fill(row0, col0, rows, cols, out);
      if (out instanceof Float64Array) {
        for (let k = 0; k < rows * cols; k++) out[k] = Math.fround(out[k]);
      }
    },
  };
}

/** The lower triangle by columns, rows ascending: the usual compressed storage. */
interface LowerColumns {
  readonly start: Int32Array;
  readonly row: Int32Array;
  readonly value: Float64Array;
}

/** Compresses `count` entries of the lower triangle given in any order. */
function compress(
  n: number,
  count: number,
  entry: (k: number) => [i: number, j: number, value: number],
): LowerColumns {
  const order = Uint32Array.from({ length: count }, (_, k) => k);
  const rows = new Int32Array(count);
  const cols = new Int32Array(count);
  const values = new Float64Array(count);
  for (let k = 0; k < count; k++) {
    const [i, j, value] = entry(k);
    rows[k] = i;
    cols[k] = j;
    values[k] = value;
  }
  order.sort((a, b) => cols[a] - cols[b] || rows[a] - rows[b]);
  const start = new Int32Array(n + 1);
  for (let k = 0; k < count; k++) start[cols[k] + 1] += 1;
  for (let j = 0; j < n; j++) start[j + 1] += start[j];
  return {
    start,
    row: Int32Array.from(order, (k) => rows[k]),
    value: Float64Array.from(order, (k) => values[k]),
  };
}

function notSymmetric(
  name: string,
  i: number,
  j: number,
  below: number,
  above: number,
): HeadraceError {
  const entries = `entry (${i + 1}, ${j + 1}) is ${below}, entry (${j + 1}, ${i + 1}) is ${above}`;
  return new HeadraceError('ERR_MATRIX_NOT_SYMMETRIC', `${name} is not symmetric: ${entries}`);
}

const differ = (a: number, b: number): boolean =>
  Math.abs(a - b) > 1e-12 * Math.max(Math.abs(a), Math.abs(b));

function sparseMatrix(
  matrix: MatrixMarket & { format: 'coordinate' },
  name: string,
): SymmetricMatrix {
  const { rows: n, rowIndex, colIndex, value } = matrix;
  const below: number[] = [];
  const above: number[] = [];
  for (let k = 0; k < value.length; k++) {
    if (rowIndex[k] >= colIndex[k]) below.push(k);
    if (rowIndex[k] <= colIndex[k]) above.push(k);
  }
  const lower = compress(n, below.length, (k) => [
    rowIndex[below[k]],
    colIndex[below[k]],
    value[below[k]],
  ]);
  if (!matrix.symmetric) {
    const upper = compress(n, above.length, (k) => [
      colIndex[above[k]],
      rowIndex[above[k]],
      value[above[k]],
    ]);
    for (let j = 0; j < n; j++) {
      let a = lower.start[j];
      let b = upper.start[j];
      while (a < lower.start[j + 1] || b < upper.start[j + 1]) {
        // The smaller row of the two; an entry that is not stored is zero.
        const rowA = a < lower.start[j + 1] ? lower.row[a] : n;
        const rowB = b < upper.start[j + 1] ? upper.row[b] : n;
        const i = Math.min(rowA, rowB);
        const valueA = rowA === i ? lower.value[a++] : 0;
        const valueB = rowB === i ? upper.value[b++] : 0;
        if (differ(valueA, valueB)) throw notSymmetric(name, i, j, valueA, valueB);
      }
    }
  }
  return {
    n,
    description: name,
    fill(row0, col0, rows, cols, out) {
      out.fill(0, 0, rows * cols);
      for (let c = 0; c < cols; c++) {
        const end = lower.start[col0 + c + 1];
        let k = lowerBound(lower.row, lower.start[col0 + c], end, row0);
        for (; k < end && lower.row[k] < row0 + rows; k++) {
          const r = lower.row[k] - row0;
          out[c * rows + r] = lower.value[k];
          if (row0 === col0 && r < cols && c < rows) out[r * rows + c] = lower.value[k];
        }
      }
    },
  };
}

/** First k in [begin, end) with sorted[k] >= wanted, or end. */
function lowerBound(sorted: Int32Array, begin: number, end: number, wanted: number): number {
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if (sorted[middle] < wanted) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

function denseMatrix(matrix: MatrixMarket & { format: 'array' }, name: string): SymmetricMatrix {
  const { rows: n, value, symmetric } = matrix;
  // Place of (i, j), i >= j, in the stored order.
  const place = symmetric
    ? (i: number, j: number) => j * n - (j * (j - 1)) / 2 + (i - j)
    : (i: number, j: number) => j * n + i;
  if (!symmetric) {
    for (let j = 0; j < n; j++) {
      for (let i = j + 1; i < n; i++) {
        const [below, above] = [value[j * n + i], value[i * n + j]];
        if (differ(below, above)) throw notSymmetric(name, i, j, below, above);
      }
    }
  }
  return {
    n,
    description: name,
    fill(row0, col0, rows, cols, out) {
      for (let c = 0; c < cols; c++) {
        for (let r = 0; r < rows; r++) {
          const [i, j] = [row0 + r, col0 + c];
          out[c * rows + r] = value[i >= j ? place(i, j) : place(j, i)];
        }
      }
    },
  };
}

/**
 * The matrix of a Matrix Market file as input for a Cholesky factorisation.
 *
 * @throws HeadraceError `ERR_MATRIX_NOT_SYMMETRIC`: not square, or two entries differ that should be equal
 * (relative difference above 1e-12).
 */
export function symmetricMatrix(matrix: MatrixMarket, name: string): SymmetricMatrix {
  if (matrix.rows !== matrix.cols) {
    throw new HeadraceError(
      'ERR_MATRIX_NOT_SYMMETRIC',
      `${name} is not square: ${matrix.rows} rows, ${matrix.cols} columns`,
    );
  }
  return matrix.format === 'coordinate' ? sparseMatrix(matrix, name) : denseMatrix(matrix, name);
}

/**
 * The right-hand side of a Matrix Market file.
 *
 * @throws HeadraceError `ERR_MATRIX_SIZE` when it is not one column of n rows.
 */
export function rightHandSide(matrix: MatrixMarket, n: number, name: string): Float64Array {
  if (matrix.cols !== 1 || matrix.rows !== n) {
    throw new HeadraceError(
      'ERR_MATRIX_SIZE',
      `${name} has ${matrix.rows} rows and ${matrix.cols} columns, but a right-hand side needs ${n} rows and 1 column`,
    );
  }
  if (matrix.format === 'array') return matrix.value;
  const dense = new Float64Array(n);
  matrix.rowIndex.forEach((row, k) => {
    dense[row] = matrix.value[k];
  });
  return dense;
}
