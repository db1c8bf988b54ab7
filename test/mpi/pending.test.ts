// Reads that are left pending while runs fail end on every rank; a rank that waits at its end for the others says so.
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing, over } from '../support/needs.js';
import { mpirun } from './mpirun.js';

for (const library of LIBRARIES)
  describe(`over ${library}`, needing(layers[library]), () => {
    const play = (ranks: number, way: string) =>
      mpirun(ranks, 'pending.mjs', { library, args: [JSON.stringify({ way })] });

    const cells = [
      ['outside', 2],
      ['inside', 2],
      ['outside', 3],
      ['inside', 3],
    ] as const;
    test.each(over(library, cells, cells.slice(2)))(
      'reads %s of runs end on %i ranks',
      async (way, ranks) => {
        const { code, output, reports } = await play(ranks, way);
        expect(code, output).toBe(0);
        expect(reports, output).toHaveLength(ranks);
        for (const { reads, ends, last } of reports as unknown as {
          reads: number;
          ends: string[];
          last: number[];
        }[]) {
          expect(reads).toBeGreaterThanOrEqual(20);
          for (const end of ends)
            expect([
              'whole',
              'ERR_PEER_FAILED',
              'ERR_DATUM_POISONED',
              'ERR_TASK_FAILED',
              'ERR_PROGRAM',
            ]).toContain(end);
          expect(last).toEqual(last.map(() => 19));
        }
      },
    );

    test.each(over(library, [2, 3], [3]))(
      'reads beside runs that fail give %i ranks the same values',
      async (ranks) => {
        const { code, output, reports } = await play(ranks, 'beside');
        expect(code, output).toBe(0);
        expect(reports, output).toHaveLength(ranks);
        const told = reports as unknown as { values: (number | string)[]; last: number[] }[];
        for (const { last } of told) expect(last).toEqual(last.map(() => 19));
        told[0].values.forEach((_, i) => {
          const given = new Set(told.map(({ values }) => values[i]).filter(Number.isFinite));
          expect(
            [...given].length,
            `call ${i}: ${told.map(({ values }) => values[i])}`,
          ).toBeLessThan(2);
        });
        const codes = told
          .flatMap(({ values }) => values)
          .filter((each) => typeof each === 'string');
        for (const each of new Set(codes))
          expect(['restored', 'ERR_PEER_FAILED', 'ERR_DATUM_POISONED', 'ERR_PROGRAM']).toContain(
            each,
          );
      },
    );

    test('a rank that waits at its end for another one reports it', async () => {
      const { code, output } = await play(2, 'exit');
      expect(code, output).toBe(0);
      expect(output).toContain(
        'headrace: rank 1 has ended its program and waits for the other ranks',
      );
    });
  });
