// Runs the programs of several ranks on the NVIDIA GPUs of this machine: the oracles by every way, copy-cover, a kernel
// that spins while data arrive, a killed rank. Prints a line per launch. Exit code 1 after any failure.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { which } from './lib/command.mjs';
import { commandLine, positive } from './lib/command-line.mjs';
import { root } from './lib/prepare.mjs';

const usage = `usage: node scripts/gpu-ranks.mjs [options]

Runs the programs of several ranks on the GPUs of this machine. PATH and LD_LIBRARY_PATH choose the MPI library.
It takes the build as it is.

  --launcher PROGRAM    program that starts the ranks (mpirun)
  --cover N             rounds of copy-cover (120)
  --only TEXT           only launches with this in their names
  --driver NAME         GPUs of this driver (cuda)
  --seconds S           time limit of a launch (120)
  --help                this text
`;
const { values } = commandLine(usage, {
  launcher: { type: 'string', default: 'mpirun' },
  cover: { type: 'string', default: '120' },
  only: { type: 'string', default: '' },
  driver: { type: 'string', default: 'cuda' },
  seconds: { type: 'string', default: '120' },
});
const { driver } = values;
const isOpen = /Open MPI|OpenRTE/.test(
  spawnSync(values.launcher, ['--version'], { encoding: 'utf8' }).stdout ?? '',
);
/** Oracles whose data are on GPUs when they travel. */
const MOVING = ['writeAfterRead', 'allToAll', 'taskBench', 'broadcast', 'storm'];

const seconds = positive(usage, 'seconds', values.seconds);
if (!existsSync(path.join(root, 'dist/cli/main.js')) || which(values.launcher) === undefined) {
  const missing = which(values.launcher) === undefined ? values.launcher : 'dist/cli/main.js';
  console.error(`${missing} is missing; to get it: npm run setup -- --require-mpi`);
  process.exit(1);
}

/** Runs a program on ranks; returns their reports, and how the launch ended. */
function launch(ranks, program, given) {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-gpu-ranks-'));
  const options = isOpen
    ? ['--allow-run-as-root', '--oversubscribe', '--timeout', String(seconds), '--enable-recovery']
    : [];
  return new Promise((resolve) => {
    const child = spawn(
      values.launcher,
      [
        ...options,
        ...['--bind-to', 'none', '-n', String(ranks), process.execPath],
        path.join(root, 'test/mpi/programs', program),
        JSON.stringify({ driver, ...given }),
      ],
      {
        cwd: root,
        env: { ...process.env, HEADRACE_REPORTS: folder, MPIEXEC_TIMEOUT: String(seconds) },
      },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        output += data;
      });
    }
    const late = setTimeout(() => child.kill('SIGTERM'), (seconds + 5) * 1000);
    child.on('close', (code) => {
      clearTimeout(late);
      const lines = readdirSync(folder).flatMap((file) =>
        readFileSync(path.join(folder, file), 'utf8').split('\n'),
      );
      rmSync(folder, { recursive: true, force: true });
      const reports = lines.filter((line) => line !== '').map((line) => JSON.parse(line));
      resolve({ code, reports, output });
    });
  });
}

/** The oracles by one way: all results are right, no bytes stay pinned, and bytes travel only by the ways available. */
function judgeGrid({ code, reports, output }, way, isPure) {
  const sums = { direct: 0, staged: 0, ipc: 0 };
  const problems = reports.flatMap((entry) =>
    entry.problems.map((each) => `rank ${entry.rank}, ${entry.name}: ${each}`),
  );
  for (const { name, bytes, pinned } of reports) {
    if (pinned !== 0) problems.push(`${name}: ${pinned} bytes stay pinned`);
    if (MOVING.includes(name)) for (const kind of Object.keys(sums)) sums[kind] += bytes[kind];
  }
  if (code !== 0 || reports.length === 0)
    problems.push(`${reports.length} reports, exit code ${code}: ${output.slice(-1500)}`);
  if (isPure) {
    for (const kind of ['staged', 'ipc']) {
      if (kind !== way && sums[kind] > 0) problems.push(`${sums[kind]} bytes went by ${kind}`);
    }
    if (sums[way] === 0) problems.push(`no bytes went by ${way}`);
  }
  const covers = reports.filter(({ name, rank }) => name === 'copyCover' && rank === 0);
  const steps = covers.length === 0 ? {} : { coverSteps: covers[0].steps };
  return { problems, oracles: reports.length, bytes: sums, ...steps };
}

