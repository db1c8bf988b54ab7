// Algorithms over tiled matrices and data, written with the public API only.
export { cholesky, choleskyFlops } from './cholesky.js';
export {
  type ConjugateGradientOptions,
  type ConjugateGradientResult,
  conjugateGradient,
} from './conjugate-gradient.js';
export {
  type ConjugateGradientData,
  type ConjugateGradientDataOptions,
  conjugateGradientData,
  type FivePoint,
  type Vector,
} from './conjugate-gradient-data.js';
export { type GemmOptions, gemm, gemmFlops } from './gemm.js';
export { type LuFactors, lu, luFactors, luSolve } from './lu.js';
export {
  dot,
  type MatrixPartials,
  type MatrixReduction,
  matrixPartials,
  reduceMatrix,
} from './matrix-reduction.js';
export type { MemoryOptions } from './panels.js';
export { type BroadcastArguments, broadcastGraph } from './parameterised/broadcast.js';
export { type CholeskyArguments, choleskyGraph } from './parameterised/cholesky.js';
export { type GemmArguments, gemmGraph } from './parameterised/gemm.js';
export { type LuArguments, luGraph } from './parameterised/lu.js';
export { type RedistributeArguments, redistributeGraph } from './parameterised/redistribute.js';
export { type ReduceArguments, reduceGraph } from './parameterised/reduce.js';
export { type StencilArguments, stencilGraph } from './parameterised/stencil.js';
export {
  type Stencil2dArguments,
  stencil2dGraph,
  type Weights2d,
} from './parameterised/stencil-2d.js';
export {
  type TriangularSolveArguments,
  triangularSolveGraph,
} from './parameterised/triangular-solve.js';
export {
  type ApplyQOptions,
  applyQ,
  leastSquares,
  type QrFactors,
  qr,
  qrFactors,
} from './qr.js';
export { type RectangleClass, redistribute } from './redistribute.js';
export {
  type AllReduceData,
  allReduce,
  type ReduceData,
  reduce,
  reducePartials,
} from './reduce.js';
export type { ReduceOperation } from './reduce-classes.js';
export { type StencilClass, type StencilData, stencil, stencilBlock } from './stencil.js';
export {
  TASK_BENCH_PATTERNS,
  type TaskBenchOptions,
  type TaskBenchPattern,
  type TaskBenchShape,
  taskBench,
  taskBenchColumns,
  taskBenchInputs,
} from './task-bench.js';
export { type Real, type TileClasses, tileClasses } from './tile-classes.js';
export * as tile from './tile-operations.js';
export {
  choleskySolve,
  type TriangularSolveOptions,
  triangularSolve,
} from './triangular-solve.js';
