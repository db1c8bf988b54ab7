// Families of spawned tasks on real ranks: the values on all ranks, failures, and the names of data that are made later.
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing } from '../support/needs.js';
import { mpirun } from './mpirun.js';

interface Report {
  readonly results: readonly number[];
  readonly codes: readonly string[];
  readonly middle: number;
  readonly pinned: readonly number[];
}

for (const library of LIBRARIES)
  describe(`families over ${library}`, needing(layers[library]), () => {
    test.each([
      { ranks: 2 },
      { ranks: 3, options: { lanes: 2 }, length: 2000 },
      { ranks: 2, options: { gpus: 1, gpuMemory: '1MiB' }, length: 2000 },
    ])('$ranks ranks: what moves follows the family (%o)', async ({ ranks, ...given }) => {
      const run = await mpirun(ranks, 'families.mjs', {
        library,
        args: [JSON.stringify(given)],
        seconds: 50,
      });
      expect(run.code, run.output).toBe(0);
      expect(run.reports, run.output).toHaveLength(ranks);
      const all = 30 * ranks + (ranks * (ranks - 1)) / 2;
      for (const { results, codes, middle, pinned } of run.reports as unknown as Report[]) {
        expect(results).toEqual([all, 2 * all, all, ranks - 1]);
        expect([codes[0], codes[1], codes[4]]).toEqual(['none', 'none', 'none']);
        expect(codes[2]).toMatch(/^ERR_(TASK_FAILED|PEER_FAILED)$/);
        expect(codes[3]).toMatch(/^(ERR_(DATUM_POISONED|PEER_FAILED)|unchanged)$/);
        expect(middle).toBe(30);
        expect(Math.max(...pinned)).toBe(0);
      }
    });
  });
