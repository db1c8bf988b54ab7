// Starts a benchmark on several ranks: more ranks than cores are allowed, and the launcher ends a run that takes too long.
import { spawnSync } from 'node:child_process';

const SECONDS = 300;
/** For programs whose output is wanted: a machine with other load takes longer, and the figures are medians. */
const LONG_SECONDS = 600;

/** The message for a machine without a launcher. */
export function noLauncher(launcher: string): string {
  return `${launcher} cannot be started; to get it: npm run setup -- --require-mpi\n`;
}

/** The command line of a launcher of either library. */
function launchLine(launcher: string, ranks: number, seconds: number): string[] {
  const { stdout } = spawnSync(launcher, ['--version'], { encoding: 'utf8' });
  const isOpen = /Open MPI|OpenRTE/.test(stdout ?? '');
  const options = isOpen
    ? ['--allow-run-as-root', '--oversubscribe', '--timeout', String(seconds)]
    : [];
  return [...options, '--bind-to', 'none', '-n', String(ranks)];
}

/** Runs `node` with `args` on `ranks` ranks; returns the exit code. */
export function underMpirun(
  ranks: number,
  args: readonly string[],
  launcher = 'mpirun',
  env: Readonly<Record<string, string>> = {},
): number {
  const { status, error } = spawnSync(
    launcher,
    [...launchLine(launcher, ranks, SECONDS), process.execPath, ...args],
    { stdio: 'inherit', env: { ...process.env, MPIEXEC_TIMEOUT: String(SECONDS), ...env } },
  );
  if (error !== undefined) process.stderr.write(noLauncher(launcher));
  return status ?? 1;
}

/** Runs a program on `ranks` ranks; returns what it printed. @throws Error when it fails */
export function printedByRanks(
  ranks: number,
  [program, ...args]: readonly [string, ...string[]],
  launcher: string,
): string {
  const line = [...launchLine(launcher, ranks, LONG_SECONDS), program, ...args];
  const { status, signal, error, stdout } = spawnSync(launcher, line, {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    env: { ...process.env, MPIEXEC_TIMEOUT: String(LONG_SECONDS) },
  });
  if (error !== undefined) throw new Error(noLauncher(launcher), { cause: error });
  if (status === 0) return stdout;
  throw new Error(`'${launcher} ${line.join(' ')}' ended with ${signal ?? `code ${status}`}`);
}

/** An MPI library of this machine: the programs that start ranks and compile for it. */
export interface MpiPrograms {
  readonly launcher: string;
  readonly compiler: string;
}

/** The name and version of an MPI library, without the details of its build. */
export function shortName(library: string): string {
  return library.split(/[,\n]/)[0]?.replace(/\s+/g, ' ') ?? '';
}

/** The libraries that are installed; Debian gives the programs of each a suffix. */
export function mpiLibraries(): MpiPrograms[] {
  const exists = ({ launcher }: MpiPrograms): boolean =>
    spawnSync(launcher, ['--version'], { stdio: 'ignore' }).status === 0;
  const of = (suffix: string): MpiPrograms => ({
    launcher: `mpirun${suffix}`,
    compiler: `mpicxx${suffix}`,
  });
  const named = [of('.openmpi'), of('.mpich')].filter(exists);
  return named.length > 0 ? named : [of('')].filter(exists);
}
