// The sizes that docs/simulation.md promises, with the compiled program: 1 353 400 tasks on one rank and on 64. A minute
// or two of processor time.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { choleskyFlops } from '../../algorithms/cholesky.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const TILE = 1024;
/** 200 tiles a side: 200 * 201 * 202 / 6 tasks. */
const ORDER = 200 * TILE;
const TASKS = 1_353_400;
/** Flop per second that no H200 exceeds. */
const PEAK = 67e12;

test.each([
  { machine: 'h200-8', ranks: 1, gpus: 8 },
  { machine: 'h200-1', ranks: 64, gpus: 64 },
])(
  'a Cholesky of 200 x 200 tiles on $ranks ranks of $machine',
  async (given) => {
    const words = ['--machine', given.machine, '--ranks', `${given.ranks}`, '--n', `${ORDER}`];
    const command = [main, 'simulate', 'cholesky', ...words, '--tile', `${TILE}`, '--json'];
    const { stdout } = await promisify(execFile)(process.execPath, command, { maxBuffer: 2 ** 26 });
    const result = JSON.parse(stdout) as Record<string, number>;
    expect(result).toMatchObject({ ok: true, tasks: TASKS });
    expect(result['makespanSeconds']).toBeGreaterThan(result['criticalPathSeconds']);
    expect(result['makespanSeconds']).toBeGreaterThan(result['areaSeconds']);
    expect(result['makespanSeconds']).toBeGreaterThan(choleskyFlops(ORDER) / (given.gpus * PEAK));
  },
  1_200_000,
);
