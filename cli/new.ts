// `headrace new DIR`: makes a small project that runs, tests and traces.
// Invariant: it writes only into a folder that is new or empty, and refuses before it writes anything.
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isClone, packageRoot, packageVersion, shellWord } from '../devices/installation.js';
import { describeThrown } from '../trace/thrown.js';
import { type CommandRunner, ExitCode } from './context.js';
import { projectFiles } from './new-files.js';
import { UsageError } from './options.js';

const usage = `usage: headrace new <folder>

Makes a project in a new or empty folder: a program with two task classes, a test, and the scripts start, test and
trace. The name of the folder becomes the name of the package.
`;
/** Names that npm refuses for packages, or that a project with the dependency headrace cannot have. */
const RESERVED: readonly string[] = ['headrace', 'node_modules', 'favicon.ico'];
const MOST_LETTERS = 214;

/** @throws UsageError */
function checkName(name: string): void {
  const isGood = /^[a-z0-9][a-z0-9._-]*$/.test(name) && name.length <= MOST_LETTERS;
  if (isGood && !RESERVED.includes(name)) return;
  throw new UsageError(
    `${JSON.stringify(name)} cannot be the name of the package: it takes lower-case letters, digits, '-', '.' and '_', ` +
      `begins with a letter or a digit, and is not ${RESERVED.join(', ')}`,
    usage,
  );
}

/** @throws UsageError unless the folder is absent, or empty but for a repository. */
function checkEmpty(folder: string): void {
  if (!existsSync(folder)) return;
  if (!statSync(folder).isDirectory()) throw new UsageError(`${folder} is no folder`, usage);
  const found = readdirSync(folder).find((name) => name !== '.git');
  if (found === undefined) return;
  throw new UsageError(`${folder} is not empty: it has ${found}`, usage);
}

/** Runs the command. */
export const runNewCommand: CommandRunner = async (argv, context) => {
  const [folder, ...more] = argv;
  if (folder === '--help') {
    context.stdout.write(usage);
    return ExitCode.ok;
  }
  if (folder === undefined) throw new UsageError('a folder is needed', usage);
  const wrong = [folder, ...more].find((word) => word.startsWith('-')) ?? more[0];
  if (wrong !== undefined)
    throw new UsageError(`unexpected argument ${JSON.stringify(wrong)}`, usage);
  const name = path.basename(path.resolve(folder));
  checkName(name);
  checkEmpty(folder);
  const headrace = isClone() ? `file:${packageRoot()}` : `^${packageVersion()}`;
  const files = projectFiles(name, headrace);
  try {
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(path.join(folder, file), text);
  } catch (error) {
    throw new UsageError(`${folder} cannot be written: ${describeThrown(error)}`, usage);
  }
  const enter = path.resolve(folder) === process.cwd() ? '' : `  cd ${shellWord(folder)}\n`;
  context.stdout.write(
    `${folder} has ${Object.keys(files).join(', ')}. Next:\n\n` +
      `${enter}  npm install\n  npm start\n  npm test\n  npm run trace\n`,
  );
  return ExitCode.ok;
};
