// `headrace run <algorithm>`: finds the algorithm.
import { type CommandRunner, ExitCode } from './context.js';
import { nearest, UsageError } from './options.js';

const algorithms: Readonly<Record<string, () => Promise<CommandRunner>>> = {
  cholesky: async () => (await import('./run-cholesky.js')).runCholeskyCommand,
};

const usage = `usage: headrace run <algorithm> [options]

  cholesky    factorise a symmetric positive definite matrix, solve and check

headrace run <algorithm> --help lists the options.
`;

/** Runs the algorithm that the first word names. */
export const runRunCommand: CommandRunner = async (argv, context) => {
  const [name, ...rest] = argv;
  if (name === '--help') {
    context.stdout.write(usage);
    return ExitCode.ok;
  }
  if (name === undefined || name.startsWith('-'))
    throw new UsageError('an algorithm is needed', usage);
  if (!Object.hasOwn(algorithms, name)) {
    const near = nearest(name, Object.keys(algorithms));
    const hint = near === undefined ? '' : `, did you mean ${near}?`;
    throw new UsageError(`unknown algorithm ${JSON.stringify(name)}${hint}`, usage);
  }
  const run = await algorithms[name]();
  return run(rest, context);
};
