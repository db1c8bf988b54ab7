// Command line of the set-up: `node scripts/setup.mjs [--require-mpi] [...]`. `npm start` runs it first. It prints
// nothing if nothing is stale. All messages go to stderr.
import { commandLine } from './lib/command-line.mjs';
import { prepare } from './lib/prepare.mjs';

const usage = `usage: node scripts/setup.mjs [options]

Brings dependencies, the native addon and the compiled TypeScript up to date.

  --with-mpi            try to get Open MPI too
  --with-mpich          try to get MPICH beside it too
  --with-chromium       try to get a browser for the viewer's checks too
  --with-stubs          build the stub GPU drivers for tests too
  --for-tests           all of these
  --require-openblas    fail when OpenBLAS cannot be had
  --require-mpi         fail when Open MPI cannot be had
  --require-mpich       fail when MPICH cannot be had
  --require-chromium    fail when no browser can be had
  --force               redo every step
  --help                this text

As root on Debian/Ubuntu missing system packages are installed;
HEADRACE_NO_SYSTEM_INSTALL=1 turns that off.
`;

const packages = ['openblas', 'mpi', 'mpich', 'chromium'];
const names = [
  'with-mpi',
  'with-mpich',
  'with-chromium',
  'with-stubs',
  'for-tests',
  'force',
].concat(packages.map((name) => `require-${name}`));
const { values } = commandLine(
  usage,
  Object.fromEntries(names.map((name) => [name, { type: /** @type {const} */ ('boolean') }])),
);
const isForTests = values['for-tests'] === true;
await prepare({
  want: packages.filter((name) => isForTests || values[`with-${name}`] === true),
  require: packages.filter((name) => values[`require-${name}`] === true),
  stubs: isForTests || values['with-stubs'] === true,
  force: values.force === true,
});
