// Prints the mutation table: for each guard of the engine, the damage in simulation without it, and the number of random
// cases until it was noticed; for guards of native code and between real ranks, the test that notices the damage
// (lib/guard-tests.mjs; it needs the stub driver and MPI).
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { commandLine, positive, usageError, whole } from './lib/command-line.mjs';
import { compiled, dist } from './lib/compiled.mjs';
import { guardTests } from './lib/guard-tests.mjs';
import { runJobs } from './lib/jobs.mjs';
import { root } from './lib/prepare.mjs';
import { countVitest } from './lib/test-report.mjs';

const usage = `usage: npm run test:mutations -- [options] [guard ...]

Switches off all guards or the named ones, and prints the tests that notice it. Exit code 1: no test notices the
absence of a guard, or its test needs a part that is missing here.

  --most N    random cases to try for each guard (3000)
  --jobs N    try guards in N processes (1)
  --json      one JSON object
  --help      this text
`;
const { values, positionals: wanted } = commandLine(
  usage,
  {
    json: { type: 'boolean', default: false },
    most: { type: 'string', default: '3000' },
    jobs: { type: 'string', default: '1' },
  },
  { words: true },
);
const { json } = values;
const most = String(positive(usage, 'most', values.most));
const jobs = whole(usage, 'jobs', values.jobs);
const load = await compiled({ want: ['mpi'], stubs: true });
const { mutations } = await load('devices/simulated/cases/mutations.js');
const program = path.join(dist, 'devices/simulated/cases/mutate.js');
const preload = pathToFileURL(path.join(dist, 'test/support/removable-guards.js')).href;
const LIMIT_MS = 60_000;
const all = [...mutations, ...guardTests].map((each) => each.guard);
const unknown = wanted.filter((guard) => !all.includes(guard));
if (unknown.length > 0) usageError(usage, `there is no guard ${unknown.join(', ')}`);

function line(guard) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--import', preload, program, guard, most], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let errors = '';
    child.stdout.on('data', (data) => (output += data));
    child.stderr.on('data', (data) => (errors += data));
    const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const { hazard, endless } = mutations.find((m) => m.guard === guard) ?? {};
      if (signal !== null) {
        // Counts only for guards without which the engine never ends. For the others the time limit proves nothing.
        const seeds = endless === true ? 1 : 0;
        const breaks = `the engine never ends (stopped after ${LIMIT_MS / 1000} s)`;
        resolve({ guard, hazard, seeds, breaks });
      } else if (code !== 0) {
        resolve({ guard, hazard, seeds: 1, breaks: errors.trim().split('\n').at(-1) ?? '' });
      } else resolve(JSON.parse(output));
    });
  });
}

/** The test of this guard needs a part that is missing here. */
function isUntried(result) {
  return result.seeds === 0 && result.missing !== undefined;
}

/** Checks that the tests named after a guard have run and have noticed its absence. */
function ownTest({ guard, hazard, breaks, project, file }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-mutations-'));
  const report = path.join(folder, 'report.json');
  const vitest = fileURLToPath(new URL('./vitest.mjs', import.meta.resolve('vitest/package.json')));
  const { status } = spawnSync(
    process.execPath,
    [
      ...[vitest, 'run', '--project', project, file, '-t', `without ${guard}:`],
      ...['--reporter=json', `--outputFile=${report}`],
    ],
    {
      cwd: root,
      stdio: 'ignore',
      timeout: 3 * LIMIT_MS,
      env: { ...process.env, HEADRACE_TEST_FULL: '1' },
    },
  );
  let found;
  try {
    found = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    // No report: the tests did not end.
  }
  rmSync(folder, { recursive: true, force: true });
  const counts = countVitest(found, status ?? 1, { isPartial: true });
  const seeds = counts.failed === 0 && counts.passed > 0 ? 1 : 0;
  const missing = missingFor(counts, found, `npx vitest run --project ${project} ${file}`);
  return {
    guard,
    hazard,
    seeds,
    breaks,
    test: file,
    ...(missing === undefined ? {} : { missing }),
  };
}

/** What keeps the tests of a guard from telling anything; undefined if one of them ran. `command` runs them. */
function missingFor({ failed, skips, problems }, report, command) {
  if (failed === 0) return skips.find((skip) => skip.remedy !== undefined);
  const tests = (report?.testResults ?? []).flatMap((each) => each.assertionResults ?? []);
  if (tests.some(({ status }) => status === 'passed' || status === 'failed')) return undefined;
  return { what: `a test that runs (${problems[0]})`, remedy: `mend what ${command} reports` };
}

async function tried(guard) {
  const own = guardTests.find((each) => each.guard === guard);
  return own === undefined ? await line(guard) : ownTest(own);
}

function show(result) {
  const seeds = isUntried(result)
    ? '-'
    : result.seeds === 0
      ? 'never'
      : result.test
        ? 'test'
        : String(result.seeds);
  const breaks = isUntried(result)
    ? `not tried: needs ${result.missing.what}; to get it: ${result.missing.remedy}`
    : result.breaks.split('\n')[0].slice(0, 110);
  process.stdout.write(
    `${result.guard.padEnd(22)} ${seeds.padStart(6)}  ${result.hazard.padEnd(40)} ${breaks}\n`,
  );
}

/** Deals the guards to processes; their results in the order of the guards. */
async function triedInJobs(guards) {
  const shares = Array.from({ length: Math.min(jobs, guards.length) }, (_, k) =>
    guards.filter((_guard, i) => i % jobs === k),
  );
  const { reports, silent, code } = await runJobs(
    fileURLToPath(import.meta.url),
    shares.map((share) => ['--most', most, ...share]),
  );
  if (silent > 0) process.exit(code);
  const found = new Map(reports.flatMap((r) => r.guards).map((each) => [each.guard, each]));
  return guards.map((guard) => found.get(guard));
}

const guards = wanted.length > 0 ? wanted : all;
let results = [];
if (jobs > 1) {
  results = await triedInJobs(guards);
  if (!json) results.forEach(show);
} else {
  for (const guard of guards) {
    const result = await tried(guard);
    results.push(result);
    if (!json) show(result);
  }
}
const untried = results.filter(isUntried);
const missed = results.filter((r) => r.seeds === 0 && !isUntried(r));
const names = (list) => list.map((r) => r.guard);
if (json)
  process.stdout.write(
    `${JSON.stringify({ guards: results, missed: names(missed), untried: names(untried) })}\n`,
  );
else {
  const noticed = results.length - missed.length - untried.length;
  process.stdout.write(
    `guards: ${results.length}, noticed ${noticed}, missed ${missed.length}, not tried ${untried.length}\n`,
  );
}
process.exitCode = missed.length + untried.length > 0 ? 1 : 0;
