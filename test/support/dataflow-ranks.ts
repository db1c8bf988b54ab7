// Programs on simulated ranks whose memory has bytes, with disturbed clocks: what each rank sees. Tiles of one element have kernels.
import { setImmediate } from 'node:timers/promises';
import type { SimulatedKernel } from '../../devices/simulated/machine/backend.js';
import type { Runtime } from '../../index.js';
import { disturbedRanks } from './simulated-ranks.js';

const at = (memory: Uint8Array, offset: number): Float64Array =>
  new Float64Array(memory.buffer, memory.byteOffset + offset, 1);

/** The tile operations for tiles of one element of f64. */
const tileKernels: Readonly<Record<string, SimulatedKernel>> = {
  gemm_f64: ({ memory, flows: [a, b, c], params: [, , , , , alpha, beta] }) => {
    const [x, y, z] = [a, b, c].map((offset) => at(memory, offset));
    z[0] = alpha * x[0] * y[0] + (beta === 0 ? 0 : beta * z[0]);
    return 0;
  },
  syrk_f64: ({ memory, flows: [a, c], params: [, , , , alpha, beta] }) => {
    const [x, z] = [a, c].map((offset) => at(memory, offset));
    z[0] = alpha * x[0] * x[0] + beta * z[0];
    return 0;
  },
  trsm_f64: ({ memory, flows: [a, b], params: [, , , , , unit, alpha] }) => {
    const [x, y] = [a, b].map((offset) => at(memory, offset));
    y[0] = (alpha * y[0]) / (unit === 1 ? 1 : x[0]);
    return 0;
  },
  potrf_f64: ({ memory, flows: [a] }) => {
    const x = at(memory, a);
    x[0] = Math.sqrt(x[0]);
    return 0;
  },
  getrf_unpivoted_f64: () => 0,
};

interface DataflowRanks {
  readonly ranks: number;
  readonly seed: number;
  readonly gpus?: number;
  /** Default: true. */
  readonly checked?: boolean;
  readonly window?: number;
}

/** What each rank sees, or its error. Throws if they stand still. */
export async function settledOnRanks<T>(
  { ranks, seed, gpus = 0, checked = true, window }: DataflowRanks,
  program: (runtime: Runtime) => Promise<T>,
): Promise<PromiseSettledResult<T>[]> {
  const runtimes = disturbedRanks({
    ...{ ranks, seed, machine: { gpus }, kernels: tileKernels },
    options: window === undefined ? { checked } : { checked, window },
  });
  let seen: PromiseSettledResult<T>[] | undefined;
  void Promise.allSettled(
    runtimes.map(async (runtime) => {
      try {
        return await program(runtime);
      } finally {
        await runtime.close();
      }
    }),
  ).then((all) => {
    seen = all;
  });
  for (let i = 0; i < 100_000 && seen === undefined; i++) await setImmediate();
  if (seen === undefined) throw new Error(`still waiting: ${runtimes[0].explain()}`);
  return seen;
}

/** What each rank sees. Throws the first error. */
export async function seenOnRanks<T>(
  where: DataflowRanks,
  program: (runtime: Runtime) => Promise<T>,
): Promise<T[]> {
  return (await settledOnRanks(where, program)).map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}
