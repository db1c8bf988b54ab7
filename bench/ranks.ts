// Starts a benchmark on several ranks: more ranks than cores are allowed, and the launcher ends a run that takes too long.
import { spawnSync } from 'node:child_process';

const SECONDS = '120';

/** The message for a machine without a launcher. */
export function noLauncher(launcher: string): string {
  return `${launcher} cannot be started; to get it: npm run setup -- --require-mpi\n`;
}

/** Runs `node` with `args` on `ranks` ranks; returns the exit code. */
export function underMpirun(
  ranks: number,
  args: readonly string[],
  launcher = 'mpirun',
  env: Readonly<Record<string, string>> = {},
): number {
  const { stdout } = spawnSync(launcher, ['--version'], { encoding: 'utf8' });
  const isOpen = /Open MPI|OpenRTE/.test(stdout ?? '');
  const options = isOpen ? ['--allow-run-as-root', '--oversubscribe', '--timeout', SECONDS] : [];
  const { status, error } = spawnSync(
    launcher,
    [...options, '--bind-to', 'none', '-n', String(ranks), process.execPath, ...args],
    { stdio: 'inherit', env: { ...process.env, MPIEXEC_TIMEOUT: SECONDS, ...env } },
  );
  if (error !== undefined) process.stderr.write(noLauncher(launcher));
  return status ?? 1;
}
