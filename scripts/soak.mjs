// Plays random simulated cases for a while and reports what was played and what went wrong (nothing, that is).
// Failing cases are written to .cache/soak-SEED.json, shrunk, for `headrace simulate --replay FILE`.
//
// With --oracles the cases are the low-memory and all-dirty programs; with --test the last line counts the whole as
// one test.
//
// usage: npm run soak -- [--minutes M | --seconds S | --cases N] [--first SEED] [--oracles] [--json] [--test]
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(root, process.env['HEADRACE_DIST'] ?? 'dist');
if (!existsSync(path.join(dist, 'cli/simulation/soak.js'))) {
  process.stderr.write('the compiled files are missing; run: npm run build:ts\n');
  process.exit(2);
}
const { soak } = await import(path.join(dist, 'cli/simulation/soak.js'));
const { shrink } = await import(path.join(dist, 'cli/simulation/shrink.js'));
const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seconds: { type: 'string' },
    cases: { type: 'string' },
    first: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    oracles: { type: 'boolean', default: false },
    test: { type: 'boolean', default: false },
  },
});
const seconds =
  values.minutes !== undefined
    ? Number(values.minutes) * 60
    : values.seconds !== undefined
      ? Number(values.seconds)
      : undefined;
const seeds = values.cases === undefined ? undefined : Number(values.cases);
const before = process.cpuUsage();
const result = await soak({
  firstSeed: Number(values.first),
  ...(seeds === undefined && seconds === undefined ? { seconds: 30 } : {}),
  ...(seeds === undefined ? {} : { seeds }),
  ...(seconds === undefined ? {} : { seconds }),
  faultsEvery: 2,
  cases: { shortHosts: true },
  mixed: true,
  oracles: values.oracles,
});
const cpu = process.cpuUsage(before);
const cpuSeconds = (cpu.user + cpu.system) / 1e6;
const { failures, ...rest } = result;
const report = {
  ...rest,
  cpuSeconds,
  seedsPerCpuSecond: rest.seeds / cpuSeconds,
  failed: failures.map((f) => f.case.seed),
};
for (const failure of failures) {
  mkdirSync(path.join(root, '.cache'), { recursive: true });
  const file = path.join(root, '.cache', `soak-${failure.case.seed}.json`);
  writeFileSync(file, `${JSON.stringify(await shrink(failure.case))}\n`);
  process.stderr.write(
    `seed ${failure.case.seed}: ${failure.played.problems[0]}\n  headrace simulate --replay ${file}\n`,
  );
}
if (values.json) process.stdout.write(`${JSON.stringify(report)}\n`);
else
  for (const [key, value] of Object.entries(report))
    process.stdout.write(`${key}: ${JSON.stringify(value)}\n`);
if (values.test) {
  const isGood = result.violations === 0;
  process.stdout.write(`tests: ${isGood ? 1 : 0} passed, ${isGood ? 0 : 1} failed, 0 skipped\n`);
}
process.exitCode = result.violations === 0 ? 0 : 1;
