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
