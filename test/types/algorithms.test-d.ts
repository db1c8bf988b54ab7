// Matrices of different precision do not mix.
import { it } from 'vitest';
import { cholesky, gemm, taskBench } from '../../algorithms/index.js';
import type { Graph, Runtime } from '../../index.js';
import { TiledMatrix } from '../../index.js';

declare const runtime: Runtime;
declare const graph: Graph;

it('algorithms keep precisions apart', () => {
  const double = new TiledMatrix(runtime, 'f64', { rows: 4, tile: 2 });
  const single = new TiledMatrix(runtime, 'f32', { rows: 4, tile: 2 });
  cholesky(graph, double);
  cholesky(graph, single);
  gemm(graph, double, double, double);
  // @ts-expect-error f32 and f64
  gemm(graph, double, single, double);
  // @ts-expect-error tiles hold f64 or f32
  new TiledMatrix(runtime, 'i32', { rows: 4, tile: 2 });
  // @ts-expect-error no such pattern
  taskBench(graph, { pattern: 'stencil_2d', width: 1, steps: 1 }, []);
});
