// Oracles as parameterised graphs on real ranks with two emulated GPUs each: one launch plays them all.
import { describe, expect, test } from 'vitest';
import { graphOracles } from '../support/graph-oracles/all.js';
import { LIBRARIES, layers, needing, over } from '../support/needs.js';
import { mpirun } from './mpirun.js';

for (const library of LIBRARIES)
  describe(`graph oracles over ${library}`, needing(layers[library]), () => {
    test.each(over(library, [2, 4], [2]))('give their answers on %i ranks', async (ranks) => {
      const run = await mpirun(ranks, 'graph-oracles.mjs', { library, seconds: 50 });
      expect(run.code, run.output).toBe(0);
      expect(run.reports, run.output).toHaveLength(2 * ranks * Object.keys(graphOracles).length);
      for (const { rank, name, pruned, problems, used } of run.reports)
        expect({ rank, name, pruned, problems, used }).toMatchObject({ problems: [], used: 0 });
    });
  });
