// Oracle "stencil 1D": T steps with a halo of radius r equal the serial program bit for bit.
import { describe, expect, it } from 'vitest';
import { stencil } from '../../algorithms/index.js';
import type { Datum, Runtime } from '../../index.js';
import { kernelLibrary } from '../support/kernel-library.js';
import { GPUS, MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { random } from '../support/tasks.js';

/** Blocks of uneven size. */
const LENGTHS = [50, 64, 7, 129, 33, 64];

function serial(start: Float64Array, weights: Float64Array, steps: number): Float64Array {
  const radius = (weights.length - 1) / 2;
  let from = start;
  for (let t = 0; t < steps; t++) {
    const to = new Float64Array(from.length);
    for (let i = 0; i < to.length; i++) {
      let sum = 0;
      for (let k = -radius; k <= radius; k++) sum += weights[k + radius] * (from[i + k] ?? 0);
      to[i] = sum;
    }
    from = to;
  }
  return from;
}

async function parallel(
  runtime: Runtime,
  start: Float64Array,
  weights: Float64Array,
  steps: number,
  gpus: number,
): Promise<Float64Array> {
  let at = 0;
  const place = (b: number): { device?: number } => (gpus > 0 ? { device: b % gpus } : {});
  const blocks = LENGTHS.map((n, b) => runtime.data(start.subarray(at, (at += n)), place(b)));
  const scratch = LENGTHS.map((n, b) => runtime.data('f64', n, place(b)));
  const w = runtime.data(weights);
  const beyond = runtime.data(new Float64Array(Math.max(1, (weights.length - 1) / 2)));
  let result: readonly Datum<'f64'>[] = [];
  const report = await soon(
    runtime,
    runtime.run((graph) => {
      result = stencil(graph, { blocks, scratch, weights: w, beyond }, steps);
    }),
  );
  expect(report.tasks).toBe(LENGTHS.length * steps);
  const parts = await soon(runtime, Promise.all(result.map((block) => block.read())));
  await nothingLeft(runtime, [...blocks, ...scratch, w, beyond]);
  return Float64Array.from(parts.flatMap((part) => [...part]));
}

const cases = [
  { radius: 0, steps: 3 },
  { radius: 1, steps: 40 },
  { radius: 2, steps: 21 },
  { radius: 7, steps: 12 },
];

function numbers(radius: number): { start: Float64Array; weights: Float64Array } {
  const next = random(radius + 1);
  const start = Float64Array.from(
    { length: LENGTHS.reduce((a, b) => a + b) },
    () => next() * 2 - 1,
  );
  return { start, weights: Float64Array.from({ length: 2 * radius + 1 }, () => next() - 0.4) };
}

describe.each(MACHINES)('stencil 1D with JavaScript bodies on $name', ({ options, gpus }) => {
  it.each(cases)(
    'radius $radius, $steps steps: the bits of the serial program',
    async ({ radius, steps }) => {
      const { start, weights } = numbers(radius);
      const result = await onMachine(options, (runtime) =>
        parallel(runtime, start, weights, steps, gpus),
      );
      expect(
        Buffer.from(result.buffer).equals(Buffer.from(serial(start, weights, steps).buffer)),
      ).toBe(true);
    },
  );
});

describe.each(GPUS)('stencil 1D with a C kernel on $name', ({ options, gpus }) => {
  it.each(cases)(
    'radius $radius, $steps steps: the bits of the serial program',
    async ({ radius, steps }) => {
      const { start, weights } = numbers(radius);
      // Just enough for one task: every step evicts.
      const largest = 8192;
      const result = await onMachine({ ...options, gpuMemory: largest }, async (runtime) => {
        expect(runtime.loadKernels(kernelLibrary())).toContain('stencil_1d_f64');
        return await parallel(runtime, start, weights, steps, gpus);
      });
      expect(
        Buffer.from(result.buffer).equals(Buffer.from(serial(start, weights, steps).buffer)),
      ).toBe(true);
    },
  );
});
