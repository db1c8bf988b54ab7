// The heat equation on a square plate with cold edges, by explicit time steps on four emulated GPUs. Each GPU has a block of rows,
// and copies of the neighbours' edge rows. Two steps, there and back, are planned once and played 100 times.
import { type Datum, Runtime, read, slot, task, write } from 'headrace';
import { compile } from './support/compile.js';

const [GPUS, ROWS, COLUMNS, PLAYS] = [4, 16, 64, 100];
/** Share of heat that flows to the neighbours in a time step: shorter steps in the second half. */
const share = (play: number): number => (play < PLAYS / 2 ? 0.2 : 0.1);

const heat = task({
  name: 'heat',
  flows: {
    to: write('f64'),
    first: write('f64'),
    last: write('f64'),
    from: read('f64'),
    above: read('f64'),
    below: read('f64'),
  },
  params: { rows: 'i32', columns: 'i32', share: 'f64' },
  kernel: 'heat_f64',
});

using library = compile('plans.c');
await using runtime = await Runtime.create({ gpus: GPUS, gpuMemory: '64KiB' });
runtime.loadKernels(library.file);

const begin = Float64Array.from({ length: GPUS * ROWS * COLUMNS }, (_, i) => (i * 37) % 101);
/** The blocks of the plate on their GPUs, with copies of their edge rows. */
const plate = (): { readonly [K in 'blocks' | 'first' | 'last']: Datum<'f64'>[] } => {
  const perGpu = (from: number, to: number): Datum<'f64'>[] =>
    Array.from({ length: GPUS }, (_, device) =>
      runtime.data(begin.slice((device * ROWS + from) * COLUMNS, (device * ROWS + to) * COLUMNS), {
        device,
      }),
    );
  return { blocks: perGpu(0, ROWS), first: perGpu(0, 1), last: perGpu(ROWS - 1, ROWS) };
};
const [even, odd] = [plate(), plate()];
const cold = runtime.data(new Float64Array(COLUMNS), { name: 'cold' });

const steps = await runtime.plan(
  (graph) => {
    for (const [from, to] of [[even, odd] as const, [odd, even] as const])
      for (const [b, block] of to.blocks.entries()) {
        const edges = { above: from.last[b - 1] ?? cold, below: from.first[b + 1] ?? cold };
        const written = { to: block, first: to.first[b], last: to.last[b] };
        const sizes = { rows: ROWS, columns: COLUMNS };
        graph.insert(heat, {
          ...written,
          from: from.blocks[b],
          ...edges,
          ...sizes,
          share: slot('share'),
        });
      }
  },
  { name: 'two steps' },
);
const { tasks, bytes, evictions } = steps.report;
console.log(`planned: ${tasks} tasks, ${bytes.d2d} bytes between GPUs, ${evictions} evictions`);
const played = await steps.run({ times: PLAYS, values: { share } });
console.log(`played: ${played.iterations} times, ${played.tasks} tasks`);
const parts = await Promise.all(even.blocks.map((block) => block.read()));
const result = parts.flatMap((part) => [...part]);

let plain = begin;
for (let step = 0; step < 2 * PLAYS; step++)
  plain = plain.map((value, i, old) => {
    const left = i % COLUMNS > 0 ? old[i - 1] : 0;
    const right = (i + 1) % COLUMNS > 0 ? old[i + 1] : 0;
    const sum = (old[i - COLUMNS] ?? 0) + (old[i + COLUMNS] ?? 0) + left + right;
    return value + share(step >> 1) * (sum - 4 * value);
  });
console.log(result.every((value, i) => value === plain[i]) ? 'same bits' : 'different bits');
