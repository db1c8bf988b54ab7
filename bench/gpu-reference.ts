// The results for the matrix of the GPU benchmarks (1 off the diagonal, n on it) in closed form, so that results of any
// size can be checked tile by tile without another library.
import type { TiledMatrix } from '../index.js';

/** Element (i, j) of an expected result. */
export type Expected = (i: number, j: number) => number;

/** The product of the matrix with itself: (J + (n-1) I)^2 = (3n-2) J + (n-1)^2 I, whole numbers, so exact. */
export function expectedProduct(n: number): Expected {
  return (i, j) => 3 * n - 2 + (i === j ? (n - 1) ** 2 : 0);
}

/** Its Cholesky factor: below the diagonal every column j holds one value c_j; s is the sum of the squares so far. */
export function expectedFactor(n: number): Expected {
  const diagonal = new Float64Array(n);
  const below = new Float64Array(n);
  let s = 0;
  for (let j = 0; j < n; j++) {
    diagonal[j] = Math.sqrt(n - s);
    below[j] = (1 - s) / diagonal[j];
    s += below[j] ** 2;
  }
  return (i, j) => (i === j ? diagonal[j] : i > j ? below[j] : 0);
}

/**
 * Largest difference of up to `count` tiles, evenly spread, from the expected values, relative to the largest expected
 * element of the tile. Tiles of a lower matrix count below the diagonal only.
 */
export async function worstDifference(
  a: TiledMatrix<'f64'>,
  expected: Expected,
  count: number,
): Promise<number> {
  const places: [number, number][] = [];
  for (let j = 0; j < a.tileColumns; j++) {
    for (let i = a.lower ? j : 0; i < a.tileRows; i++) places.push([i, j]);
  }
  const step = Math.max(1, Math.floor(places.length / count));
  let worst = 0;
  for (let at = 0; at < places.length; at += step) {
    const [ti, tj] = places[at];
    const values = await a.at(ti, tj).read();
    const rows = a.rowsOf(ti);
    let largest = 0;
    let difference = 0;
    for (let c = 0; c < a.columnsOf(tj); c++) {
      for (let r = a.lower && ti === tj ? c : 0; r < rows; r++) {
        const wanted = expected(ti * a.tile + r, tj * a.tile + c);
        largest = Math.max(largest, Math.abs(wanted));
        const off = Math.abs(values[c * rows + r] - wanted);
        // A comparison that is false for NaN would let it through.
        if (!(off <= difference)) difference = off;
      }
    }
    if (!(difference / largest <= worst)) worst = difference / largest;
  }
  return worst;
}
