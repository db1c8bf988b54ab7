// Prints the mutation table: for each guard of the engine, what breaks in simulation when it is missing, and how
// many random cases it took to notice; for guards of native code and between real ranks the test that notices
// (lib/guard-tests.mjs; it needs the stub driver and MPI). Exit code 1 when a guard can be missed without anyone noticing.
//
// usage: npm run test:mutations -- [--json] [--most N] [guard ...]
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { guardTests } from './lib/guard-tests.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(root, process.env['HEADRACE_DIST'] ?? 'dist');
const program = path.join(dist, 'cli/simulation/mutate.js');
if (!existsSync(program)) {
  process.stderr.write('the compiled files are missing; run: npm run build:ts\n');
  process.exit(2);
}
process.env['HEADRACE_MUTATIONS'] = '1';
const { mutations } = await import(path.join(dist, 'cli/simulation/mutations.js'));

const argv = process.argv.slice(2);
const json = argv.includes('--json');
const at = argv.indexOf('--most');
const most = at < 0 ? '3000' : argv[at + 1];
const wanted = argv.filter((word, i) => !word.startsWith('--') && (at < 0 || i !== at + 1));
const LIMIT_MS = 60_000;

function line(guard) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program, guard, most], {
      env: { ...process.env, HEADRACE_MUTATIONS: '1' },
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
        // Only where that is what a missing guard does; else there was no time to notice anything.
        const seeds = endless === true ? 1 : 0;
        const breaks = `the engine never ends (stopped after ${LIMIT_MS / 1000} s)`;
        resolve({ guard, hazard, seeds, breaks });
      } else if (code !== 0) {
        resolve({ guard, hazard, seeds: 1, breaks: errors.trim().split('\n').at(-1) ?? '' });
      } else resolve(JSON.parse(output));
    });
  });
}

/** The tests named after a guard must have run, and must have seen what they say. */
function ownTest({ guard, hazard, breaks, project, file }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-mutations-'));
  const report = path.join(folder, 'report.json');
  const vitest = fileURLToPath(new URL('./vitest.mjs', import.meta.resolve('vitest/package.json')));
  spawnSync(
    process.execPath,
    [
      ...[vitest, 'run', '--project', project, file, '-t', `without ${guard}:`],
      ...['--reporter=json', `--outputFile=${report}`],
    ],
    { cwd: root, stdio: 'ignore', timeout: 3 * LIMIT_MS },
  );
  let passed = 0;
  try {
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8'));
    if (numFailedTests === 0) passed = numPassedTests;
  } catch {
    // No report: the tests did not come to their end.
  }
  rmSync(folder, { recursive: true, force: true });
  return { guard, hazard, seeds: passed > 0 ? 1 : 0, breaks, test: file };
}

const all = [...mutations, ...guardTests].map((each) => each.guard);
const results = [];
for (const guard of wanted.length > 0 ? wanted : all) {
  const own = guardTests.find((each) => each.guard === guard);
  const result = own === undefined ? await line(guard) : ownTest(own);
  results.push(result);
  if (!json) {
    const seeds = result.seeds === 0 ? 'never' : result.test ? 'test' : String(result.seeds);
    const breaks = result.breaks.split('\n')[0].slice(0, 110);
    process.stdout.write(
      `${result.guard.padEnd(22)} ${seeds.padStart(6)}  ${result.hazard.padEnd(40)} ${breaks}\n`,
    );
  }
}
const missed = results.filter((r) => r.seeds === 0);
if (json)
  process.stdout.write(
    `${JSON.stringify({ guards: results, missed: missed.map((r) => r.guard) })}\n`,
  );
else
  process.stdout.write(
    `guards: ${results.length}, noticed ${results.length - missed.length}, missed ${missed.length}\n`,
  );
process.exitCode = missed.length > 0 ? 1 : 0;
