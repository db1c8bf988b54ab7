// The cost of one record: prints nanoseconds per empty exec record on one worker that never runs dry, on an emulated
// GPU, and per task of a 3-dependency stencil on two workers that wait for each other. Plain script, not a test:
//   node native/test/ring-cost.mjs        (after building the addon; uses the addon directly, no TypeScript)
import { arm, completed, EXEC, exec, open, publish, RECORD } from './direct.mjs';

/** The whole ring written first, then published at once. */
function prefilled(workers, gpus) {
  const count = 1 << 16;
  const machine = open(workers, gpus, count);
  let best = Infinity;
  for (let round = 0; round < 20; round++) {
    const base = round * count;
    for (let i = 1; i <= count; i++) exec(machine, 0, (base + i) | 0, -1, 0);
    const start = process.hrtime.bigint();
    publish(machine, 0, (base + count) | 0);
    while (completed(machine, 0) !== ((base + count) | 0));
    best = Math.min(best, Number(process.hrtime.bigint() - start) / count);
  }
  machine.core.close();
  return best;
}

/** The engine writes while the worker reads: `ahead` records at most, published in batches. */
function streamed(workers, gpus, ahead, batch, total) {
  const machine = open(workers, gpus, 4096);
  const start = process.hrtime.bigint();
  let seen = 0;
  for (let i = 1; i <= total; i++) {
    exec(machine, 0, i, -1, 0);
    if (i % batch === 0) publish(machine, 0, i);
    while (i - seen >= ahead) {
      seen = completed(machine, 0);
      if (i - seen < ahead) break;
      arm(machine, 0, i - ahead / 4);
    }
  }
  publish(machine, 0, total);
  while (completed(machine, 0) !== total);
  const time = Number(process.hrtime.bigint() - start) / total;
  machine.core.close();
  return time;
}

/** Two queues; every task waits for the other queue's task of the step before, as a stencil of width 2 x `width`. */
function crossed(width, steps, ringRecords, iterations) {
  const machine = open(2, 0, ringRecords);
  const kernel = machine.core.kernel('compute_bound');
  const start = process.hrtime.bigint();
  const written = [0, 0];
  for (let step = 0; step < steps; step++) {
    const before = [written[0], written[1]];
    for (let q = 0; q < 2; q++) {
      for (let w = 0; w < width; w++) {
        const seq = ++written[q];
        while (seq - completed(machine, q) >= ringRecords) arm(machine, q, seq - ringRecords / 4);
        const edge = w === 0 && step > 0;
        exec(machine, q, seq, edge ? 1 - q : -1, before[1 - q]);
        if (iterations > 0) {
          const ring = machine.rings[q];
          const at = ((seq - 1) & machine.mask) * RECORD;
          ring[at] = EXEC | (1 << 20);
          ring[at + 1] = kernel;
          new Float64Array(ring.buffer, ring.byteOffset + at * 4 + 32, 1)[0] = iterations;
        }
      }
      if (written[q] % 64 < width || width >= 64) publish(machine, q, written[q]);
    }
  }
  for (let q = 0; q < 2; q++) publish(machine, q, written[q]);
  for (let q = 0; q < 2; q++) {
    while (completed(machine, q) !== written[q]) arm(machine, q, written[q]);
  }
  const time = Number(process.hrtime.bigint() - start);
  machine.core.close();
  return time / (2 * width * steps);
}

const ns = (value) => `${value.toFixed(1)} ns`;
console.log('one worker, ring prefilled:          ', ns(prefilled(1, 0)), 'per record');
console.log(
  'one worker, written while it reads:  ',
  ns(streamed(1, 0, 1024, 64, 4e6)),
  'per record',
);
console.log(
  'emulated GPU, written while it reads:',
  ns(streamed(0, 1, 1024, 64, 2e6)),
  'per record',
);
for (const width of [1, 8]) {
  console.log(
    `two workers, each waits for the other, width ${2 * width}:`,
    ns(crossed(width, 2e5, 1024, 0)),
    'per task; with compute_bound(100)',
    ns(crossed(width, 1e5, 1024, 100)),
  );
}
