// Needs of a test beyond Node and the checkout. If a need is not met, the test is skipped, and the report of the test
// command gives the reason and the remedy (scripts/lib/test-report.mjs). A skip without a need counts as failed.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findChromium } from '../../bench/trace-chromium.js';
import { installLine, systemPackages } from '../../scripts/lib/system-packages.mjs';
import { isFull } from './grids.js';

/** Why a test cannot run here. */
interface Unmet {
  /** HEADRACE_TEST_REQUIRE names needs so. */
  readonly id: string;
  /** What is missing, to follow "needs". */
  readonly what: string;
  /** What gets it. */
  readonly remedy: string;
}

interface Need extends Unmet {
  readonly isMet: boolean;
}

declare module 'vitest' {
  interface TaskMeta {
    needs?: Unmet;
  }
}

/** Options of a test or suite: it is skipped, with the reason, where one of its needs is not met. */
export function needing(...needs: readonly Need[]): { skip: boolean; meta: { needs?: Unmet } } {
  const unmet = needs.find(({ isMet }) => !isMet);
  if (unmet === undefined) return { skip: false, meta: {} };
  const { id, what, remedy } = unmet;
  return { skip: true, meta: { needs: { id, what, remedy } } };
}

export type Library = 'openmpi' | 'mpich';
export const LIBRARIES: readonly Library[] = ['openmpi', 'mpich'];

const release = fileURLToPath(new URL('../../build/Release', import.meta.url));
/** A file beside the addon. */
export const beside = (name: string): string => path.join(release, name);
/** A stub driver library. */
export const stub = (name: string): string => beside(`lib${name}.so`);
/** Tests run on the real GPUs of this machine, of which there are so many; 0: on emulated ones and the stub driver. */
export const realGpus: number =
  process.env['HEADRACE_TEST_DRIVER'] === 'cuda'
    ? Number(process.env['HEADRACE_TEST_GPUS'] ?? 1)
    : 0;

const launchers: Readonly<Record<Library, readonly string[]>> = {
  openmpi: ['mpirun.openmpi', 'mpirun'],
  mpich: ['mpirun.mpich', 'mpiexec.hydra'],
};
const found: Map<Library, string | undefined> = new Map();

/** The program that starts ranks of a library, or undefined. */
export function launcherOf(library: Library): string | undefined {
  if (!found.has(library)) {
    const words = library === 'openmpi' ? /Open MPI|OpenRTE/ : /HYDRA|MPICH/;
    found.set(
      library,
      launchers[library].find((program) => {
        const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
        return status === 0 && words.test(stdout);
      }),
    );
  }
  return found.get(library);
}

/** True when one of the addons was built for the library. */
function hasLayer(library: Library): boolean {
  return ['mpi.node', 'mpi-openmpi.node', 'mpi-mpich.node'].map(beside).some((file) => {
    if (!existsSync(file)) return false;
    const isMpich = /libmpich\.so|libmpi\.so\.12/.test(readFileSync(file, 'latin1'));
    return isMpich === (library === 'mpich');
  });
}

function mpi(library: Library): Need {
  const known = systemPackages[library === 'openmpi' ? 'mpi' : 'mpich'];
  return {
    id: library,
    what: `${known.name} and the message layer built for it`,
    remedy: `${installLine(known.packages)} && npm run setup`,
    isMet: launcherOf(library) !== undefined && hasLayer(library),
  };
}

/** The needs of the message layer, by library. */
export const layers: Readonly<Record<Library, Need>> = {
  openmpi: mpi('openmpi'),
  mpich: mpi('mpich'),
};
/** Libraries that can be tested here. */
export const libraries: readonly Library[] = LIBRARIES.filter((each) => layers[each].isMet);
/** The library to use where one is enough. */
export const first: Library | undefined = libraries[0];
/** Any MPI library. */
export const ranks: Need = first === undefined ? layers.openmpi : layers[first];

/**
 * Cells of a grid over a library: all of them over the first one that is here, over the other one those for which the library
 * matters. HEADRACE_TEST_FULL=1: all over both.
 */
export function over<T>(library: Library, cells: readonly T[], matter: readonly T[]): readonly T[] {
  return isFull || library === (first ?? 'openmpi') ? cells : matter;
}

const stubs = (file: string): Need => ({
  id: 'stubs',
  what: 'the stub GPU drivers',
  remedy: 'npm run setup -- --with-stubs',
  isMet: existsSync(file),
});
/** The stub driver libraries. */
export const stubDriver: Need = stubs(stub('stub_cuda'));
/** CUDA GPUs: the stub driver, or real ones. */
export const cuda: Need = realGpus > 0 ? { ...stubDriver, isMet: true } : stubDriver;
/** The native program that tests GPUs on the stub driver. */
export const gpuProgram: Need = stubs(beside('headrace_gpu_tests'));

/** The message layer whose guards can be switched off. */
export const switches: Need = stubs(beside('switches-mpi.node'));

const stubMachine: Need = {
  id: 'stub-machine',
  what: 'a run on the stub driver (scripts/gpu-ranks.mjs does the same on real GPUs)',
  remedy: 'npm test -- native-gpu',
  isMet: realGpus === 0,
};
/** Ranks of Open MPI with CUDA GPUs on the stub driver. */
export const stubRanks: readonly Need[] = [
  stubMachine,
  layers.openmpi,
  gpuProgram,
  stubs(stub('stub_mpi_aware')),
];

/** So many GPUs in one process. */
export const gpus = (count: number): Need => ({
  id: 'gpus',
  what: `${count} GPUs`,
  remedy: 'a machine that has them, or emulated ones: npm test',
  isMet: realGpus === 0 || realGpus >= count,
});

export const linux: Need = {
  id: 'linux',
  what: 'Linux',
  remedy: 'run the tests on Linux',
  isMet: process.platform === 'linux',
};

export const chromium: Need = {
  id: 'chromium',
  what: 'Chromium',
  remedy: installLine(systemPackages.chromium.packages),
  isMet: findChromium() !== undefined,
};

/** A matrix that is not part of the repository. */
export const matrix = (name: string, file: string | undefined): Need => ({
  id: 'matrix',
  what: `the matrix ${name} of the SuiteSparse collection`,
  remedy: `download it (https://sparse.tamu.edu) and set HEADRACE_DATA to its folder`,
  isMet: file !== undefined,
});
