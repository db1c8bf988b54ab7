// Plays random simulated cases for some time and reports their number and the failures.
// Failing cases are shrunk and written to .cache/soak-SEED.json, for `headrace simulate --replay FILE`.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandLine, positive, whole } from './lib/command-line.mjs';
import { compiled } from './lib/compiled.mjs';
import { merged, runJobs } from './lib/jobs.mjs';
import { root } from './lib/prepare.mjs';

/** Between the first seeds of processes that play for a given time. */
const SEEDS_APART = 1_000_000;

const usage = `usage: npm run soak -- [options]

Plays random simulated cases, by default for 30 seconds.

  --minutes M    play for M minutes
  --seconds S    play for S seconds
  --cases N      play N cases
  --first SEED   seed of the first case (1)
  --jobs N       play in N processes; with a limit of time their first seeds are a million apart (1)
  --oracles      the low-memory and all-dirty programs
  --plans        only programs that are planned and played
  --front-end    only programs of the public interface
  --json         one JSON object
  --test         count the whole as one test in the last line
  --help         this text
`;
const text = /** @type {const} */ ({ type: 'string' });
const flag = /** @type {const} */ ({ type: 'boolean', default: false });
const { values } = commandLine(usage, {
  ...{ minutes: text, seconds: text, cases: text, first: { ...text, default: '1' } },
  jobs: { ...text, default: '1' },
  ...{ json: flag, oracles: flag, plans: flag, 'front-end': flag, test: flag },
});
const amount = (name) =>
  values[name] === undefined ? undefined : positive(usage, name, values[name]);
const minutes = amount('minutes');
const seconds = minutes === undefined ? amount('seconds') : minutes * 60;
const seeds = amount('cases');
const limit = seeds === undefined && seconds === undefined ? 30 : seconds;
const first = positive(usage, 'first', values.first);
const jobs = whole(usage, 'jobs', values.jobs);
const load = await compiled();
if (jobs > 1) {
  const { report, code } = await playInJobs();
  print(report);
  process.exit(code);
}
const { soak } = await load('devices/simulated/cases/soak.js');
const { shrink } = await load('devices/simulated/cases/shrink.js');
const { createProgress } = await load('cli/progress.js');
const progress = createProgress({ stream: process.stderr, enabled: !values.json });
// The first signal ends the soak with a report of the cases so far; a second signal ends it at once.
const stop = new AbortController();
let code = 0;
for (const [signal, exit] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
]) {
  // The set-up has ended its children; its signal handlers would end this process without the report.
  process.removeAllListeners(signal);
  process.once(signal, () => {
    code = exit;
    stop.abort();
  });
}

/** The programs besides the cases, or in their place. */
function beside() {
  if (values.plans) return { plans: 'only' };
  if (values['front-end']) return { frontEnd: 'only' };
  return values.oracles ? {} : { plans: 'also', frontEnd: 'also' };
}

const before = process.cpuUsage();
const result = await soak({
  firstSeed: first,
  ...(seeds === undefined ? {} : { seeds }),
  ...(limit === undefined ? {} : { seconds: limit }),
  faultsEvery: 2,
  cases: { shortHosts: true, moreRanks: true },
  mixed: true,
  oracles: values.oracles,
  ...beside(),
  signal: stop.signal,
  played: (cases, elapsed) =>
    limit === undefined
      ? progress.update('cases', cases, seeds)
      : progress.update(`${cases} cases, seconds`, Math.floor(elapsed), limit),
});
progress.clear();
const cpu = process.cpuUsage(before);
const cpuSeconds = (cpu.user + cpu.system) / 1e6;
const { failures, planFailures, frontEndFailures, ...rest } = result;
const report = {
  ...rest,
  cpuSeconds,
  seedsPerCpuSecond: rest.seeds / cpuSeconds,
  failed: failures.map((f) => f.case.seed),
  failedPlans: planFailures.map((f) => f.seed),
  failedFrontEnd: frontEndFailures.map((f) => f.seed),
};
for (const failure of failures) {
  mkdirSync(path.join(root, '.cache'), { recursive: true });
  const file = path.join(root, '.cache', `soak-${failure.case.seed}.json`);
  writeFileSync(file, `${JSON.stringify(await shrink(failure.case))}\n`);
  process.stderr.write(
    `seed ${failure.case.seed}: ${failure.played.problems[0]}\n  headrace simulate --replay ${file}\n`,
  );
}
for (const { seed, problem } of planFailures)
  process.stderr.write(
    `seed ${seed}: ${problem}\n  npm run soak -- --plans --first ${seed} --cases 1\n`,
  );
for (const { seed, problem } of frontEndFailures)
  process.stderr.write(
    `seed ${seed}: ${problem}\n  npm run soak -- --front-end --first ${seed} --cases 1\n`,
  );
print(report);
process.exitCode = result.violations > 0 ? 1 : code;

function print(report) {
  if (values.json) process.stdout.write(`${JSON.stringify(report)}\n`);
  else
    for (const [key, value] of Object.entries(report))
      process.stdout.write(`${key}: ${JSON.stringify(value)}\n`);
  if (!values.test) return;
  const isGood = report.violations === 0;
  process.stdout.write(`tests: ${isGood ? 1 : 0} passed, ${isGood ? 0 : 1} failed, 0 skipped\n`);
}

/** The soak in several processes, which share the cases, or each play for the whole time. */
async function playInJobs() {
  const flags = ['oracles', 'plans', 'front-end'].filter((name) => values[name]);
  const each = seeds === undefined ? SEEDS_APART : Math.ceil(seeds / jobs);
  const starts = Array.from({ length: jobs }, (_, k) => k * each);
  const { reports, code } = await runJobs(
    fileURLToPath(import.meta.url),
    starts
      .filter((start) => seeds === undefined || start < seeds)
      .map((start) => [
        ...['--first', String(first + start)],
        ...(seeds === undefined ? [] : ['--cases', String(Math.min(each, seeds - start))]),
        ...(limit === undefined ? [] : ['--seconds', String(limit)]),
        ...flags.map((name) => `--${name}`),
      ]),
  );
  if (reports.length === 0) process.exit(code);
  const sum = merged(reports);
  sum.seconds = Math.max(...reports.map((report) => report.seconds));
  sum.seedsPerSecond = sum.seeds / sum.seconds;
  sum.seedsPerCpuSecond = sum.seeds / sum.cpuSeconds;
  return { report: sum, code };
}
