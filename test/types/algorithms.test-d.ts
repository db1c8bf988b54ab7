// Matrices of different precision do not mix.
import { it } from 'vitest';
import {
  allReduce,
  cholesky,
  choleskySolve,
  conjugateGradient,
  conjugateGradientData,
  gemm,
  reduce,
  reducePartials,
  taskBench,
  triangularSolve,
} from '../../algorithms/index.js';
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
  triangularSolve(graph, double, double, { upper: true });
  choleskySolve(graph, single, single);
  // @ts-expect-error f32 and f64
  choleskySolve(graph, double, single);
  // @ts-expect-error tiles hold f64 or f32
  new TiledMatrix(runtime, 'i32', { rows: 4, tile: 2 });
  // @ts-expect-error no such pattern
  taskBench(graph, { pattern: 'stencil_2d', width: 1, steps: 1 }, []);
});

it('conjugate gradients keep precisions apart', () => {
  const double = new TiledMatrix(runtime, 'f64', { rows: 4, tile: 2 });
  const single = new TiledMatrix(runtime, 'f32', { rows: 4, tile: 2 });
  const [doubles, singles] = [[runtime.data('f64', 4)], [runtime.data('f32', 4)]];
  const data = conjugateGradientData(runtime, double, double);
  void conjugateGradient(graph, double, double, double, data, { every: 5 });
  void conjugateGradient(graph, { columns: 2 }, doubles, doubles, data);
  // @ts-expect-error f32 and f64
  void conjugateGradient(graph, double, single, double, data);
  // @ts-expect-error f32 and f64
  void conjugateGradient(graph, { columns: 2 }, singles, singles, data);
});

it('reductions keep element types apart', () => {
  const doubles = [runtime.data('f64', 1), runtime.data('f64', 1)];
  const partials = reducePartials(runtime, doubles);
  const single = runtime.data('f32', 1);
  reduce(graph, { inputs: doubles, partials, result: runtime.data('f64', 1) }, 'sum');
  allReduce(graph, { inputs: [single], partials: [], results: [single] }, 'max');
  // @ts-expect-error f32 and f64
  reduce(graph, { inputs: doubles, partials, result: single }, 'sum');
  // @ts-expect-error no such operation
  reduce(graph, { inputs: doubles, partials, result: doubles[0] }, 'product');
});
