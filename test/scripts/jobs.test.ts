// Scripts that deal their work to several processes: what these print is merged, and one that dies is counted.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { merged, runJobs } from '../../scripts/lib/jobs.mjs';

test('reports are merged: numbers are added, lists joined, objects merged by key', () => {
  const reports = [
    { seeds: 2, failed: [7], outcomes: { ok: 1, ERR_ABORTED: 1 } },
    { seeds: 3, failed: [], outcomes: { ok: 2, ERR_DEVICE_LOST: 1 } },
  ];
  expect(merged(reports)).toEqual({
    seeds: 5,
    failed: [7],
    outcomes: { ok: 3, ERR_ABORTED: 1, ERR_DEVICE_LOST: 1 },
  });
});

test('each process gets its arguments, and one without a report is counted', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-jobs-'));
  const script = path.join(folder, 'job.mjs');
  writeFileSync(
    script,
    `const [n, json] = process.argv.slice(2);
     if (n === '2') process.exit(3);
     console.log(JSON.stringify({ n: Number(n), json }));`,
  );
  try {
    const { reports, silent, code } = await runJobs(script, [['1'], ['2'], ['4']]);
    expect(reports).toEqual([
      { n: 1, json: '--json' },
      { n: 4, json: '--json' },
    ]);
    expect({ silent, code }).toEqual({ silent: 1, code: 3 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
