// The command line as a whole: exit codes, the contents of both streams, usage, JSON errors.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CholeskyJob, CholeskyRunner } from '../../cli/cholesky-job.js';
import { describeResult } from '../../cli/cholesky-report.js';
import { runCli } from '../../cli/commands.js';
import { describeFindings } from '../../cli/doctor.js';
import { runCholeskyCommand } from '../../cli/run-cholesky.js';
import { packageVersion } from '../../devices/installation.js';
import { HeadraceError } from '../../scheduler/errors.js';
import { testContext } from './context.js';
import { referenceCholesky } from './reference-cholesky.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace-cli-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const bytes = {
  h2d: 3 * 2 ** 20,
  d2h: 2 ** 20,
  d2d: 4096,
  ipc: 0,
  direct: 0,
  staged: 0,
  inline: 0,
};
const device = {
  kind: 'emulated',
  busySeconds: 0.25,
  bytesIn: 2 ** 20,
  bytesOut: 4096,
  highWaterBytes: 99,
  capacityBytes: 2 ** 20,
};

/** The textbook factorisation in place of a runtime; keeps the job. */
function reference(jobs: CholeskyJob[] = [], spoil = 0): CholeskyRunner {
  return async (job) => {
    jobs.push(job);
    job.onProgress(1, 2);
    const factor = referenceCholesky(job.grid, job.matrix, job.dtype);
    return {
      factor: (i, j) => {
        const tile = factor(i, j);
        tile[0] += spoil;
        return tile;
      },
      ranks: 1,
      report: {
        tasks: 20,
        seconds: 0.5,
        bytes,
        evictions: 7,
        spills: 3,
        waits: {},
        devices: [{ name: 'gpu 0', ...device }],
      },
    };
  };
}

describe('dispatch', () => {
  it('prints usage and version', async () => {
    const help = testContext();
    expect(await runCli(['--help'], help)).toBe(0);
    expect(help.out()).toMatch(/usage: headrace <command>[\s\S]*run [\s\S]*trace [\s\S]*doctor /);
    const version = testContext();
    expect(await runCli(['--version'], version)).toBe(0);
    expect(version.out()).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(packageVersion()).toBe(version.out().trim());
  });

  it.each([
    [[], 'a command is needed'],
    [['--json'], 'a command is needed'],
    [['dokter'], 'unknown command "dokter", did you mean doctor?'],
    [['constructor'], 'unknown command "constructor"'],
    [['run'], 'a program or an algorithm is needed'],
    [['run', '--gpus', '2'], 'a program or an algorithm is needed'],
    [['run', 'choleski'], 'there is no file and no algorithm "choleski", did you mean cholesky?'],
    [['run', 'none.ts', '--x'], 'there is no program none.ts'],
    [['run', 'package.json/x.ts'], 'there is no program package.json/x.ts'],
    [['run', './cholesky'], 'there is no program ./cholesky'],
    [['run', 'docs/guide.md'], 'docs/guide.md is no program'],
    [['run', './test'], './test is no file'],
    [['run', '--gpu', '2', 'a.ts'], 'unknown option --gpu, did you mean --gpus?'],
    [['run', '--gpus', '2', 'cholesky'], 'the options of cholesky follow its name'],
    [['run', '--gpus', 'x', 'a.ts'], '--gpus expects a whole number'],
    [['run', 'cholesky', '--tile', '0'], '--tile expects'],
    [['run', 'cholesky', '--n', '4', '--matrix', 'a.mtx'], '--n and --matrix exclude each other'],
    [['doctor', '--jsn'], 'did you mean --json?'],
  ])('exit code 2 with usage on stderr for %j', async (argv, message) => {
    const context = testContext();
    expect(await runCli(argv, context)).toBe(2);
    expect(context.err()).toContain(message);
    expect(context.err()).toContain('\nusage: headrace');
    if (!argv.includes('--json')) expect(context.out()).toBe('');
  });

  it('prints an error as JSON on stdout too when asked for', async () => {
    const context = testContext();
    expect(await runCli(['run', 'cholesky', '--json', '--tile', 'x'], context)).toBe(2);
    expect(JSON.parse(context.out())).toMatchObject({ ok: false, error: { code: 'ERR_USAGE' } });
    expect(context.err()).toContain('usage: headrace run cholesky');
  });

  it('reports a malformed file by its line with exit code 1', async () => {
    const file = path.join(folder, 'bad.mtx');
    writeFileSync(file, '%%MatrixMarket matrix array real general\n2 2\n1\nx\n');
    const context = testContext();
    expect(await runCli(['run', 'cholesky', '--matrix', file, '--json'], context)).toBe(1);
    expect(JSON.parse(context.out())).toMatchObject({
      ok: false,
      error: { code: 'ERR_MATRIX_MARKET', line: 4 },
    });
    expect(context.err()).toContain(`${file}, line 4: expected a real number, found "x"`);
  });

  it('shows options after --help', async () => {
    for (const argv of [
      ['run', '--help'],
      ['run', 'cholesky', '--help'],
      ['doctor', '--help'],
    ]) {
      const context = testContext();
      expect(await runCli(argv, context)).toBe(0);
      expect(context.out()).toContain('usage: headrace');
    }
  });
});

