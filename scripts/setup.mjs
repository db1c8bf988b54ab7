// Command line of the set-up: `node scripts/setup.mjs [--require-mpi] [...]`. Run by `npm start` and
// `npm test` before anything else; silent when there is nothing to do. All messages go to stderr.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { forwardSignals, isEnding } from './lib/command.mjs';
import { nodeProblem, SetUpError, setUp } from './lib/set-up.mjs';

const usage = `usage: node scripts/setup.mjs [options]

Brings dependencies, the native addon and the compiled TypeScript up to date.

  --with-mpi            try to get Open MPI too
  --with-mpich          try to get MPICH beside it too
  --with-chromium       try to get a browser for the viewer's checks too
  --require-openblas    fail when OpenBLAS cannot be had
  --require-mpi         fail when Open MPI cannot be had
  --require-mpich       fail when MPICH cannot be had
  --require-chromium    fail when no browser can be had
  --force               redo every step
  --help                this text

As root on Debian/Ubuntu missing system packages are installed;
HEADRACE_NO_SYSTEM_INSTALL=1 turns that off.
`;

const say = (line) => process.stderr.write(`setup: ${line}\n`);

function parse() {
  const flag = { type: /** @type {const} */ ('boolean') };
  try {
    return parseArgs({
      options: {
        'with-mpi': flag,
        'with-chromium': flag,
        'require-openblas': flag,
        'require-mpi': flag,
        'with-mpich': flag,
        'require-mpich': flag,
        'require-chromium': flag,
        force: flag,
        help: flag,
      },
    }).values;
  } catch (error) {
    process.stderr.write(`setup: ${error.message}\n\n${usage}`);
    process.exit(2);
  }
}

const problem = nodeProblem();
if (problem !== undefined) {
  say(problem);
  process.exit(1);
}
const flags = parse();
if (flags.help) {
  process.stdout.write(usage);
  process.exit(0);
}
forwardSignals();
const chosen = (prefix) =>
  ['openblas', 'mpi', 'mpich', 'chromium'].filter((name) => flags[`${prefix}-${name}`] === true);
try {
  await setUp({
    root: path.dirname(path.dirname(fileURLToPath(import.meta.url))),
    say,
    want: chosen('with'),
    require: chosen('require'),
    force: flags.force === true,
  });
} catch (error) {
  if (!isEnding()) {
    if (error instanceof SetUpError) say(error.message);
    else process.stderr.write(`setup: ${error.stack}\n`);
    process.exitCode = 1;
  }
}
