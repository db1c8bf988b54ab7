// Factorises a symmetric positive definite matrix on two emulated GPUs. The memory of each holds a quarter of it. So
// tiles are evicted, written back and copied from device to device.
import { Runtime, TiledMatrix } from 'headrace';
import { cholesky, choleskyFlops } from 'headrace/algorithms';

const n = 1000;
const tile = 96; // does not divide 1000: the last tiles are smaller

await using runtime = await Runtime.create({ gpus: 2, gpuMemory: '1MiB' });
const a = new TiledMatrix(
  runtime,
  'f64',
  { rows: n, tile, lower: true, name: 'A' },
  (values, row, column, rows, columns) => {
    for (let j = 0; j < columns; j++) {
      for (let i = 0; i < rows; i++) {
        const distance = Math.abs(row + i - (column + j));
        values[j * rows + i] = distance === 0 ? n : 1 / (1 + distance);
      }
    }
  },
);

const report = await runtime.run((graph) => cholesky(graph, a));
const l = await a.read();

// Solve A x = b with b = A (1, ..., 1): forward, then backward substitution.
const x = new Float64Array(n);
for (let i = 0; i < n; i++) {
  for (let j = 0; j < n; j++) x[i] += i === j ? n : 1 / (1 + Math.abs(i - j));
}
for (let j = 0; j < n; j++) {
  x[j] /= l[j * n + j];
  for (let i = j + 1; i < n; i++) x[i] -= l[j * n + i] * x[j];
}
for (let j = n - 1; j >= 0; j--) {
  for (let i = j + 1; i < n; i++) x[j] -= l[j * n + i] * x[i];
  x[j] /= l[j * n + j];
}
const error = Math.max(...x.map((value) => Math.abs(value - 1)));

console.log(
  `${report.tasks} tasks, ${(choleskyFlops(n) / report.seconds / 1e9).toFixed(1)} GFLOP/s`,
);
console.log(`forward error ${error.toExponential(1)}`);
console.log(`evictions ${report.evictions}, of which written back ${report.spills}`);
console.log(
  `bytes: to devices ${report.bytes.h2d}, from devices ${report.bytes.d2h}, between devices ${report.bytes.d2d}`,
);
