// Random parameterised graphs on real ranks, pruned and not: the simulated ranks have more of them (test/simulated/parameterised.test.ts).
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing, over } from '../support/needs.js';
import { mpirun } from './mpirun.js';

for (const library of LIBRARIES)
  describe(`random graphs over ${library}`, needing(layers[library]), () => {
    test.each(over(library, [2, 3, 4], [3]))(
      'give what their tasks do one after the other, on %i ranks',
      async (ranks) => {
        const run = await mpirun(ranks, 'random-graphs.mjs', {
          library,
          args: [String(1000 * ranks), '12'],
          seconds: 50,
        });
        expect(run.code, run.output).toBe(0);
        expect(run.reports, run.output).toHaveLength(ranks);
        for (const { wrong, used } of run.reports)
          expect({ wrong, used }).toEqual({ wrong: [], used: [0] });
      },
    );
  });
