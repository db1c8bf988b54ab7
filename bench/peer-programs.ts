// The peer programs of the stencil (peers/stencil.h): which of them can be built here, how each is built, started and checked.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { packageRoot } from '../native/installation.js';
import { mpiLibraries, printedByRanks } from './ranks.js';

/** A point of a sweep: kernel iterations per task, 0 for empty tasks, and steps. */
export interface Point {
  readonly iterations: number;
  readonly steps: number;
}

/** What a program measures at a point. */
export interface Timed {
  readonly seconds: number;
  /** Iterations per second of one core while all workers compute: the better one before and after the point. */
  readonly rate: number;
}

/** A built program; it prints the JSON of stencil.h. */
interface Peer {
  readonly name: string;
  readonly title: string;
  start(workers: number, words: readonly string[]): string;
}

/** A peer that cannot be built here, with the Debian package that it needs. */
export interface MissingPeer {
  readonly name: string;
  readonly title: string;
  readonly missing: string;
}

/** How a program is compiled; undefined where a part is missing. */
interface Compilation {
  readonly compiler: string;
  readonly options: readonly string[];
}

interface PeerSource {
  readonly name: string;
  readonly title: string;
  readonly source: string;
  /** The Debian package of its header. */
  readonly needs: string;
  readonly header: string;
  compilation(): Compilation | undefined;
  readonly env?: (folder: string) => Readonly<Record<string, string>>;
  start?(program: string, workers: number, words: readonly string[]): string;
}

const root = packageRoot();
const cxx = process.env['CXX'] ?? 'g++';

const MPI_OPTIONS: readonly string[] = ['-DOMPI_SKIP_MPICXX=1', '-DMPICH_SKIP_MPICXX=1'];
const PEERS: readonly PeerSource[] = [
  {
    name: 'mpi',
    title: 'MPI by hand',
    source: 'mpi_stencil.cpp',
    needs: 'libopenmpi-dev',
    header: 'mpi.h',
    compilation() {
      const compiler = mpiLibraries()[0]?.compiler;
      return compiler === undefined ? undefined : { compiler, options: MPI_OPTIONS };
    },
    start: (program, workers, words) =>
      printedByRanks(workers, [program, ...words], mpiLibraries()[0]?.launcher ?? 'mpirun'),
  },
  {
    name: 'tbb',
    title: 'oneTBB flow graph, built before',
    source: 'tbb_stencil.cpp',
    needs: 'libtbb-dev',
    header: 'oneapi/tbb/flow_graph.h',
    compilation: () => ({ compiler: cxx, options: ['-ltbb'] }),
  },
  {
    name: 'openmp',
    title: 'OpenMP tasks',
    source: 'omp_stencil.cpp',
    needs: 'g++',
    header: 'omp.h',
    compilation: () => ({ compiler: cxx, options: ['-fopenmp'] }),
    // With gcc's default a thread spins for the lock of the team while the thread that holds it has lost its core: on a machine
    // with other load that took up to 20 times as long.
    env: () => ({ GOMP_SPINCOUNT: '1000' }),
  },
  {
    name: 'starpu',
    title: 'StarPU',
    source: 'starpu_stencil.cpp',
    needs: 'libstarpu-dev',
    header: 'starpu.h',
    compilation() {
      for (const name of ['starpu-1.4', 'starpu-1.3']) {
        const args = ['--cflags', '--libs', name];
        const { status, stdout } = spawnSync('pkg-config', args, { encoding: 'utf8' });
        if (status === 0) return { compiler: cxx, options: stdout.trim().split(/\s+/) };
      }
      return undefined;
    },
    env: (folder) => ({ STARPU_HOME: folder, STARPU_SILENT: '1' }),
  },
];

/** Names of all peers. */
export const peerNames: readonly string[] = PEERS.map(({ name }) => name);

function isThere(header: string, { compiler, options }: Compilation): boolean {
  const args = [...options, '-x', 'c++', '-fsyntax-only', '-std=c++17', '-'];
  return spawnSync(compiler, args, { input: `#include <${header}>\n` }).status === 0;
}

