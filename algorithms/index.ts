// Algorithms over tiled matrices and data, written with the public API only.
export { cholesky, choleskyFlops } from './cholesky.js';
export { gemm, type GemmOptions, gemmFlops } from './gemm.js';
export { type TileKernels, tileKernels } from './tile-kernels.js';
