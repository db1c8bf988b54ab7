// Reductions on several ranks: the result and its order, the messages, failures, and what is refused.
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing } from '../support/needs.js';
import { mpirun, type RankResult } from './mpirun.js';

interface Report {
  readonly results: readonly number[];
  readonly expected: number;
  readonly pinned: readonly number[];
  readonly traffic?: number;
  readonly codes?: readonly string[];
}

for (const library of LIBRARIES)
  describe(`reductions over ${library}`, needing(layers[library]), () => {
    const go = async (ranks: number, given: object): Promise<Report[]> => {
      const run: RankResult = await mpirun(ranks, 'reductions.mjs', {
        library,
        args: [JSON.stringify(given)],
        seconds: 50,
      });
      expect(run.code, run.output).toBe(0);
      const reports = run.reports as unknown as Report[];
      expect(reports, run.output).toHaveLength(ranks);
      for (const { results, expected, pinned } of reports) {
        for (const result of results) expect(result, run.output).toBe(expected);
        expect(Math.max(...pinned)).toBe(0);
      }
      return reports;
    };

    test.each([
      { ranks: 2 },
      { ranks: 3, options: { inlineBytes: 0 } },
      { ranks: 4, length: 20_000 },
      { ranks: 3, length: 20_000, options: { gpus: 2, gpuMemory: '1MiB' } },
      { ranks: 2, options: { lanes: 2 } },
    ])(
      '$ranks ranks: one partial result of each rank travels (%o)',
      async ({ ranks, ...given }) => {
        const reports = await go(ranks, { what: 'sums', ...given });
        const sends = reports.reduce((all, { traffic }) => all + (traffic as number), 0);
        expect(sends).toBe(2 * (ranks - 1));
      },
    );

    test('the rank of the datum may have no part in it', async () => {
      await go(3, { what: 'elsewhere' });
    });

    test('a run that fails leaves the datum without a value, and later runs are not disturbed', async () => {
      for (const { codes } of await go(3, { what: 'failing' })) {
        for (const [i, code] of (codes ?? []).entries())
          expect(code).toMatch(
            i % 2 === 0
              ? /^ERR_(TASK_FAILED|PEER_FAILED)$/
              : /^(ERR_DATUM_POISONED|ERR_PEER_FAILED|unchanged)$/,
          );
      }
    });

    test('a pruned run refuses them', async () => {
      const [owner] = await go(2, { what: 'refused' });
      expect(owner.codes).toEqual(['ERR_PRUNED_REDUCTION']);
    });
  });
