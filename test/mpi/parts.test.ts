// Parts of data on several ranks: an exchange of halos moves the halos, and failures leave all ranks with the same versions.
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing } from '../support/needs.js';
import { mpirun, type RankResult } from './mpirun.js';

interface Report {
  readonly pinned: readonly number[];
  readonly worst?: number;
  readonly sent?: number;
  readonly edges?: number;
  readonly seen?: readonly unknown[];
}

for (const library of LIBRARIES)
  describe(`parts over ${library}`, needing(layers[library]), () => {
    const go = async (ranks: number, given: object): Promise<Report[]> => {
      const run: RankResult = await mpirun(ranks, 'parts.mjs', {
        library,
        args: [JSON.stringify(given)],
        seconds: 50,
      });
      expect(run.code, run.output).toBe(0);
      const reports = run.reports as unknown as Report[];
      expect(reports, run.output).toHaveLength(ranks);
      for (const { pinned } of reports) expect(Math.max(...pinned)).toBe(0);
      return reports;
    };

    test.each([
      { ranks: 2 },
      { ranks: 4 },
      { ranks: 2, columns: 1024 },
      { ranks: 2, options: { lanes: 2 } },
      { ranks: 2, columns: 1024, options: { gpus: 1, gpuMemory: '1MiB' } },
      { ranks: 4, options: { gpus: 1, gpuMemory: '1MiB' } },
    ])('$ranks ranks solve the heat equation and send edges only (%o)', async (each) => {
      const { ranks, ...given } = each;
      for (const { worst, sent, edges } of await go(ranks, { what: 'heat', ...given })) {
        expect(worst).toBeLessThan(1e-9);
        expect(sent).toBe(edges);
      }
    });

    test.each([{ ranks: 2 }, { ranks: 4 }, { ranks: 2, options: { gpus: 1, gpuMemory: '1MiB' } }])(
      '$ranks ranks reduce into parts in runs and plays (%o)',
      async (each) => {
        const { ranks, ...given } = each;
        for (const { seen } of await go(ranks, { what: 'sums', ...given }))
          expect(seen).toEqual([]);
      },
    );

    test.each([2, 4])('runs that fail on %i ranks leave no rank behind', async (ranks) => {
      for (const { seen } of await go(ranks, { what: 'failing' })) expect(seen).toEqual([]);
    });
  });
