// Recognised runs on real ranks: random programs that repeat their runs, against the same tasks in runs that are not recognised.
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing, over } from '../support/needs.js';
import { mpirun } from './mpirun.js';

const CASES = [
  { ranks: 2, first: 1, seeds: 12 },
  { ranks: 3, first: 101, seeds: 8, inlineBytes: 64 },
  { ranks: 4, first: 201, seeds: 6, inlineBytes: 64, treeFrom: 2, lanes: 5 },
];

for (const library of LIBRARIES)
  describe(`recognised runs over ${library}`, needing(layers[library]), () => {
    test.each(over(library, CASES, CASES.slice(1)))(
      '$ranks ranks from seed $first: what is played is what is inserted',
      async ({ ranks, ...options }) => {
        const args = [JSON.stringify(options)];
        // Beside other programs two cores have taken 29 s.
        const run = await mpirun(ranks, 'repeats.mjs', { library, args, seconds: 50 });
        expect(run.code, run.output).toBe(0);
        expect(run.reports, run.output).toHaveLength(ranks);
        for (const report of run.reports) {
          expect(report, run.output).toMatchObject({ ranks, problems: [] });
          expect(report['played'], run.output).toBeGreaterThan(options.seeds);
        }
      },
    );
  });
