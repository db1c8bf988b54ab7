// Tests the state of a machine without MPI, BLAS and browser on a machine that has them (lib/hidden.mjs hides them). A
// copy of the checkout sets itself up, the suites that could use them pass, and every printed remedy works in the state
// in which it is printed.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { forwardSignals, isEnding, runCommand } from './lib/command.mjs';
import { commandLine } from './lib/command-line.mjs';
import { hide, whyNotHidden } from './lib/hidden.mjs';
import { prepare, root } from './lib/prepare.mjs';

const usage = `usage: npm run test:hidden -- [options]

Hides MPI, BLAS and the browser from a copy of this checkout, tests there, and tries the printed remedies. Needs
Linux and the right to mount file systems (root).

  --may-skip    if nothing can be hidden, count that as one skipped test
  --remedies    try the remedies only
  --keep        keep the copy
  --help        this text
`;
const flag = /** @type {const} */ ({ type: 'boolean', default: false });
const { values } = commandLine(usage, {
  'may-skip': flag,
  remedies: flag,
  keep: flag,
  // Arguments of the script for its own call inside the namespace.
  inside: { type: 'string' },
});

/** Copies all files of the checkout that git tracks or would add; dependencies are shared. */
function copyCheckout(folder) {
  const { status, stdout } = spawnSync('git', ['ls-files', '-coz', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) throw new Error('git ls-files failed: this is no checkout');
  for (const file of stdout.split('\0')) {
    if (file === '' || !existsSync(path.join(root, file))) continue;
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    cpSync(path.join(root, file), path.join(folder, file));
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  cpSync(path.join(root, 'dist'), path.join(folder, 'dist'), { recursive: true });
}

/** Runs everything in a namespace of its own; returns the exit code. */
async function outside() {
  const why = whyNotHidden();
  if (why !== undefined) {
    process.stdout.write(`  (left out here: needs ${why})\ntests: 0 passed, 0 failed, 1 skipped\n`);
    return values['may-skip'] ? 0 : 1;
  }
  await prepare({ require: ['openblas', 'mpi', 'mpich', 'chromium'] });
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-hidden-'));
  try {
    for (const name of ['project', 'scratch']) mkdirSync(path.join(folder, name));
    copyCheckout(path.join(folder, 'project'));
    const script = path.join(folder, 'project', 'scripts', 'hidden-tests.mjs');
    const words = ['-m', '--propagation', 'private', process.execPath, script, '--inside', folder];
    if (values.remedies) words.push('--remedies');
    return (await runCommand('unshare', words, { inherit: true })).code;
  } finally {
    if (values.keep) process.stderr.write(`kept: ${folder}\n`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

let failed = 0;
let passed = 0;
let env = process.env;

/** Checks one condition and prints the result. */
function check(name, isGood, detail = '') {
  if (isGood) passed += 1;
  else failed += 1;
  process.stdout.write(`${isGood ? 'ok    ' : 'FAILED'}  ${name}\n`);
  if (!isGood && detail !== '') process.stdout.write(`${detail}\n`);
  return isGood;
}

/** Runs a shell command as a user would; prints its output if it must succeed and fails. */
async function shell(command, more = {}) {
  if (isEnding()) return { code: 130, output: '' };
  return runCommand('bash', ['-c', command], { cwd: root, env: { ...env, ...more } });
}

async function doctor() {
  const { output } = await shell('node dist/cli/main.js doctor --json 2>/dev/null');
  const facts = JSON.parse(output.trim().split('\n').at(-1));
  const fix = (what) => facts.missing.find((each) => each.what === what)?.fix;
  return { facts, fix };
}

const layers = () =>
  readdirSync(path.join(root, 'build', 'Release')).filter((name) => /^mpi.*\.node$/.test(name));

/** Runs a remedy as it is printed, in the state in which it is printed. */
async function remedy(where, command, isMended) {
  if (!check(`${where} prints a remedy`, typeof command === 'string')) return;
  const { code, output } = await shell(command);
  check(`its remedy runs: ${command}`, code === 0, output);
  check('its remedy helps', await isMended());
}

/**
 * Checks that the suites that could use the hidden packages pass, and that they name the skipped tests. Left out is what is the
 * same with and without the packages: the native programs on stub drivers, the other commands, the engine.
 */
async function suites() {
  const commands = ['cholesky-check', 'commands', 'matrix-market', 'new', 'run-program'];
  const unit = [
    ...commands.map((name) => `test/cli/${name}.test.ts`),
    ...['test/algorithms', 'test/trace/viewer.test.ts', 'test/examples', 'test/docs'],
  ];
  for (const words of ['native native-gpu mpi', `unit -- ${unit.join(' ')}`]) {
    const { code, output } = await shell(`node scripts/test.mjs ${words}`);
    const end = output.split('\n').slice(-30).join('\n');
    check(`node scripts/test.mjs ${words}`, code === 0, code === 0 ? '' : output);
    process.stdout.write(`${end.slice(Math.max(0, end.indexOf('skipped tests by reason')))}\n`);
    const expected = words.startsWith('unit') ? ['Chromium'] : ['Open MPI', 'MPICH'];
    for (const name of expected) check(`names ${name}`, end.includes(`needs ${name}`));
  }
}

/** Checks the remedies, each in the state in which it is printed. */
async function remedies() {
  await remedy('doctor without an addon', (await doctor()).fix('native addon'), async () => {
    const { facts } = await doctor();
    return facts.addon === true && facts.mpi.found === false && layers().length === 0;
  });
  if (!values.remedies) await suites();
  await remedy('doctor without BLAS', (await doctor()).fix('BLAS'), async () => {
    return (await doctor()).fix('BLAS') === undefined;
  });
  const ranks = await shell('node dist/cli/main.js run cholesky --n 512 --tile 256 --ranks 2');
  check('--ranks 2 without MPI fails', ranks.code !== 0, ranks.output);
  const printed = /\(((?:sudo )?apt-get [^)]*)\)/.exec(ranks.output)?.[1];
  await remedy('--ranks 2', printed, async () => {
    const again = await shell('node dist/cli/main.js run cholesky --n 512 --tile 256 --ranks 2');
    if (again.code !== 0) process.stdout.write(again.output);
    return again.code === 0 && (await doctor()).facts.mpi.found === true;
  });
  await laterPackages();
}

/** Checks the output of the test command and of the set-up after Open MPI is installed. */
async function laterPackages() {
  const needs = async (words) => (await shell(`node scripts/test.mjs ${words}`)).output;
  const named = (output, name) =>
    new RegExp(`needs ${name}.*; to get it: (.*)$`, 'm').exec(output)?.[1];
  const port = 'mpi -- test/mpi/port.test.ts';
  const strict = (words, ...ids) =>
    shell(`node scripts/test.mjs ${words}`, { HEADRACE_TEST_REQUIRE: ids.join(',') });
  await remedy('the tests without MPICH', named(await needs(port), 'MPICH'), async () => {
    const { code, output } = await strict(port, 'openmpi', 'mpich');
    if (code !== 0) process.stdout.write(output);
    return code === 0 && layers().length === 2;
  });
  const viewer = 'unit -- test/trace/viewer.test.ts';
  await remedy('the tests without Chromium', named(await needs(viewer), 'Chromium'), async () => {
    const { code, output } = await strict(viewer, 'chromium');
    if (code !== 0) process.stdout.write(output);
    return code === 0;
  });
  // The stub drivers need a new build for the MPI library that is there now.
  const guards = await strict('native-gpu -- test/native-gpu/guards.test.ts', 'openmpi', 'stubs');
  check('the stub drivers follow the MPI library', guards.code === 0, guards.output);
  const build = await shell('npm run build:native');
  check('npm run build:native', build.code === 0, build.output);
}

async function inside(folder) {
  const count = hide(path.join(folder, 'scratch'));
  process.stdout.write(`hidden: ${count} files and folders of /usr\n`);
  env = {
    ...process.env,
    PATH: `${path.join(folder, 'scratch', 'bin')}:${process.env['PATH']}`,
    HEADRACE_NO_SYSTEM_INSTALL: '1',
    HEADRACE_TEST_REQUIRE: '',
  };
  await remedies();
  process.stdout.write(`tests: ${passed} passed, ${failed} failed, 0 skipped\n`);
  return failed === 0 && !isEnding() ? 0 : 1;
}

forwardSignals();
const isInside =
  values.inside !== undefined &&
  fileURLToPath(import.meta.url).startsWith(path.join(values.inside, 'project'));
process.exitCode = isInside ? await inside(values.inside) : await outside();
