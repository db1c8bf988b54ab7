// Parameterised algorithms have the bits of the inserted ones: on hosts, emulated GPUs, in little memory, and as plans.
import { describe, expect, it } from 'vitest';
import {
  cholesky,
  choleskyGraph,
  gemm,
  gemmGraph,
  reduce,
  reduceGraph,
  reducePartials,
  stencil,
  stencilGraph,
  triangularSolve,
  triangularSolveGraph,
} from '../../algorithms/index.js';
import { type Runtime, TiledMatrix, type TiledMatrixOptions } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { random } from '../support/tasks.js';

/** A matrix of random elements with `n` more on the diagonal. */
function matrix(
  runtime: Runtime,
  options: TiledMatrixOptions,
  seed: number,
  element: 'f64' | 'f32' = 'f64',
): TiledMatrix {
  return new TiledMatrix<'f64' | 'f32'>(runtime, element, options, (values, row, column, rows) => {
    for (let at = 0; at < values.length; at++) {
      const [i, j] = [row + (at % rows), column + Math.floor(at / rows)];
      const symmetric = random(seed + Math.max(i, j) * 1000 + Math.min(i, j))();
      values[at] = symmetric + (i === j ? options.rows : 0);
    }
  });
}

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it.each(['f64', 'f32'] as const)('cholesky of %s', async (element) => {
    await onMachine({ ...options, gpuMemory: 24_576 }, async (runtime) => {
      const shape = { rows: 90, tile: 16, lower: true };
      const [a, b] = [0, 1].map(() => matrix(runtime, shape, 1, element));
      const one = await soon(
        runtime,
        runtime.run((graph) => cholesky(graph, a, { tilesPerGpu: 100 })),
      );
      const other = await soon(runtime, runtime.run(choleskyGraph, { A: b }));
      expect(other.tasks).toBe(one.tasks);
      expect(await b.read()).toEqual(await a.read());
      await nothingLeft(runtime, [...a, ...b]);
    });
  });

  it('gemm', async () => {
    await onMachine({ ...options, gpuMemory: 24_576 }, async (runtime) => {
      const a = matrix(runtime, { rows: 50, columns: 70, tile: 16 }, 2);
      const b = matrix(runtime, { rows: 70, columns: 40, tile: 16 }, 3);
      const [c, d] = [0, 1].map(
        () => new TiledMatrix(runtime, 'f64', { rows: 50, columns: 40, tile: 16 }),
      );
      await soon(
        runtime,
        runtime.run((graph) => gemm(graph, a, b, c)),
      );
      await soon(runtime, runtime.run(gemmGraph, { A: a, B: b, C: d }));
      expect(await d.read()).toEqual(await c.read());
      await nothingLeft(runtime, [...a, ...b, ...c, ...d]);
    });
  });

  it('triangular solve', async () => {
    await onMachine({ ...options, gpuMemory: 24_576 }, async (runtime) => {
      const a = matrix(runtime, { rows: 70, tile: 16 }, 4);
      const [b, c] = [0, 1].map(() => matrix(runtime, { rows: 70, columns: 40, tile: 16 }, 5));
      await soon(
        runtime,
        runtime.run((graph) => triangularSolve(graph, a, b)),
      );
      await soon(runtime, runtime.run(triangularSolveGraph, { A: a, B: c }));
      expect(await c.read()).toEqual(await b.read());
      await nothingLeft(runtime, [...a, ...b, ...c]);
    });
  });

  it.each([1, 2, 3, 20])('stencil of %i steps', async (steps) => {
    await onMachine(options, async (runtime) => {
      const next = random(6);
      const place = (b: number) => (gpus > 0 ? { device: b % gpus } : {});
      const make = () => {
        const values = random(7);
        const lengths = [8, 3, 11, 5];
        return {
          blocks: lengths.map((n, b) =>
            runtime.data(Float64Array.from({ length: n }, values), place(b)),
          ),
          scratch: lengths.map((n, b) => runtime.data('f64', n, place(b))),
          weights: w,
          beyond,
        };
      };
      const w = runtime.data(Float64Array.from({ length: 5 }, next));
      const beyond = runtime.data(new Float64Array(2));
      const [one, other] = [make(), make()];
      await soon(
        runtime,
        runtime.run((graph) => void stencil(graph, one, steps)),
      );
      await soon(runtime, runtime.run(stencilGraph, { ...other, steps }));
      const read = async (data: typeof one) =>
        await Promise.all((steps % 2 === 0 ? data.blocks : data.scratch).map((d) => d.read()));
      expect(await read(other)).toEqual(await read(one));
      const data = [one, other].flatMap(({ blocks, scratch }) => [...blocks, ...scratch]);
      await nothingLeft(runtime, [...data, w, beyond]);
    });
  });

  it.each([2, 3, 5, 8, 13])('reduction of %i data', async (count) => {
    await onMachine(options, async (runtime) => {
      const next = random(count);
      const inputs = Array.from({ length: count }, () =>
        runtime.data(Float64Array.from({ length: 6 }, () => next() * 10 ** (next() * 20))),
      );
      const [one, other] = [runtime.data('f64', 6), runtime.data('f64', 6)];
      const partials = reducePartials(runtime, inputs);
      await soon(
        runtime,
        runtime.run((graph) => reduce(graph, { inputs, partials, result: one }, 'sum')),
      );
      await soon(runtime, runtime.run(reduceGraph, { inputs, result: other, operation: 'sum' }));
      expect(await other.read()).toEqual(await one.read());
      // The graph has freed its temporaries.
      await nothingLeft(runtime, [...inputs, ...partials, one, other]);
    });
  });

  it('cholesky as a plan', async () => {
    await onMachine(options, async (runtime) => {
      const shape = { rows: 60, tile: 16, lower: true };
      const [a, b] = [0, 1].map(() => matrix(runtime, shape, 8));
      await soon(
        runtime,
        runtime.run((graph) => cholesky(graph, a)),
      );
      const plan = await soon(runtime, runtime.plan(choleskyGraph, { A: b }));
      await soon(runtime, plan.run());
      expect(await b.read()).toEqual(await a.read());
      plan.close();
      await nothingLeft(runtime, [...a, ...b]);
    });
  });
});
