// Ranks with CUDA GPUs on the stub driver (npm run setup -- --with-stubs builds it). Each process leaves a report of the
// driver calls that it made and of the rules that it broke.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { mpirun, type RankResult } from '../mpi/mpirun.js';
import { beside, stub } from '../support/needs.js';

export const program: string = beside('headrace_gpu_tests');
const scratch: string[] = [];
const temporary = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'headrace-stub-ranks-'));
  scratch.push(made);
  return made;
};
afterAll(() => {
  for (const each of scratch) rmSync(each, { recursive: true, force: true });
});

export interface Outcome {
  readonly run: RankResult;
  /** Calls of the driver by name, summed over all processes. */
  readonly calls: Readonly<Record<string, number>>;
  readonly broken: readonly string[];
}

export interface Wish {
  readonly program?: string;
  readonly ranks?: number;
  /** Ended after that long; default 100. */
  readonly seconds?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** The MPI library claims to take device pointers: truly, or not. */
  readonly aware?: 'truly' | 'lie';
}

/** Runs a rank program of test/mpi/programs on the stub driver. */
export async function launch(given: object, wish: Wish = {}): Promise<Outcome> {
  const reports = temporary();
  const aware: Record<string, string> =
    wish.aware === undefined
      ? {}
      : { LD_PRELOAD: stub('stub_mpi_aware'), HEADRACE_STUB_AWARE: wish.aware };
  const run = await mpirun(wish.ranks ?? 2, wish.program ?? 'grid.mjs', {
    library: 'openmpi',
    args: [JSON.stringify({ driver: 'cuda', gpus: 1, ...given })],
    seconds: wish.seconds ?? 100,
    env: {
      HEADRACE_CUDA_LIBRARY: stub('stub_cuda'),
      HEADRACE_NVRTC_LIBRARY: stub('stub_nvrtc'),
      HEADRACE_CUBLAS_LIBRARY: stub('stub_blas'),
      HEADRACE_CUSOLVER_LIBRARY: stub('stub_blas'),
      HEADRACE_CACHE: temporary(),
      HEADRACE_STUB_REPORT: reports,
      HEADRACE_STUB_DEVICES: '4',
      ...aware,
      ...wish.env,
    },
  });
  const calls: Record<string, number> = {};
  const broken: string[] = [];
  for (const file of readdirSync(reports)) {
    for (const line of readFileSync(join(reports, file), 'utf8').split('\n')) {
      const space = line.indexOf(' ');
      const [name, rest] = [line.slice(0, space), line.slice(space + 1)];
      if (name === 'broken') broken.push(rest);
      else if (space > 0) calls[name] = (calls[name] ?? 0) + Number(rest);
    }
  }
  return { run, calls, broken };
}
