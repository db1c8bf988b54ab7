// Plans on several simulated ranks whose memory has bytes: what is played is what is inserted, whatever the delays of the machines and
// the network; and a play that fails on one rank ends on all.

import { expect, test } from 'vitest';
import { partOf } from '../support/grids.js';
import { outcome, programOf } from '../support/rank-plan-programs.js';

const PROGRAMS = partOf(10, 4);

test.each(Array.from({ length: 4 }, (_, i) => i * PROGRAMS + 1))(
  'programs from seed %i on: what is played is what is inserted, and failures end on all ranks',
  async (first) => {
    for (let seed = first; seed < first + PROGRAMS; seed++) {
      const p = programOf(seed);
      const played = await outcome(p, seed, 'planned');
      expect(played, `seed ${seed} does not end: ${JSON.stringify(p)}`).toBeDefined();
      expect(played, `seed ${seed}: ${JSON.stringify(p)}`).toEqual(await outcome(p, 0, 'inserted'));
    }
  },
  120_000,
);
