// Programs with a known answer on several ranks, by every way that data can take.
import { describe, expect, test } from 'vitest';
import { first, libraries, mpirun, type RankResult } from './mpirun.js';

interface Report {
  readonly ok: boolean;
  readonly hash?: string;
  readonly pinned: readonly number[];
  readonly report: {
    readonly bytes: Readonly<Record<'direct' | 'staged' | 'ipc' | 'inline', number>>;
    readonly network?: Readonly<Record<string, number>>;
  };
}

async function oracle(ranks: number, given: object, library = first): Promise<readonly Report[]> {
  const run: RankResult = await mpirun(ranks, 'oracles.mjs', {
    args: [JSON.stringify(given)],
    ...(library === undefined ? {} : { library }),
  });
  expect(run.code, run.output).toBe(0);
  const reports = run.reports as unknown as Report[];
  expect(reports, run.output).toHaveLength(ranks);
  for (const report of reports) {
    expect(report.ok, run.output).toBe(true);
    // Nothing stays pinned: no reader, send or receive was forgotten.
    expect(
      report.pinned.every((bytes) => bytes === 0),
      run.output,
    ).toBe(true);
  }
  return reports;
}

const total = (reports: readonly Report[], way: 'direct' | 'staged' | 'ipc' | 'inline'): number =>
  reports.reduce((sum, { report }) => sum + report.bytes[way], 0);

const names = [
  'pingPong',
  'reduce',
  'writeAfterRead',
  'broadcast',
  'allToAll',
  'redistribute',
  'storm',
];

describe.skipIf(first === undefined)('oracles on several ranks', () => {
  describe.each([2, 3, 4])('%i ranks', (ranks) => {
    test.each(names)('%s with small data, which travel in their announcements', async (name) => {
      const reports = await oracle(ranks, { oracle: name });
      expect(total(reports, 'inline')).toBeGreaterThan(0);
      expect(total(reports, 'direct') + total(reports, 'staged') + total(reports, 'ipc')).toBe(0);
    });
  });

  describe.each([
    [2, 1],
    [3, 2],
  ])('%i ranks with %i GPUs each', (ranks, gpus) => {
    describe.each(['direct', 'staged', 'ipc'] as const)('%s', (comm) => {
      test.each(['writeAfterRead', 'broadcast', 'allToAll', 'storm'])('%s', async (name) => {
        const reports = await oracle(ranks, { oracle: name, gpus, comm, size: { n: 2048 } });
        expect(total(reports, comm)).toBeGreaterThan(0);
        for (const other of ['direct', 'staged', 'ipc'] as const) {
          // What lies in host memory can only be sent directly.
          if (other !== comm && other !== 'direct') expect(total(reports, other)).toBe(0);
        }
      });
    });
  });

  test('one version reaches many ranks along a tree', async () => {
    const reports = await oracle(6, {
      oracle: 'broadcast',
      gpus: 1,
      treeFrom: 2,
      size: { n: 2048 },
    });
    // Five destinations, three branches from the root; the others were passed on.
    expect(reports[0]?.report.network?.['receives']).toBe(0);
  });
});

describe.skipIf(libraries().length === 0).each(libraries())('Cholesky over %s', (library) => {
  test('gives bit for bit the same factor on 1, 2 and 4 ranks', async () => {
    const given = { oracle: 'cholesky', gpus: 1, size: { order: 240, tile: 48 } };
    const hashes = new Set<string | undefined>();
    for (const ranks of [1, 2, 4]) {
      for (const { hash } of await oracle(ranks, given, library)) hashes.add(hash);
    }
    expect([...hashes]).toHaveLength(1);
  });
});
