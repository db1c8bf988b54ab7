// `headrace run cholesky --ranks R` starts its ranks itself; one of them prints, all of them work.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadTrace } from '../../trace/index.js';
import { first } from './mpirun.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const size = ['--n', '512', '--tile', '100', '--gpus', '1', '--memory', '4MiB', '--json'];

/** Environment as in a shell: nothing of an outer launcher. */
function environment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(OMPI_|PMIX_|PMI_|VITEST|NODE_OPTIONS)/.test(name),
  );
  return Object.fromEntries(entries);
}

async function run(args: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [main, 'run', 'cholesky', ...size, ...args],
    {
      env: environment(),
      timeout: 60_000,
    },
  );
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe.skipIf(first === undefined)('run cholesky --ranks', () => {
  test.each([2, 3])(
    '%i ranks: one JSON object, the residual of one rank, data between ranks',
    async (ranks) => {
      const one = await run([]);
      const many = await run(['--ranks', String(ranks)]);
      expect(many['ok']).toBe(true);
      expect(many['ranks']).toBe(ranks);
      expect(many['backwardError']).toBe(one['backwardError']);
      const bytes = many['bytes'] as Record<string, number>;
      expect(bytes['ipc'] + bytes['direct'] + bytes['inline'] + bytes['staged']).toBeGreaterThan(0);
    },
  );

  test('every rank writes a trace of its own', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-ranks-'));
    try {
      await run(['--ranks', '2', '--trace', path.join(folder, 'run.hrtrace')]);
      const files = [0, 1].map((rank) => path.join(folder, `run.${rank}.hrtrace`));
      const trace = loadTrace(files);
      expect(trace.ranks.map(({ rank, header }) => [rank, header.ranks])).toEqual([
        [0, 2],
        [1, 2],
      ]);
      expect(new Set(trace.tasks.rank.subarray(0, trace.tasks.count))).toEqual(new Set([0, 1]));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