/** Compiles a program of bench/peers as the kernels of the addon are compiled. @throws Error when that fails */
function compile(source: string, { compiler, options }: Compilation, to: string): void {
  const sources = [`bench/peers/${source}`, 'native/kernels/basic.cpp'];
  const fixed = ['-O3', '-DNDEBUG', '-std=c++17', '-pthread', '-Inative', '-Inative/include'];
  // Libraries stand behind the sources that use them.
  const args = [...fixed, ...sources, '-o', to, ...options];
  const { status, error } = spawnSync(compiler, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0)
    throw new Error(`${compiler} cannot compile bench/peers/${source}`, { cause: error });
}

/** A program by hand that is compiled for an MPI library. */
type MpiSource = 'mpi_stencil.cpp' | 'mpi_staged.cpp';

/** Uses it, compiled in a folder of its own. @throws Error with the remedy */
export function withMpiProgram<T>(
  source: MpiSource,
  compiler: string,
  use: (program: string) => T,
): T {
  const how = { compiler, options: MPI_OPTIONS };
  if (!isThere('mpi.h', how))
    throw new Error(`${compiler} does not compile; to get it: npm run setup -- --require-mpi`);
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-by-hand-'));
  try {
    const program = path.join(folder, 'by-hand');
    compile(source, how, program);
    return use(program);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function startHere(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): string {
  const { status, signal, error, stdout } = spawnSync(program, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  if (status === 0) return stdout;
  throw new Error(`'${program} ${args.join(' ')}' ended with ${signal ?? `code ${status}`}`, {
    cause: error,
  });
}

/** Builds the peers of these names in a folder; those that cannot be built here are missing. */
export function buildPeers(names: readonly string[], folder: string): (Peer | MissingPeer)[] {
  return PEERS.filter(({ name }) => names.includes(name)).map((peer) => {
    const { name, title, source, needs, header, start, env } = peer;
    const how = peer.compilation();
    if (how === undefined || !isThere(header, how)) return { name, title, missing: needs };
    const program = path.join(folder, name);
    compile(source, how, program);
    return {
      name,
      title,
      start: (workers, words) =>
        start?.(program, workers, words) ?? startHere(program, words, env?.(folder)),
    };
  });
}

/** Headrace as a program of the same kind: its tasks are inserted, recognised, or planned before and played. */
export function headracePeer(mode: 'played' | 'recognised' | 'online'): Peer {
  const script = path.join(root, 'dist', 'bench', 'peer-headrace.js');
  return {
    name: `headrace-${mode}`,
    title: `Headrace, ${mode}`,
    start(workers, [, columns, ...points]) {
      const options = { mode, workers, columns, points };
      const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${value}`]);
      return startHere(process.execPath, [script, ...words]);
    },
  };
}

const wordsOf = (points: readonly Point[]): string[] =>
  points.map(({ iterations, steps }) => `${iterations}x${steps}`);

/** Measures all points in one process. */
export function timePeer(
  peer: Peer,
  workers: number,
  columns: number,
  points: readonly Point[],
): Timed[] {
  const words = [String(workers), String(columns), ...wordsOf(points)];
  return JSON.parse(peer.start(workers, words));
}

/** The row after so many steps, computed here: what checked tasks of stencil.h make of firstValue. */
export function expectedRow(columns: number, steps: number): number[] {
  let row = Array.from({ length: columns }, (_, c) => 11 * c + 1);
  for (let step = 0; step < steps; step++) {
    row = row.map((middle, c) => {
      const left = row[c - 1] ?? middle;
      const right = row[c + 1] ?? middle;
      return (left + 3 * middle + 5 * right + 7 * step + c) % 1_000_003;
    });
  }
  return row;
}

/** Runs checked tasks. @throws Error that names the program, the point and the first column with another value */
export function checkPeer(
  peer: Peer,
  workers: number,
  columns: number,
  points: readonly Point[],
): void {
  const words = ['--check', String(workers), String(columns), ...wordsOf(points)];
  const rows = JSON.parse(peer.start(workers, words)) as number[][];
  for (const [i, { iterations, steps }] of points.entries()) {
    const expected = expectedRow(columns, steps);
    const wrong = expected.findIndex((value, column) => rows[i]?.[column] !== value);
    if (wrong < 0) continue;
    throw new Error(
      `${peer.title}: column ${wrong} after ${steps} steps of ${iterations} iterations is ` +
        `${rows[i]?.[wrong]}, and should be ${expected[wrong]}`,
    );
  }
}
