// The heat equation on a square plate with cold edges, by explicit time steps on four emulated GPUs. Each GPU has a block of rows, and reads the
// edge rows of its neighbours as parts of their blocks: only these rows travel. A plain loop is beside them.
import { type Datum, list, Runtime, read, task, write } from 'headrace';

const [GPUS, ROWS, COLUMNS, STEPS, SHARE] = [4, 16, 64, 100, 0.2];

const row = list(read('f64'));
const heat = task({
  name: 'heat',
  flows: { to: write('f64'), from: read('f64'), above: row, below: row },
  params: { rows: 'i32', columns: 'i32', centre: 'f64', horizontal: 'f64', vertical: 'f64' },
  kernel: 'five_point_f64',
});

await using runtime = await Runtime.create({ gpus: GPUS, gpuMemory: '64KiB' });
const begin = Float64Array.from({ length: GPUS * ROWS * COLUMNS }, (_, i) => (i * 37) % 101);
const size = ROWS * COLUMNS;
const blocks = (): Datum<'f64'>[] =>
  Array.from({ length: GPUS }, (_, device) =>
    runtime.data(begin.slice(device * size, (device + 1) * size), { device }),
  );
let [now, next] = [blocks(), blocks()];

const numbers = {
  rows: ROWS,
  columns: COLUMNS,
  centre: 1 - 4 * SHARE,
  horizontal: SHARE,
  vertical: SHARE,
};
const { tasks, bytes, seconds } = await runtime.run((graph) => {
  for (let step = 0; step < STEPS; step++) {
    for (const [b, from] of now.entries()) {
      const above = now
        .slice(Math.max(0, b - 1), b)
        .map((block) => block.part(size - COLUMNS, COLUMNS));
      const below = now.slice(b + 1, b + 2).map((block) => block.part(0, COLUMNS));
      graph.insert(heat, { to: next[b], from, above, below, ...numbers });
    }
    [now, next] = [next, now];
  }
});
console.log(`${tasks} tasks, ${bytes.d2d} bytes between GPUs, ${(seconds * 1e3).toFixed(0)} ms`);
const edges = STEPS * 2 * (GPUS - 1) * COLUMNS * 8;
console.log(bytes.d2d <= edges ? 'no more than the edges' : `more than the edges, ${edges} bytes`);
const result = (await Promise.all(now.map((block) => block.read()))).flatMap((part) => [...part]);

const began = performance.now();
let plain = begin;
for (let step = 0; step < STEPS; step++)
  plain = plain.map((value, i, old) => {
    const [left, right] = [i % COLUMNS && old[i - 1], (i + 1) % COLUMNS && old[i + 1]];
    const sum = left + right + (old[i - COLUMNS] ?? 0) + (old[i + COLUMNS] ?? 0);
    return value + SHARE * (sum - 4 * value);
  });
console.log(`a plain loop takes ${(performance.now() - began).toFixed(0)} ms`);
const worst = Math.max(...result.map((value, i) => Math.abs(value - plain[i])));
console.log(worst < 1e-10 ? 'the same heat' : 'different heat');
