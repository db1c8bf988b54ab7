// `headrace run <program>` and `headrace run <algorithm>`: finds out which of them is meant.
import { existsSync, statSync } from 'node:fs';
import { type CommandRunner, ExitCode } from './context.js';
import { nearest, UsageError } from './options.js';
import { programOptions, runProgramCommand, runUsage, wordsBeforeProgram } from './run-program.js';

const algorithms: Readonly<Record<string, () => Promise<CommandRunner>>> = {
  cholesky: async () => (await import('./run-cholesky.js')).runCholeskyCommand,
};
const SOURCE = /\.[cm]?[jt]s$/;

const usage: string =
  runUsage(`  cholesky    factorise a symmetric positive definite matrix, solve and check

headrace run <algorithm> --help lists the options of the algorithm.
`);

/** Whether a word names a file rather than an algorithm. */
function isFile(word: string): boolean {
  if (Object.hasOwn(algorithms, word)) return false;
  return SOURCE.test(word) || word.includes('/') || (existsSync(word) && statSync(word).isFile());
}

/** Whether a command line (without `node` and the script) starts a program of the user. */
export function startsProgram([command, ...argv]: readonly string[]): boolean {
  const word = argv[wordsBeforeProgram(argv)];
  return command === 'run' && word !== undefined && isFile(word);
}

/** Runs the program or the algorithm that the first word after the options names. */
export const runRunCommand: CommandRunner = async (argv, context) => {
  const first = wordsBeforeProgram(argv);
  const values = programOptions(argv.slice(0, first), usage);
  if (values.help) {
    context.stdout.write(usage);
    return ExitCode.ok;
  }
  const [name, ...rest] = argv.slice(first);
  if (name === undefined) throw new UsageError('a program or an algorithm is needed', usage);
  if (isFile(name)) return runProgramCommand({ file: name, args: rest, values, usage }, context);
  if (!Object.hasOwn(algorithms, name)) {
    const near = nearest(name, Object.keys(algorithms));
    const hint = near === undefined ? '' : `, did you mean ${near}?`;
    throw new UsageError(`there is no file and no algorithm ${JSON.stringify(name)}${hint}`, usage);
  }
  if (first > 0) throw new UsageError(`the options of ${name} follow its name`, usage);
  const run = await algorithms[name]();
  return run(rest, context);
};
