// The distribution of work over workers, in virtual time: the shares depend on decisions only, not on the machine of the
// test.

import { expect, test } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { type Graph, Runtime, read, readWrite, task, write } from '../../index.js';
import { partOf } from '../support/grids.js';
import { queueId } from '../support/handles.js';

const link = task({ name: 'link', flows: { x: readWrite('f64') }, kernel: 'empty' });
const point = task({
  name: 'point',
  flows: { out: write('f64'), left: read('f64'), mid: read('f64'), right: read('f64') },
  kernel: 'empty',
});

/** Inserts steps of a program over some data. */
type Program = (graph: Graph, runtime: Runtime) => void;

/** Share of all workers' time that a program's second run spends in kernels of `seconds` each. */
async function share(workers: number, seconds: number, program: () => Program): Promise<number> {
  const machine = {
    ...presets['h200-1'],
    gpus: 0,
    workers,
    engine: { command: 4e-7, wake: 5e-6, launch: 1e-7 },
    kernels: { '*': seconds },
    hostKernels: { '*': seconds },
  };
  const backend = new SimulatedBackend({ machine });
  const runtime = Runtime.over(backend, { plans: 'off' });
  const busy = (): number => {
    let sum = 0;
    for (let q = 0; q < workers; q++) sum += backend.busy(queueId(q));
    return sum;
  };
  const insert = program();
  await runtime.run((graph) => insert(graph, runtime));
  const [start, before] = [backend.now(), busy()];
  await runtime.run((graph) => insert(graph, runtime));
  const result = (busy() - before) / (workers * (backend.now() - start));
  await runtime.close();
  return result;
}

function columns(runtime: Runtime, count: number) {
  return Array.from({ length: count }, () => runtime.data(new Float64Array(2)));
}

const chains = (count: number, steps: number) => (): Program => {
  let data: ReturnType<typeof columns> | undefined;
  return (graph, runtime) => {
    data ??= columns(runtime, count);
    for (let i = 0; i < steps; i++) for (const x of data) graph.insert(link, { x });
  };
};

const stencil = (width: number, steps: number) => (): Program => {
  let even: ReturnType<typeof columns> | undefined;
  let odd: ReturnType<typeof columns> | undefined;
  return (graph, runtime) => {
    even ??= columns(runtime, width);
    odd ??= columns(runtime, width);
    for (let t = 0; t < steps; t++) {
      const [from, to] = t % 2 === 0 ? [even, odd] : [odd, even];
      for (let p = 0; p < width; p++) {
        const left = from[Math.max(0, p - 1)];
        const right = from[Math.min(width - 1, p + 1)];
        graph.insert(point, { out: to[p], left, mid: from[p], right });
      }
    }
  };
};

// 20 us: as many steps as 5 us, and shares between those of 5 and of 200 us.
for (const microseconds of partOf([5, 20, 200, 2000], [5, 200, 2000])) {
  const seconds = microseconds * 1e-6;
  const steps = Math.max(40, Math.min(1000, Math.round(0.02 / seconds)));
  test(`chains of ${microseconds} us tasks keep all workers busy`, async () => {
    for (const count of [2, 4, 16]) {
      expect(await share(2, seconds, chains(count, steps)), `${count} chains`).toBeGreaterThan(
        0.94,
      );
    }
    // Three chains on two workers: one has to change sides again and again.
    expect(await share(2, seconds, chains(3, steps)), '3 chains').toBeGreaterThan(0.75);
    expect(await share(4, seconds, chains(16, steps)), '16 on 4').toBeGreaterThan(0.85);
  });

  test(`columns of a stencil of ${microseconds} us tasks stay together and are spread evenly`, async () => {
    for (const width of [4, 16, 32]) {
      expect(await share(2, seconds, stencil(width, steps)), `width ${width}`).toBeGreaterThan(
        0.97,
      );
    }
    expect(await share(4, seconds, stencil(64, steps)), '64 on 4').toBeGreaterThan(0.97);
  });
}
