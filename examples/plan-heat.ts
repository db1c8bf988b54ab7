// The heat equation on a square plate with cold edges, by explicit time steps on four emulated GPUs. Each GPU has a block of rows, and reads
// the edge rows of its neighbours as parts of their blocks. Two steps, there and back, are planned once and played 100 times. A plain loop is beside them.
import { type Datum, list, Runtime, read, slot, task, write } from 'headrace';

const [GPUS, ROWS, COLUMNS, PLAYS] = [4, 16, 64, 100];
/** Share of heat that flows to the neighbours in a time step: shorter steps in the second half. */
const share = (play: number): number => (play < PLAYS / 2 ? 0.2 : 0.1);

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
const [even, odd] = [blocks(), blocks()];
const firstRow = (block: Datum<'f64'>): Datum<'f64'> => block.part(0, COLUMNS);
const lastRow = (block: Datum<'f64'>): Datum<'f64'> => block.part(size - COLUMNS, COLUMNS);

const sizes = { rows: ROWS, columns: COLUMNS };
const weights = { centre: slot('rest'), horizontal: slot('share'), vertical: slot('share') };
const steps = await runtime.plan((graph) => {
  for (const [source, target] of [[even, odd] as const, [odd, even] as const]) {
    for (const [b, from] of source.entries()) {
      const above = source.slice(Math.max(0, b - 1), b).map(lastRow);
      const edges = { above, below: source.slice(b + 1, b + 2).map(firstRow) };
      graph.insert(heat, { to: target[b], from, ...edges, ...sizes, ...weights });
    }
  }
});
const { tasks, bytes, evictions } = steps.report;
console.log(`planned: ${tasks} tasks, ${bytes.d2d} bytes between GPUs, ${evictions} evictions`);
const values = { share, rest: (play: number): number => 1 - 4 * share(play) };
const played = await steps.run({ times: PLAYS, values });
console.log(`played: ${played.iterations} times, ${(played.seconds * 1e3).toFixed(0)} ms`);
const result = (await Promise.all(even.map((block) => block.read()))).flatMap((part) => [...part]);

const began = performance.now();
let plain = begin;
for (let step = 0; step < 2 * PLAYS; step++)
  plain = plain.map((value, i, old) => {
    const [left, right] = [i % COLUMNS && old[i - 1], (i + 1) % COLUMNS && old[i + 1]];
    const sum = left + right + (old[i - COLUMNS] ?? 0) + (old[i + COLUMNS] ?? 0);
    return value + share(step >> 1) * (sum - 4 * value);
  });
console.log(`a plain loop takes ${(performance.now() - began).toFixed(0)} ms`);
const worst = Math.max(...result.map((value, i) => Math.abs(value - plain[i])));
console.log(worst < 1e-10 ? 'the same heat' : 'different heat');
