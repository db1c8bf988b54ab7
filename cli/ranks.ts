// `--ranks R`: starts the same command on R ranks under mpirun. Under a launcher it only joins.
// Invariant: only rank 0 prints; the exit code is the launcher's.
import { spawn } from 'node:child_process';
import { mpiRemedy } from '../devices/installation.js';
import { HeadraceError } from '../scheduler/errors.js';
import type { CliContext } from './context.js';

type Environment = CliContext['env'];

/** Arguments for mpirun: more ranks than cores are allowed, and no rank is tied to one core. */
function launcherArguments(version: string, ranks: number): string[] {
  const openmpi = /Open MPI|OpenRTE/.test(version);
  return [
    ...(openmpi ? ['--allow-run-as-root', '--oversubscribe', '--bind-to', 'none'] : []),
    '-n',
    String(ranks),
  ];
}

/**
 * Runs `command` (program and arguments) on `ranks` ranks and passes its output on; resolves with the exit code.
 * Rejects with `ERR_MPI_MISSING` if mpirun is missing.
 */
export async function launch(
  command: readonly string[],
  ranks: number,
  context: CliContext,
): Promise<number> {
  const version = await output('mpirun', ['--version'], context.env);
  const child = spawn('mpirun', [...launcherArguments(version, ranks), ...command], {
    env: { ...context.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.on('data', (text: Buffer) => context.stdout.write(text.toString()));
  child.stderr.on('data', (text: Buffer) => context.stderr.write(text.toString()));
  // SIGTERM, never SIGKILL: mpirun needs the time to end its ranks.
  const stop = (): boolean => child.kill('SIGTERM');
  context.signal.addEventListener('abort', stop, { once: true });
  try {
    return await new Promise<number>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve(code ?? 1));
    });
  } finally {
    context.signal.removeEventListener('abort', stop);
  }
}

function output(program: string, args: readonly string[], env: Environment): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    child.on('error', (cause) =>
      reject(
        new HeadraceError('ERR_MPI_MISSING', '--ranks needs mpirun, which was not found', {
          remedy: mpiRemedy('openmpi', env),
          cause,
        }),
      ),
    );
    child.on('close', () => resolve(text));
  });
}