const grid = (ranks, gpus, way, isPure, more = {}) => ({
  name: `oracles, ${ranks} ranks x ${gpus} GPU, ${way}${more.flush === 'force' ? ', flushes forced' : ''}`,
  run: async () =>
    judgeGrid(await launch(ranks, 'grid.mjs', { gpus, ways: [way], ...more }), way, isPure),
});
const cover = (way) => ({
  name: `copy-cover x ${values.cover}, 2 ranks x 1 GPU, ${way}`,
  run: async () => {
    const given = { gpus: 1, ways: [way], only: ['copyCover'], repeat: Number(values.cover) };
    const judged = judgeGrid(await launch(2, 'grid.mjs', given), way, false);
    return { ...judged, copies: judged.coverSteps * Number(values.cover) };
  },
});
const spin = {
  name: 'a kernel spins while its word arrives',
  run: async () => {
    const { code, reports, output } = await launch(2, 'spin.mjs', {});
    const cases = reports.flatMap((each) => each.cases);
    const problems = cases.filter(({ ok }) => !ok).map((each) => JSON.stringify(each));
    if (code !== 0 || cases.length === 0)
      problems.push(`exit code ${code}: ${output.slice(-1500)}`);
    const ways = [...new Set(cases.map(({ way }) => way))];
    return {
      problems,
      ways,
      cases: cases.length,
      longestSeconds: Math.max(...cases.map(({ seconds }) => seconds)),
    };
  },
};
const used = () =>
  (
    spawnSync('nvidia-smi', ['--query-gpu=memory.used', '--format=csv,noheader'], {
      encoding: 'utf8',
    }).stdout ?? ''
  )
    .trim()
    .split('\n');
const kill = (comm, way) => ({
  name:
    way === 'kill'
      ? `a rank is killed, ${comm}`
      : `a rank is killed while its GPU is read, ${comm}`,
  run: async () => {
    const before = used();
    const given = {
      way,
      who: 1,
      gpus: 1,
      comm,
      inlineBytes: 64,
      gpuMemory: '256MiB',
      hostMemory: '512MiB',
    };
    const { reports, output } = await launch(3, 'failures.mjs', given);
    const told = reports.filter(({ rank, first }) => rank !== 1 && first !== undefined);
    const problems = told
      .filter(({ first, seconds }) => first.code !== 'ERR_PEER_LOST' || seconds >= 5)
      .map((each) => JSON.stringify(each));
    if (told.length !== 2)
      problems.push(`${told.length} of 2 ranks got the error: ${output.slice(-800)}`);
    await new Promise((go) => setTimeout(go, 1000));
    return {
      problems,
      seconds: Math.max(...told.map(({ seconds }) => seconds)),
      received: told.map(({ received, of }) => `${received} of ${of}`),
      memoryBefore: before,
      memoryAfter: used(),
    };
  },
});

const doctor = spawnSync(process.execPath, ['dist/cli/main.js', 'doctor', '--json'], {
  cwd: root,
  encoding: 'utf8',
});
const { mpi, devices } = JSON.parse(doctor.stdout);
if (mpi.library === '') {
  console.log('there is no message layer to test here: see headrace doctor');
  process.exit(1);
}
const gpus = devices.filter(({ kind }) => kind === driver).length;
const isAware = mpi.gpuAware.proven;
if (!isAware)
  console.log(`left out: direct, because ${mpi.library} is not proven to take GPU memory`);
const ways = [...(isAware ? ['direct'] : []), 'staged', 'ipc'];
const launches = [
  ...ways.map((way) => grid(2, 1, way, true)),
  grid(2, 1, 'auto', false),
  ...(isAware ? [grid(2, 1, 'direct', true, { flush: 'force' })] : []),
  ...(gpus > 1 ? ways.map((way) => grid(2, 2, way, false)) : []),
  spin,
  ...ways.flatMap((way) => [kill(way, 'kill'), kill(way, 'kill-moving')]),
  ...ways.map(cover),
];
for (const { name, run } of launches) {
  if (!name.includes(values.only)) continue;
  const began = performance.now();
  const { problems, ...figures } = await run();
  const took = Number(((performance.now() - began) / 1000).toFixed(1));
  console.log(JSON.stringify({ name, ok: problems.length === 0, took, ...figures }));
  for (const problem of problems.slice(0, 5)) console.log(`  ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
}
