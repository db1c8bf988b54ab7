// A rank that gets SIGTERM or SIGINT ends within a second in any state, and the others get an error that names it.
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing } from '../support/needs.js';
import { mpirun } from './mpirun.js';

interface Entry {
  readonly rank: number;
  readonly first?: { readonly code: string; readonly from: number | null };
  readonly lived?: number;
  readonly shared?: readonly string[];
}

const WHO = 1;

for (const library of LIBRARIES)
  describe(`signals over ${library}`, needing(layers[library]), () => {
    test.each([
      ['loop', 'SIGTERM'],
      ['window', 'SIGTERM'],
      ['idle', 'SIGTERM'],
      ['loop', 'SIGINT'],
      ['idle', 'SIGINT'],
    ])('a rank in %s that gets %s ends, and is named', async (way, signal) => {
      const run = await mpirun(2, 'signals.mjs', {
        library,
        survive: library === 'mpich',
        reports: 2,
        args: [JSON.stringify({ way, signal, who: WHO })],
      });
      const entries = run.reports as unknown as Entry[];
      const watched = entries.find(({ lived }) => lived !== undefined);
      expect(watched?.lived, run.output).toBeLessThan(1000);
      const told = entries.find(({ rank, first }) => rank === 0 && first !== undefined);
      expect(told?.first, run.output).toEqual({ code: 'ERR_PEER_LOST', from: WHO });
      expect(run.code, run.output).not.toBe(0);
      expect(watched?.shared?.filter(existsSync), 'left in shared memory').toEqual([]);
    });

    test('a rank that inserts in a plain loop ends when its launcher gets the signal', async () => {
      const given = { way: 'loop', signal: 'SIGTERM', who: WHO, target: 'launcher' };
      const run = await mpirun(2, 'signals.mjs', {
        library,
        reports: 1,
        args: [JSON.stringify(given)],
      });
      const entries = run.reports as unknown as Entry[];
      const watched = entries.find(({ lived }) => lived !== undefined);
      // The launcher takes a while of its own before it passes the signal on.
      expect(watched?.lived, run.output).toBeLessThan(2000);
      expect(watched?.shared?.filter(existsSync), 'left in shared memory').toEqual([]);
    });
  });
