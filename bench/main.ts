// npm run bench [-- --json] [-- --only overhead|metg|recording|inspection]: runs the benchmarks, prints a table or a JSON array.
import { parseArgs } from 'node:util';
import type { BenchEntry } from './harness.js';
import { metgBenchmarks } from './metg.js';
import { overhead } from './overhead.js';
import { benchRecording } from './trace-record.js';
import { benchInspection, benchSummary } from './trace-view.js';

const SUITES: Readonly<Record<string, () => Promise<BenchEntry[]>>> = {
  overhead,
  metg: metgBenchmarks,
  recording: async () => benchRecording(),
  inspection: async () => [...benchSummary(), ...(await benchInspection())],
};

const { values } = parseArgs({
  options: { json: { type: 'boolean' }, only: { type: 'string' } },
});
const entries: BenchEntry[] = [];
for (const [name, suite] of Object.entries(SUITES)) {
  if (values.only === undefined || values.only === name) entries.push(...(await suite()));
}
if (values.json === true) process.stdout.write(`${JSON.stringify(entries, null, 1)}\n`);
else {
  const width = Math.max(...entries.map((e) => e.name.length));
  for (const e of entries) {
    const value = e.value >= 100 ? e.value.toFixed(0) : e.value.toFixed(2);
    process.stdout.write(`${e.name.padEnd(width)}  ${value.padStart(8)} ${e.unit}\n`);
  }
}
