// Prints the share of the sources that the tests run, as one table with a row per room: TypeScript by the unit suite
// (V8's counts), C++ by the native test programs (gcov).
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand } from './lib/command.mjs';
import { commandLine, usageError } from './lib/command-line.mjs';
import { prepare, root } from './lib/prepare.mjs';
import { listFiles } from './lib/stamp.mjs';

const usage = `usage: node scripts/coverage.mjs [options] [test file or folder ...]

Runs the unit suite, all of it or the files named, and the native test programs, and prints the share of executed lines.

  --only ts|cpp   one of the languages
  --help          this text
`;
const { values, positionals } = commandLine(usage, { only: { type: 'string' } }, { words: true });
if (!['ts', 'cpp', undefined].includes(values.only))
  usageError(usage, `--only is 'ts' or 'cpp', not '${values.only}'`);
const build = path.join(root, 'build-coverage');
const report = path.join(root, '.cache', 'coverage');

/** Runs a command to its end; ends the process when it fails. */
async function run(program, args, env = {}) {
  const { code, output } = await runCommand(program, args, {
    cwd: root,
    env: { ...process.env, ...env },
  });
  if (code === 0) return;
  process.stdout.write(output);
  process.exit(1);
}

/** The folder of a source file, which is its row in the table. */
function roomOf(file) {
  const [first, second] = file.split('/');
  return first === 'native' && second?.includes('.') === false ? `${first}/${second}` : first;
}

/** Rooms to executed lines and all lines. */
class Table {
  rows = new Map();
  add(file, executed, all) {
    const row = this.rows.get(roomOf(file)) ?? [0, 0];
    this.rows.set(roomOf(file), [row[0] + executed, row[1] + all]);
  }
  print(title) {
    const line = (name, executed, all) =>
      console.log(
        `  ${name.padEnd(20)} ${((100 * executed) / all).toFixed(1).padStart(5)} %  ${executed} of ${all}`,
      );
    console.log(`${title}, executed lines`);
    let sum = [0, 0];
    for (const [name, [executed, all]] of [...this.rows].sort()) {
      line(name, executed, all);
      sum = [sum[0] + executed, sum[1] + all];
    }
    line('all', ...sum);
  }
}

async function typescript() {
  rmSync(report, { recursive: true, force: true });
  const vitest = fileURLToPath(new URL('./vitest.mjs', import.meta.resolve('vitest/package.json')));
  const rooms = '{scheduler,stages,devices,trace,algorithms,cli}/**/*.ts';
  const options = ['enabled', 'provider=v8', 'reporter=json-summary', `include=${rooms}`];
  await run(process.execPath, [
    vitest,
    'run',
    '--project',
    'unit',
    ...[...options, `reportsDirectory=${report}`].map((option) => `--coverage.${option}`),
    ...positionals,
  ]);
  const files = JSON.parse(readFileSync(path.join(report, 'coverage-summary.json'), 'utf8'));
  const table = new Table();
  for (const [file, { lines }] of Object.entries(files))
    if (file !== 'total') table.add(path.relative(root, file), lines.covered, lines.total);
  table.print('TypeScript');
}

/** Executed lines of each source: a line counts when any of the programs ran it. */
function readCounts() {
  const lines = new Map();
  for (const file of listFiles(build, ['.'], (name) => name.endsWith('.gcda'))) {
    const { stdout, status } = spawnSync('gcov', ['--json-format', '--stdout', file], {
      cwd: build,
      encoding: 'utf8',
      maxBuffer: 1e9,
    });
    if (status !== 0) throw new Error(`gcov cannot read ${file}`);
    for (const document of stdout.trim().split('\n'))
      for (const source of JSON.parse(document).files) {
        const name = path.relative(root, path.resolve(build, source.file));
        if (!name.startsWith('native/') || /^native\/(test|stub|bench)\//.test(name)) continue;
        const known = lines.get(name) ?? new Map();
        lines.set(name, known);
        for (const { line_number: at, count } of source.lines)
          known.set(at, (known.get(at) ?? false) || count > 0);
      }
  }
  return lines;
}

async function native() {
  for (const file of listFiles(build, ['.'], (name) => name.endsWith('.gcda')))
    rmSync(path.join(build, file));
  const settings = ['HEADRACE_TESTS', 'HEADRACE_STUBS', 'HEADRACE_COVERAGE'];
  await run('cmake', ['-S', root, '-B', build, ...settings.map((name) => `-D${name}=ON`)]);
  const targets = ['headrace_tests', 'headrace_stubs'];
  await run('cmake', ['--build', build, '--parallel', '2', '--target', ...targets]);
  await run(path.join(build, 'headrace_tests'), []);
  const stub = (name) => path.join(build, 'Release', `lib${name}.so`);
  await run(path.join(build, 'Release', 'headrace_gpu_tests'), [], {
    HEADRACE_CACHE: path.join(build, 'kernels'),
    HEADRACE_CUDA_LIBRARY: stub('stub_cuda'),
    HEADRACE_HIP_LIBRARY: stub('stub_hip'),
    HEADRACE_NVRTC_LIBRARY: stub('stub_nvrtc'),
    HEADRACE_CUBLAS_LIBRARY: stub('stub_blas'),
    HEADRACE_CUSOLVER_LIBRARY: stub('stub_blas'),
  });
  const table = new Table();
  for (const [name, known] of readCounts())
    table.add(name, [...known.values()].filter(Boolean).length, known.size);
  table.print('C++');
}

await prepare();
if (values.only !== 'ts') await native();
if (values.only !== 'cpp') await typescript();
