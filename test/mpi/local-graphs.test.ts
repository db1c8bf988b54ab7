// Random graphs of which a rank looks at its own tasks only, on real ranks with small windows: the simulated ranks have more of them
// (test/simulated/local-tasks.test.ts).
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing, over } from '../support/needs.js';
import { mpirun } from './mpirun.js';

for (const library of LIBRARIES)
  describe(`local graphs over ${library}`, needing(layers[library]), () => {
    test.each(over(library, [2, 3, 4], [3]))(
      'give what their tasks do one after the other, on %i ranks',
      async (ranks) => {
        const run = await mpirun(ranks, 'local-graphs.mjs', {
          library,
          args: [String(1000 * ranks), '10'],
          seconds: 50,
        });
        expect(run.code, run.output).toBe(0);
        expect(run.reports, run.output).toHaveLength(ranks);
        for (const { wrong } of run.reports) expect(wrong).toEqual([]);
      },
    );
  });
