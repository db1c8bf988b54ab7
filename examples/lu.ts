// A general system of equations, A X = B, by a tiled LU factorisation with pivoting, on two emulated GPUs whose memory holds a part of
// the matrices. A plain loop of the same problem is beside it.
import { Runtime, TiledMatrix } from 'headrace';
import { lu, luFactors, luSolve } from 'headrace/algorithms';

const [N, COLUMNS, TILE] = [320, 4, 64];
/** A repeatable value in [-1, 1). */
const value = (i: number, j: number): number => {
  const mixed = Math.imul(i * N + j + 1, 0x9e3779b1);
  const bits = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
  return ((bits ^ (bits >>> 13)) >>> 8) / 2 ** 23 - 1;
};
const rowOf = (i: number): Float64Array => Float64Array.from({ length: N }, (_, j) => value(i, j));
/** The right-hand sides of the solutions 1, 2, 3, ... */
const sums = Float64Array.from({ length: N }, (_, i) => rowOf(i).reduce((sum, x) => sum + x, 0));

await using runtime = await Runtime.create({ workers: 1, gpus: 2, gpuMemory: '512KiB' });
const shape = { rows: N, columns: N, tile: TILE };
const A = new TiledMatrix(runtime, 'f64', shape, (tile, row, column, rows) => {
  for (let k = 0; k < tile.length; k++)
    tile[k] = value(row + (k % rows), column + Math.floor(k / rows));
});
const B = new TiledMatrix(runtime, 'f64', { ...shape, columns: COLUMNS }, (tile, row, _, rows) => {
  for (let k = 0; k < tile.length; k++)
    tile[k] = sums[row + (k % rows)] * (1 + Math.floor(k / rows));
});
const factors = luFactors(runtime, A);
const { tasks, seconds } = await runtime.run((graph) => {
  lu(graph, A, factors);
  luSolve(graph, A, factors, B);
});
const X = await B.read();
const error = Math.max(...X.map((x, k) => Math.abs(x - 1 - Math.floor(k / N))));
console.log(`${tasks} tasks, ${(seconds * 1e3).toFixed(0)} ms`);
console.log(`largest error ${error.toExponential(1)}`);

// The plain loop: Gauss with partial pivoting, one right-hand side.
const began = performance.now();
const rows = Array.from({ length: N }, (_, i) => Float64Array.of(...rowOf(i), sums[i]));
for (let k = 0; k < N; k++) {
  let pivot = k;
  for (let i = k + 1; i < N; i++) if (Math.abs(rows[i][k]) > Math.abs(rows[pivot][k])) pivot = i;
  [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
  for (let i = k + 1; i < N; i++) {
    const factor = rows[i][k] / rows[k][k];
    for (let j = k; j <= N; j++) rows[i][j] -= factor * rows[k][j];
  }
}
console.log(`a plain loop takes ${(performance.now() - began).toFixed(0)} ms to triangular form`);
