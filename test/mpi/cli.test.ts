// `headrace run cholesky --ranks R` starts its ranks itself; one of them prints, all of them work.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadTrace, TransferReason, traffic } from '../../trace/index.js';
import { needing, ranks as rankNeed } from '../support/needs.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const size = ['--n', '512', '--tile', '100', '--gpus', '1', '--memory', '4MiB', '--json'];

/** Environment as in a shell: nothing of an outer launcher. */
function environment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(OMPI_|PMIX_|PMI_|VITEST|NODE_OPTIONS)/.test(name),
  );
  return Object.fromEntries(entries);
}

function start(args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, [main, 'run', 'cholesky', ...size, ...args], {
    env: environment(),
    timeout: 60_000,
  });
}

async function run(args: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout } = await start(args);
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe('run program --ranks', needing(rankNeed), () => {
  test("each rank writes its trace, and the exit code is the program's", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-ranks-'));
    try {
      mkdirSync(path.join(folder, 'node_modules'));
      symlinkSync(
        fileURLToPath(new URL('../..', import.meta.url)),
        path.join(folder, 'node_modules', 'headrace'),
      );
      const text = `
        import { Runtime, task, write } from 'headrace';
        const runtime = await Runtime.create({ workers: 1 });
        const fill = task({ name: 'fill', flows: { x: write('f64') }, kernel: 'empty' });
        const data = [0, 1].map((rank) => runtime.data('f64', 10, { rank }));
        await runtime.run((graph) => { for (const x of data) graph.insert(fill, { x }); });
        console.log([runtime.rank, runtime.ranks, runtime.gpus.length, process.argv[2]].join(' '));
        await runtime.close();
        process.exitCode = Number(process.argv[2]);`;
      writeFileSync(path.join(folder, 'p.mjs'), text);
      const words = ['run', '--ranks', '2', '--gpus', '1', '--trace', 'run.hrtrace', '--watch'];
      const start = (code: string): Promise<{ stdout: string; stderr: string }> =>
        promisify(execFile)(process.execPath, [main, ...words, 'p.mjs', code], {
          cwd: folder,
          env: environment(),
          timeout: 60_000,
        });
      const { stdout, stderr } = await start('0');
      expect(stdout.trim().split('\n').sort()).toEqual(['0 2 1 0', '1 2 1 0']);
      expect(stderr).toContain('trace view run.0.hrtrace run.1.hrtrace\n');
      expect(stderr).toMatch(/ of 1 tasks \(100 %\)/);
      const trace = loadTrace([0, 1].map((rank) => path.join(folder, `run.${rank}.hrtrace`)));
      expect(trace.problems).toEqual([]);
      expect(trace.tasks.count).toBe(2);
      await expect(start('4')).rejects.toMatchObject({ code: 4 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('run cholesky --ranks', needing(rankNeed), () => {
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

  test('--watch: one rank shows its progress, up to all of its tasks, beside the result', async () => {
    const { stdout, stderr } = await start(['--ranks', '2', '--watch']);
    const lines = stderr.split('\n').filter((line) => / of \d+ tasks/.test(line));
    const last = /: (\d+) of (\d+) tasks \(100 %\)/.exec(lines.at(-1) ?? '');
    expect(last, stderr).not.toBeNull();
    expect(last?.[1]).toBe(last?.[2]);
    expect((JSON.parse(stdout) as Record<string, unknown>)['ok']).toBe(true);
  });

  test('every rank writes a trace; together they have both ends of every message, in order', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-ranks-'));
    try {
      const result = await run(['--ranks', '3', '--trace', path.join(folder, 'run.hrtrace')]);
      const trace = loadTrace([0, 1, 2].map((rank) => path.join(folder, `run.${rank}.hrtrace`)));
      expect(trace.problems).toEqual([]);
      expect(trace.ranks.map(({ rank, header }) => [rank, header.ranks])).toEqual([
        [0, 3],
        [1, 3],
        [2, 3],
      ]);
      expect(new Set(trace.tasks.rank.subarray(0, trace.tasks.count))).toEqual(new Set([0, 1, 2]));
      // Ranks of one host have one clock: the true offset is 0 and lies within the error of every measurement.
      for (const { rank, clocks } of trace.ranks) {
        expect(clocks.length).toBeGreaterThanOrEqual(rank === 0 ? 0 : 2);
        for (const { peer, offset, error } of clocks) {
          expect(peer).toBe(0);
          expect(Math.abs(offset)).toBeLessThanOrEqual(error);
        }
      }
      const { transfers } = trace;
      let messages = 0;
      for (let row = 0; row < transfers.count; row++) {
        if (transfers.peer[row] < 0) continue;
        const other = transfers.partner[row];
        expect(other).toBeGreaterThanOrEqual(0);
        if (transfers.reason[row] !== TransferReason.send) continue;
        messages++;
        expect(transfers.end[other]).toBeGreaterThanOrEqual(transfers.start[row]);
        expect(transfers.bytes[other]).toBe(transfers.bytes[row]);
        expect(transfers.kind[other]).toBe(transfers.kind[row]);
      }
      expect(messages).toBeGreaterThan(0);
      // Besides the run's own, the trace has what reading the result moved.
      const counted = result['bytes'] as Record<string, number>;
      const { bytes } = traffic(trace);
      for (const way of ['ipc', 'direct', 'staged', 'inline'])
        expect(bytes[way]).toBeGreaterThanOrEqual(counted[way]);
      expect(bytes['ipc'] + bytes['direct']).toBeGreaterThan(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
