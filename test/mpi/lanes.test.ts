// Lanes without the engine: kernels of several ranks depend on each other through sends and receives.
import { describe, expect, test } from 'vitest';
import { Status } from '../../devices/backend.js';
import { NetOutcome } from '../../devices/network/port.js';
import { LIBRARIES, layers, needing } from '../support/needs.js';
import { mpirun } from './mpirun.js';

for (const library of LIBRARIES)
  describe(`lanes over ${library}`, needing(layers[library]), () => {
    test.each([2, 3, 4])(
      '%i ranks: values are exact, failures send nothing, receives are cancelled under way',
      async (ranks) => {
        const run = await mpirun(ranks, 'lanes.mjs', { library });
        expect(run.code, run.output).toBe(0);
        expect(run.reports, run.output).toHaveLength(ranks);
        for (const report of run.reports) {
          expect(report, run.output).toMatchObject({
            size: ranks,
            problems: [],
            lost: -1,
            failures: 4,
            departures: [NetOutcome.ok, NetOutcome.cancelled],
            held: true,
            statuses: [3, Status.cancelled, Status.cancelled, Status.ok, Status.ok],
          });
        }
        for (const report of run.reports) expect(report['cancelled']).toBeGreaterThan(0);
        const { hop, raw } = run.reports[0] as { hop: number; raw: number };
        if (ranks > 2) return;
        console.log(`${library}: ${hop.toFixed(2)} us per hop, by hand ${raw.toFixed(2)}`);
      },
    );
  });
