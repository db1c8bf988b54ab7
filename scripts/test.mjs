// Runs the test suites one after the other. The very last line is the sum of their reports: `tests: N passed, N failed,
// N skipped`. The lines before it give the reasons of skipped tests, and what failed. Exit code 1 after a failure or a crash.
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { forwardSignals, isEnding, runCommand } from './lib/command.mjs';
import { commandLine, usageError } from './lib/command-line.mjs';
import { prepare, root as project } from './lib/prepare.mjs';
import { listFiles } from './lib/stamp.mjs';
import { suites } from './lib/suites.mjs';
import {
  countProgram,
  countVitest,
  formatCounts,
  formatProblems,
  formatSkips,
  sumCounts,
} from './lib/test-report.mjs';

// HEADRACE_TEST_ROOT is for tests of this script: it runs on a small project of their own.
const root = process.env['HEADRACE_TEST_ROOT'] ?? project;
const reports = path.join(root, '.cache', 'test-reports');

const usage = (names) => `usage: npm test [-- suite ... [-- vitest arguments]]

Sets up the needs of the tests (Open MPI, MPICH, Chromium and OpenBLAS, if it may install packages), then runs all
suites or the named ones: ${names.join(', ')}.

  --help    this text

Tests whose needs cannot be met are skipped; a table at the end gives the reasons.
HEADRACE_NO_SYSTEM_INSTALL=1 installs nothing.
HEADRACE_TEST_REQUIRE=openmpi,mpich,chromium,stubs,sanitizers makes such a skip a failure.
`;

async function runVitest(name, { minutes }, extra) {
  const report = path.join(reports, `${name}.json`);
  rmSync(report, { force: true });
  const vitest = fileURLToPath(new URL('./vitest.mjs', import.meta.resolve('vitest/package.json')));
  const { code } = await runCommand(
    process.execPath,
    [
      vitest,
      'run',
      '--project',
      name,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...extra,
    ],
    { cwd: root, inherit: true, env: environment(), timeoutMs: limit(minutes) },
  );
  let parsed;
  try {
    parsed = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    parsed = undefined;
  }
  return countVitest(parsed, code, {
    isPartial: extra.some((word) => /^(-t|--testNamePattern)/.test(word)),
    required: (process.env['HEADRACE_TEST_REQUIRE'] ?? '').split(','),
  });
}

/** Builds the native test program (in a folder of its own; the addon's build stays as the set-up left it). */
async function buildProgram() {
  const cmake = (...args) => runCommand('cmake', args, { cwd: root });
  const folder = 'build-tests';
  if (!existsSync(path.join(root, folder, 'CMakeCache.txt'))) {
    const made = await cmake(
      '-S',
      '.',
      '-B',
      folder,
      '-DHEADRACE_TESTS=ON',
      '-DCMAKE_BUILD_TYPE=Release',
    );
    if (made.code !== 0) return made;
  }
  return cmake('--build', folder, '--target', 'headrace_tests', '--parallel', '2');
}

async function runProgram({ program, minutes }) {
  if (existsSync(path.join(root, 'CMakeLists.txt'))) {
    const built = await buildProgram();
    if (built.code !== 0) {
      process.stdout.write(built.output);
      const problems = [`${program} could not be built`];
      return { passed: 0, failed: 1, skipped: 0, problems, skips: [] };
    }
  }
  const { code, output, stdout } = await runCommand(path.join(root, program), [], {
    cwd: root,
    env: environment(),
    timeoutMs: limit(minutes),
  });
  process.stdout.write(output);
  return countProgram(stdout, code, output);
}

/** Runs a script that builds and runs a native test program. */
async function runScript({ script, options = [], minutes }) {
  const { code, output, stdout } = await runCommand(
    process.execPath,
    [path.join(root, script), ...options],
    {
      cwd: root,
      env: environment(),
      timeoutMs: limit(minutes),
    },
  );
  process.stdout.write(output);
  return countProgram(stdout, code, output);
}

/** Milliseconds; HEADRACE_TEST_SECONDS overrides every limit. */
function limit(minutes) {
  return 1000 * Number(process.env['HEADRACE_TEST_SECONDS'] ?? minutes * 60);
}

function environment() {
  const env = { ...process.env };
  if (!process.stdout.isTTY) env['NO_COLOR'] = '1';
  return env;
}

const separator = process.argv.indexOf('--');
const extra = separator === -1 ? [] : process.argv.slice(separator + 1);
const help = usage(Object.keys(suites));
const { positionals: names } = commandLine(
  help,
  {},
  { words: true, args: process.argv.slice(2, separator === -1 ? undefined : separator) },
);
const unknown = names.filter((name) => !Object.hasOwn(suites, name));
if (unknown.length > 0) usageError(help, `unknown suite ${unknown.join(', ')}`);
if (root === project)
  await prepare({ want: ['openblas', 'mpi', 'mpich', 'chromium'], stubs: true });
else forwardSignals();
mkdirSync(reports, { recursive: true });

const all = [];
for (const [name, suite] of Object.entries(suites)) {
  if (isEnding() || (names.length > 0 && !names.includes(name))) continue;
  if (isEmpty(suite)) continue;
  process.stdout.write(`\n== ${name}\n`);
  const run = () => {
    if (suite.script !== undefined) return runScript(suite);
    return suite.program !== undefined ? runProgram(suite) : runVitest(name, suite, extra);
  };
  const counts = await run();
  all.push({ ...counts, problems: counts.problems.map((problem) => `${name}: ${problem}`) });
}

function isEmpty(suite) {
  if (suite.sources !== undefined) return !existsSync(path.join(root, suite.sources));
  return listFiles(root, suite.folders, (file) => file.endsWith(suite.ending)).length === 0;
}

const sum = sumCounts(all);
if (all.length === 0 || isEnding()) sum.failed += 1; // nothing ran, or not to the end: not a success
process.stdout.write(`\n${formatSkips(sum)}${formatProblems(sum)}${formatCounts(sum)}\n`);
if (!isEnding()) process.exitCode = sum.failed > 0 ? 1 : 0;
