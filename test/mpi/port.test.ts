// The network port over MPI, without the engine: control messages and data between ranks by every way.
import { describe, expect, test } from 'vitest';
import { Status } from '../../devices/backend.js';
import { LIBRARIES, layers, needing } from '../support/needs.js';
import { mpirun } from './mpirun.js';

for (const library of LIBRARIES)
  describe(`network port over ${library}`, needing(layers[library]), () => {
    test.each([2, 3, 4])(
      'carries messages in order and data exactly between %i ranks',
      async (ranks) => {
        const run = await mpirun(ranks, 'port.mjs', { library });
        expect(run.code, run.output).toBe(0);
        expect(run.reports).toHaveLength(ranks);
        for (const report of run.reports) {
          expect(report, run.output).toMatchObject({
            size: ranks,
            inOrder: true,
            problems: [],
            lost: -1,
            refused: Status.outOfRange,
            mappable: true,
          });
        }
      },
    );
  });