describe('run cholesky', () => {
  const base = ['--n', '30', '--tile', '8'];

  it('prints one JSON object with the keys of the contract and nothing else', async () => {
    const context = testContext({ isTTY: true });
    const jobs: CholeskyJob[] = [];
    const argv = [...base, '--json', '--gpus', '3', '--memory', '1MiB', '--workers', '2'];
    expect(await runCholeskyCommand(argv, context, reference(jobs))).toBe(0);
    expect(context.err()).toBe('');
    const result = JSON.parse(context.out());
    expect(result).toMatchObject({
      ok: true,
      n: 30,
      tile: 8,
      ranks: 1,
      gpus: 3,
      tasks: 20,
      seconds: 0.5,
      bytes,
      evictions: 7,
      spills: 3,
    });
    expect(result.backwardError).toBeLessThan(1e-15);
    expect(result.forwardError).toBeLessThan(1e-13);
    expect(result.gflops).toBeCloseTo((30 ** 3 / 3 + 30 ** 2 / 2 + 5) / 0.5 / 1e9, 12);
    expect(jobs[0]).toMatchObject({ memory: 2 ** 20, workers: 2, trace: undefined, dtype: 'f64' });
  });

  it('prints a report for people, with a progress bar on a terminal only', async () => {
    const terminal = testContext({ isTTY: true });
    expect(await runCholeskyCommand(base, terminal, reference())).toBe(0);
    expect(terminal.err()).toContain('factorise');
    expect(terminal.err().endsWith('\r\u001b[2K')).toBe(true);
    const pipe = testContext();
    await runCholeskyCommand(base, pipe, reference());
    expect(pipe.err()).toBe('');
    expect(pipe.out()).toContain('random matrix (seed 1), order 30, tiles of 8 (4 x 4, ');
    expect(pipe.out()).toContain('on 2 emulated GPUs of 24 MiB each.');
    expect(pipe.out()).toMatch(
      /bytes moved +h2d +d2h +d2d +evictions +spills\n +3 MiB +1 MiB +4 KiB +7 +3\n/,
    );
    expect(pipe.out()).toMatch(/gpu 0 +1 MiB +4 KiB +99 B +1 MiB +250 ms\n/);
  });

  it('calls a wrong factor a failure', async () => {
    const json = testContext();
    expect(await runCholeskyCommand([...base, '--json'], json, reference([], 1e-6))).toBe(1);
    expect(JSON.parse(json.out()).ok).toBe(false);
    const text = testContext();
    expect(await runCholeskyCommand(base, text, reference([], Number.NaN))).toBe(1);
    expect(text.out()).toContain('WRONG RESULT');
    expect(describeResult({ ...JSON.parse(json.out()), backwardError: 1 })).toContain(
      'WRONG RESULT',
    );
  });

  it('works in single precision on the rounded matrix', async () => {
    const context = testContext();
    expect(
      await runCholeskyCommand([...base, '--dtype', 'f32', '--json'], context, reference()),
    ).toBe(0);
    const result = JSON.parse(context.out());
    expect(result.backwardError).toBeLessThan(1e-7);
    expect(result.forwardError).toBeLessThan(1e-4);
  });

  it('reads the matrix and the right-hand side from files', async () => {
    const matrix = path.join(folder, 'a.mtx');
    const rhs = path.join(folder, 'b.mtx');
    writeFileSync(
      matrix,
      '%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 4\n2 1 -1\n2 2 5\n3 2 2\n3 3 6\n',
    );
    writeFileSync(rhs, '%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n');
    const context = testContext();
    const argv = ['--matrix', matrix, '--rhs', rhs, '--tile', '2', '--json'];
    expect(await runCholeskyCommand(argv, context, reference())).toBe(0);
    const result = JSON.parse(context.out());
    expect(result).toMatchObject({ n: 3, matrix: 'matrix from a.mtx', forwardError: null });
    expect(result.solveResidual).toBeLessThan(1e-15);
  });

  it('passes the failure of a run on, and exits with 130 after an interruption', async () => {
    const failing: CholeskyRunner = () => {
      throw new HeadraceError('ERR_NOT_POSITIVE_DEFINITE', 'tile (1, 1), pivot 3', {
        task: 'potrf #4',
      });
    };
    await expect(runCholeskyCommand(base, testContext(), failing)).rejects.toThrow('pivot 3');
    const context = testContext();
    context.interrupt();
    expect(await runCli(['run', 'cholesky', ...base, '--json'], context)).toBe(130);
    expect(JSON.parse(context.out())).toMatchObject({ ok: false, error: { code: 'ERR_ABORTED' } });
    expect(context.err()).toContain('interrupted');
  });
});

