// A rank that gets SIGTERM or SIGINT ends by itself in any state, and the others get an error that names it.
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
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
/** programs/signals-watch.mjs kills a rank that lives on for so long. */
const WATCHED_MS = 6000;
/** The end of a process by signal n, as shells count it. */
const EXIT_BASE = 128;

for (const library of LIBRARIES)
  describe(`signals over ${library}`, needing(layers[library]), () => {
    test.each([
      ['loop', 'SIGTERM'],
      ['window', 'SIGTERM'],
      ['idle', 'SIGTERM'],
      ['loop', 'SIGINT'],
      ['idle', 'SIGINT'],
    ] as const)('a rank in %s that gets %s ends, and is named', async (way, signal) => {
      const run = await mpirun(2, 'signals.mjs', {
        library,
        survive: library === 'mpich',
        reports: 2,
        args: [JSON.stringify({ way, signal, who: WHO })],
      });
      const entries = run.reports as unknown as Entry[];
      const watched = entries.find(({ lived }) => lived !== undefined);
      expect(watched?.lived, run.output).toBeLessThan(WATCHED_MS);
      const told = entries.find(({ rank, first }) => rank === 0 && first !== undefined);
      expect(told?.first, run.output).toEqual({ code: 'ERR_PEER_LOST', from: WHO });
      // It has ended itself: one that is killed has the code of SIGKILL.
      expect(run.code, run.output).toBe(EXIT_BASE + constants.signals[signal]);
      expect(watched?.shared?.filter(existsSync), 'left in shared memory').toEqual([]);
    });

    test('a rank that inserts in a plain loop ends when its launcher gets the signal', async () => {
      // Open MPI passes the signal on after that many seconds, and kills after as many again.
      const env = { OMPI_MCA_odls_base_sigkill_timeout: '3' };
      const given = { way: 'loop', signal: 'SIGTERM', who: WHO, target: 'launcher' };
      const run = await mpirun(2, 'signals.mjs', {
        library,
        env,
        reports: 1,
        args: [JSON.stringify(given)],
      });
      const entries = run.reports as unknown as Entry[];
      const watched = entries.find(({ lived }) => lived !== undefined);
      expect(watched?.lived, run.output).toBeLessThan(WATCHED_MS - 500);
      expect(watched?.shared?.filter(existsSync), 'left in shared memory').toEqual([]);
    });
  });
