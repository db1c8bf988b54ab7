// Runs the benchmarks, prints a table or a JSON array.
import { commandLine, usageError } from './command-line.js';
import type { BenchEntry } from './harness.js';
import { metgBenchmarks } from './metg.js';
import { networkPairBenchmarks, networkStencilBenchmarks } from './network.js';
import { overhead } from './overhead.js';
import { partsBenchmarks } from './parts.js';
import { planBenchmarks } from './plan.js';
import { balanceBenchmarks } from './plan-balance.js';
import { parameterisedBenchmarks } from './ptg.js';
import { reduceBenchmarks } from './reduce.js';
import { scaleBenchmarks } from './scale.js';
import { scriptWorkerBenchmarks } from './script-workers.js';
import { benchRecording } from './trace-record.js';
import { benchInspection, benchSummary } from './trace-view.js';
import { watchingBenchmarks } from './watching.js';

const SUITES: Readonly<Record<string, () => Promise<BenchEntry[]>>> = {
  overhead,
  metg: metgBenchmarks,
  plan: planBenchmarks,
  balance: balanceBenchmarks,
  watching: watchingBenchmarks,
  reduce: reduceBenchmarks,
  parts: partsBenchmarks,
  ptg: parameterisedBenchmarks,
  'script-workers': scriptWorkerBenchmarks,
  'network/pair': async () => networkPairBenchmarks(),
  'network/stencil': async () => networkStencilBenchmarks(),
  scale: async () => scaleBenchmarks(),
  recording: async () => benchRecording(),
  inspection: async () => [...benchSummary(), ...(await benchInspection())],
};

const names = Object.keys(SUITES);
/** They take a quarter of an hour and several GB of memory. */
const ONLY_ON_REQUEST = ['scale'];
const usage = `usage: npm run bench -- [options]

  --only LIST    only these benchmarks, with commas between them: ${names.join(', ')};
                 'network' stands for both of its kind; without LIST all but ${ONLY_ON_REQUEST.join(', ')}
  --json         a JSON array, not a table
  --help         this text
`;
const values = commandLine(usage, { json: { type: 'boolean' }, only: { type: 'string' } });
/** The benchmarks of a name, or of all names that begin with it. */
function named(name: string): string[] {
  const found = names.filter((each) => each === name || each.startsWith(`${name}/`));
  return found.length > 0 ? found : usageError(usage, `unknown benchmarks '${name}'`);
}
const chosen =
  values.only?.split(',').flatMap(named) ?? names.filter((name) => !ONLY_ON_REQUEST.includes(name));
const entries: BenchEntry[] = [];
for (const [name, suite] of Object.entries(SUITES)) {
  if (chosen.includes(name)) entries.push(...(await suite()));
}
if (values.json === true) process.stdout.write(`${JSON.stringify(entries, null, 1)}\n`);
else {
  const width = Math.max(...entries.map((e) => e.name.length));
  for (const e of entries) {
    const value = e.value >= 100 ? e.value.toFixed(0) : e.value.toFixed(2);
    process.stdout.write(`${e.name.padEnd(width)}  ${value.padStart(8)} ${e.unit}\n`);
  }
}