describe('doctor', () => {
  it('names the missing parts and the commands that install them', () => {
    const text = describeFindings([
      { name: 'Node', state: 'ok', found: '20.20.2' },
      { name: 'cmake', state: 'missing', found: 'not on PATH', fix: 'apt-get install cmake' },
      { name: 'GPU driver cuda', state: 'absent', found: 'libcuda.so.1 not found' },
    ]);
    expect(text).toMatch(
      /^Node +ok +20\.20\.2\ncmake +MISSING +not on PATH\nGPU driver cuda +- +libcuda/,
    );
    expect(text).toContain('To install the missing parts:\n  cmake    apt-get install cmake\n');
  });

  it('prints its findings as one JSON object', async () => {
    const context = testContext({ env: { PATH: folder } });
    const code = await runCli(['doctor', '--json'], context);
    const report = JSON.parse(context.out());
    expect(code).toBe(report.ok ? 0 : 1);
    expect(report.findings.map((finding: { name: string }) => finding.name)).toContain('Node');
    expect(report.findings).toContainEqual(
      expect.objectContaining({
        name: 'MPI',
        state: 'absent',
        fix: expect.stringContaining('libopenmpi-dev'),
      }),
    );
  });
});

describe('the program', () => {
  it('runs from its compiled files without waiting for input', async () => {
    const main = new URL('../../dist/cli/main.js', import.meta.url).pathname;
    const result = await new Promise<{ code: number; out: string }>((resolve) => {
      const child = execFile(process.execPath, [main, '--version'], (error, stdout) =>
        resolve({ code: error === null ? 0 : Number(error.code), out: stdout }),
      );
      child.on('error', () => resolve({ code: -1, out: '' }));
    });
    expect(result).toEqual({ code: 0, out: `${packageVersion()}\n` });
  });
});
