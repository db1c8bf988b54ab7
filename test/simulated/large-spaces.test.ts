// Memory beyond 1 TiB: offsets, sizes and sums are exact beyond the range of an int32 in any unit.
import { expect, test } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import { Runtime, readWrite, task, write } from '../../index.js';

const TIB = 2 ** 40;
const born = task({ name: 'born', flows: { to: write('f64') }, kernel: 'born' });
const change = task({ name: 'change', flows: { of: readWrite('f64') }, kernel: 'change' });

test.each([2, 64, 2048, 8192])('a host of %i TiB is used to its last byte', async (tib) => {
  const machine = {
    ...presets['h200-1'],
    hostMemory: tib * TIB,
    gpuMemory: (tib * TIB) / 4,
    kernels: { born: 1e-5, change: 1e-5 },
  };
  const runtime = Runtime.over(new SimulatedBackend({ machine }), { checked: true });
  const length = (tib * TIB) / 8 / 8;
  const data = Array.from({ length: 8 }, (_, i) => runtime.data('f64', length, { name: `d${i}` }));
  // The GPU holds two of the eight: the others go to the host, and come back from there.
  const report = await runtime.run((graph) => {
    for (const to of data) graph.insert(born, { to });
    for (const of of data) graph.insert(change, { of }, { device: 0 });
    for (const of of data) graph.insert(change, { of }, { device: 'host' });
  });
  expect(report.tasks).toBe(24);
  const [host, gpu] = runtime.memory();
  expect([host.capacity, host.used, host.highWater]).toEqual([tib * TIB, tib * TIB, tib * TIB]);
  expect(gpu.highWater).toBe((tib * TIB) / 4);
  expect(report.bytes.d2h).toBeGreaterThanOrEqual(tib * TIB);
  for (const datum of data) datum.close();
  await runtime.engine.quiet();
  expect(runtime.memory().map(({ used }) => used)).toEqual([0, 0]);
  await runtime.close();
});
