// Matrices for tests: values that need no seed, and checks that use nothing of the project.

/** Element (i, j) of a symmetric, diagonally dominant and so positive definite matrix of order n. */
export function spd(i: number, j: number, n: number): number {
  return i === j ? n + 1 : 1 / (1 + Math.abs(i - j)) + ((i * j) % 7) / 10;
}

/** Fills a tile of the symmetric positive definite matrix of order n. */
export function fillSpd(
  n: number,
): (
  values: Float64Array | Float32Array,
  row: number,
  column: number,
  rows: number,
  columns: number,
) => void {
  return (values, row, column, rows, columns) => {
    for (let c = 0; c < columns; c++) {
      for (let r = 0; r < rows; r++) values[c * rows + r] = spd(row + r, column + c, n);
    }
  };
}

/** Fills a tile with small integers, so that products are exact. */
export function fillIntegers(
  seed: number,
): (
  values: Float64Array | Float32Array,
  row: number,
  column: number,
  rows: number,
  columns: number,
) => void {
  return (values, row, column, rows, columns) => {
    for (let c = 0; c < columns; c++) {
      for (let r = 0; r < rows; r++) {
        values[c * rows + r] = (((row + r) * 31 + (column + c) * 17 + seed) % 19) - 9;
      }
    }
  };
}

/** max |A - L L^T| / (n max |A|) of the lower factor L of `spd`, column-major. */
export function residual(l: Float64Array | Float32Array, n: number): number {
  let worst = 0;
  let largest = 0;
  for (let j = 0; j < n; j++) {
    for (let i = j; i < n; i++) {
      let sum = 0;
      for (let k = 0; k <= j; k++) sum += l[k * n + i] * l[k * n + j];
      const a = spd(i, j, n);
      largest = Math.max(largest, Math.abs(a));
      worst = Math.max(worst, Math.abs(a - sum));
    }
  }
  return worst / (n * largest);
}

/** The product of two column-major matrices. */
export function product(
  a: Float64Array,
  b: Float64Array,
  m: number,
  n: number,
  k: number,
): Float64Array {
  const c = new Float64Array(m * n);
  for (let j = 0; j < n; j++) {
    for (let l = 0; l < k; l++) {
      const factor = b[j * k + l];
      for (let i = 0; i < m; i++) c[j * m + i] += a[l * m + i] * factor;
    }
  }
  return c;
}

/** A whole column-major matrix. */
export interface Whole {
  readonly rows: number;
  readonly columns: number;
  readonly values: ArrayLike<number>;
}

/** Element (i, j) in [-1, 1): a hash of the place and a seed, so that it depends on nothing else. */
export function scattered(i: number, j: number, seed: number): number {
  let x =
    (Math.imul(i + 1, 0x9e3779b1) ^
      Math.imul(j + 1, 0x85ebca77) ^
      Math.imul(seed + 1, 0xc2b2ae3d)) |
    0;
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
  return (x ^ (x >>> 15)) / 2 ** 31;
}

/** Fills a tile from a function of row and column. */
export function fillFrom(
  at: (i: number, j: number) => number,
): (
  values: Float64Array | Float32Array,
  row: number,
  column: number,
  rows: number,
  columns: number,
) => void {
  return (values, row, column, rows, columns) => {
    for (let c = 0; c < columns; c++)
      for (let r = 0; r < rows; r++) values[c * rows + r] = at(row + r, column + c);
  };
}

/** The matrix of a function of row and column. */
export function wholeFrom(
  rows: number,
  columns: number,
  at: (i: number, j: number) => number,
  element: 'f64' | 'f32' = 'f64',
): Whole {
  const values = new (element === 'f64' ? Float64Array : Float32Array)(rows * columns);
  fillFrom(at)(values, 0, 0, rows, columns);
  return { rows, columns, values };
}

/** Unit roundoff, half the distance from 1 to the next number. */
export const EPS: Readonly<Record<'f64' | 'f32', number>> = { f64: 2 ** -53, f32: 2 ** -24 };

/** The largest |A X - B| / (|A| |X|), element by element: how many roundings a solution is off. */
export function worstSolution(a: Whole, x: Whole, b: Whole): number {
  let worst = 0;
  for (let j = 0; j < b.columns; j++) {
    for (let i = 0; i < b.rows; i++) {
      let sum = 0;
      let size = 0;
      for (let k = 0; k < a.columns; k++) {
        const term = a.values[k * a.rows + i] * x.values[j * x.rows + k];
        sum += term;
        size += Math.abs(term);
      }
      const off = Math.abs(sum - b.values[j * b.rows + i]) / size;
      // A NaN is worse than anything.
      if (!(off <= worst)) worst = off;
    }
  }
  return worst;
}

/** max |A X - B| / (max |A| max |X|) over all elements, and so at most as large as the norm-wise residual times n. */
export function residualOf(a: Whole, x: Whole, b: Whole): number {
  let worst = 0;
  for (let j = 0; j < b.columns; j++) {
    for (let i = 0; i < b.rows; i++) {
      let sum = 0;
      for (let k = 0; k < a.columns; k++)
        sum += a.values[k * a.rows + i] * x.values[j * x.rows + k];
      const off = Math.abs(sum - b.values[j * b.rows + i]);
      // A NaN is worse than anything.
      if (!(off <= worst)) worst = off;
    }
  }
  const largest = (of: Whole): number =>
    Array.from(of.values).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return worst / (largest(a) * largest(x));
}
