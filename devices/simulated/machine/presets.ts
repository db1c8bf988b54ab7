// Machines by name. The figures of the H200 nodes were measured on one with two and one with four GPUs (CUDA 13,
// driver 580): links, launch, and cuBLAS DGEMM by tile size. Figures without a measurement are marked as assumed.
import type { Table } from './kernel-times.js';
import type { MachineDescription } from './machine.js';

/** Double precision, operations per second by tile size (cuBLAS DGEMM). */
const dgemm: Table = [
  [64, 0.6e12], // assumed
  [256, 12e12], // assumed
  [512, 32e12], // assumed
  [1024, 50.9e12],
  [2048, 64.0e12],
  [4096, 64.8e12],
  [16384, 66.0e12],
];
const scaled = (table: Table, by: number): Table =>
  table.map(([n, rate]) => [n, rate * by] as const);
/** Single precision: assumed the same (the FP64 tensor cores' rate is the FP32 cores' rate). */
const sgemm = dgemm;
/** Triangular solves alone on a GPU (native/gpu/cuda/triangular_solve.cpp). Assumed below tile 2048. */
const trsm: Table = [
  [64, 0.1e12],
  [256, 1.5e12],
  [512, 4e12],
  [1024, 10e12],
  [2048, 19e12],
  [4096, 40e12],
  [16384, 45e12],
];
/** Cholesky of one tile on one GPU: far below DGEMM because it is sequential along the diagonal. Assumed but for tile 2048. */
const potrf: Table = [
  [256, 0.1e12],
  [1024, 1.0e12],
  [2048, 2.5e12],
  [4096, 6e12],
  [16384, 25e12],
];

function tileKernels(suffix: string, rate: Table): MachineDescription['kernels'] {
  return {
    [`gemm_${suffix}`]: { product: [0, 1, 2], factor: 2, rate, share: 1 },
    [`syrk_${suffix}`]: { product: [0, 0, 1], factor: 1, rate: scaled(rate, 0.85), share: 1 }, // assumed
    // Of several streams they take 279 us each for tile 2048, alone 452.
    [`trsm_${suffix}`]: { product: [0, 1, 1], factor: 1, rate: trsm, share: 0.6 },
    [`potrf_${suffix}`]: { product: [0, 0, 0], factor: 1 / 3, rate: potrf, share: 0.1 }, // share assumed
  };
}

function h200(gpus: number): MachineDescription {
  return {
    name: `h200-${gpus}`,
    gpus,
    gpuMemory: 139 * 2 ** 30,
    hostMemory: 2 ** 40 * 0.75,
    workers: 16,
    h2d: { bandwidth: 55e9, latency: 7.8e-6 },
    d2h: { bandwidth: 55e9, latency: 7.8e-6 },
    // Of four GPUs at once: out 36 GB/s each, and 23.9 each way in both directions (bench/peers/gpu_copies.cu).
    bothWays: 50e9,
    hostCopies: { read: 285e9, write: 144e9 },
    d2d: { bandwidth: 388e9, latency: 7.8e-6 },
    network: { bandwidth: 50e9 * Math.max(1, gpus), latency: 5e-6 }, // assumed: a 400 Gbit/s card per GPU
    engine: { command: 3e-7, wake: 5e-5, launch: 3.1e-6 },
    kernels: {
      ...tileKernels('f64', dgemm),
      ...tileKernels('f32', sgemm),
      // Bytes read and written once, at 80 % of the memory's bandwidth; assumed.
      stencil_2d_f64: { product: [0, 1], factor: 16, rate: 0.8 * 4.8e12 },
      '*': 1e-5,
    },
    hostKernels: { '*': 1e-5, init: 0 },
    source: 'measured on H200 nodes with 2 and 4 GPUs; docs/simulation.md names the assumptions',
  };
}

export const presets: Readonly<Record<string, MachineDescription>> = {
  'h200-1': h200(1),
  'h200-2': h200(2),
  'h200-4': h200(4),
  'h200-8': h200(8),
};
