// Data between ranks under pressure: blocked threads, hardly any memory; failing flushes.
import { describe, expect, test } from 'vitest';
import { needing, ranks as rankNeed } from '../support/needs.js';
import { mpirun, type RankResult } from './mpirun.js';

interface Report {
  readonly rank: number;
  readonly ok: boolean;
  readonly seconds?: number;
  readonly code?: string;
  readonly flushes?: number;
  readonly pinned: readonly number[];
  readonly receivedAhead?: number;
  readonly reserved?: number;
  readonly figures?: {
    readonly network: Readonly<Record<string, number>>;
    readonly spills: number;
  };
}

const go = async (
  ranks: number,
  given: object,
  env: Record<string, string> = {},
): Promise<Report[]> => {
  const run: RankResult = await mpirun(ranks, 'movement.mjs', {
    args: [JSON.stringify(given)],
    env,
    seconds: 50,
  });
  expect(run.code, run.output).toBe(0);
  const reports = run.reports as unknown as Report[];
  expect(reports, run.output).toHaveLength(ranks);
  for (const { ok, pinned } of reports) {
    expect(ok, run.output).toBe(true);
    expect(Math.max(...pinned)).toBe(0);
  }
  return reports;
};

const ways = ['direct', 'staged', 'ipc'] as const;

describe('data between ranks', needing(rankNeed), () => {
  test.each(ways)('go on by %s while both JavaScript threads are blocked', async (comm) => {
    const [a] = await go(2, { what: 'blocked', gpus: 1, comm });
    // One transfer of 8 MiB beside 200 ms of blocked threads.
    expect(a?.seconds).toBeLessThan(2);
  });

  test.each(ways)('storms of receives by %s end with hardly any device memory', async (comm) => {
    const reports = await go(3, { what: 'tiles', gpus: 1, comm, gpuMemory: '64KiB' });
    for (const { figures } of reports) {
      expect(figures?.network['receives']).toBe(201);
      expect(figures?.network['spilledReceives']).toBeGreaterThan(0);
    }
  });

  test('ten thousand tiles through three buffers', async () => {
    await go(2, { what: 'tiles', gpus: 1, gpuMemory: '48KiB', size: { count: 10_000, rounds: 1 } });
  });

  test.each(ways)(
    'by %s: pushed inputs come ahead and spill, pulled ones wait for their task and do not',
    async (comm) => {
      const options = { what: 'pull', gpus: 1, comm, gpuMemory: '64KiB' };
      const spills = async (fetch: 'push' | 'pull'): Promise<[number, Report]> => {
        const reports = await go(2, { ...options, size: { fetch } });
        const [, mine] = reports as [Report, Report];
        return [
          (mine.figures?.network['spilledReceives'] ?? 0) + (mine.figures?.spills ?? 0),
          mine,
        ];
      };
      const [pushed, push] = await spills('push');
      const [pulled, pull] = await spills('pull');
      expect(push.receivedAhead).toBe(60 * 1024 * 8);
      expect(pushed).toBeGreaterThan(0);
      expect(pull.receivedAhead).toBe(0);
      expect(pull.reserved).toBe(0);
      expect(pull.figures?.network['spilledReceives']).toBe(0);
      expect(pulled).toBeLessThan(pushed);
    },
  );

  test('parameters are data of other ranks', async () => {
    await go(3, { what: 'steered', gpus: 1, size: {} });
  });

  test.each(['push', 'pull'])('tasks get lists of data of all ranks by %s', async (fetch) => {
    await go(3, { what: 'lists', gpus: 1, size: { fetch } });
  });

  test.each([2, 3])('%i ranks get the same values in the middle of a run', async (ranks) => {
    const reports = await go(ranks, { what: 'values', gpus: 1 });
    // The value ends with the error of its run: on the rank of the failed task with that of the task. The others may know first
    // that the datum has no value.
    for (const { code } of reports)
      expect(['ERR_TASK_FAILED', 'ERR_DATUM_POISONED', 'ERR_PEER_FAILED']).toContain(code);
  });

  // Flushes fail in simulations (test/simulated/network-hazards.test.ts) and with the stub of the driver (test/native-gpu).
  test.each([
    ['force', 1],
    ['off', 0],
  ] as const)("flush: '%s' asks for %i on the rank that receives", async (flush, flushes) => {
    const reports = await go(2, { what: 'flush', gpus: 1, comm: 'direct', flush });
    expect(reports.map((report) => report.flushes)).toEqual([0, flushes]);
  });
});
