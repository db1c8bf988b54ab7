// Runs a program on two ranks of this host and returns its answer: for questions about the MPI library that may end
// in a crash.
import { execFile } from 'node:child_process';
import { withoutLaunch } from '../launch.js';

const SECONDS = 30;

function firstLine(program: string, argument: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(program, [argument], { timeout: 20_000 }, (error, stdout) =>
      resolve(error === null ? stdout : undefined),
    );
  });
}

/**
 * Starts two ranks of `program`. Resolves to the JSON object that one of them prints on a line of its own, once both
 * have ended well.
 * @throws Error with the reason: no mpirun, no answer in time, or the ranks' own words.
 */
export async function askTwoRanks(
  program: string,
  ...args: readonly string[]
): Promise<Readonly<Record<string, unknown>>> {
  const version = await firstLine('mpirun', '--version');
  if (version === undefined) throw new Error('mpirun is not on PATH');
  const options = /Open MPI|OpenRTE/.test(version)
    ? ['--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', '--timeout', String(SECONDS)]
    : ['-bind-to', 'none'];
  const env = withoutLaunch(process.env);
  return new Promise((resolve, reject) => {
    const child = execFile(
      'mpirun',
      [...options, '-n', '2', process.execPath, program, ...args],
      { timeout: (SECONDS + 10) * 1000, env: { ...env, MPIEXEC_TIMEOUT: String(SECONDS) } },
      (error, stdout, stderr) => {
        const line = stdout.split('\n').find((each) => each.startsWith('{'));
        if (error === null && line !== undefined)
          resolve(JSON.parse(line) as Record<string, unknown>);
        else {
          const said = /\w*Error: .*/.exec(stderr)?.[0] ?? error?.message.split('\n')[0];
          reject(new Error(said ?? 'no answer'));
        }
      },
    );
    child.stdin?.end();
  });
}
