// If ranks make different calls, all ranks soon get an error with these calls. A rank that is only late causes no error.
import { describe, expect, test } from 'vitest';
import { LIBRARIES, layers, needing, over } from '../support/needs.js';
import { mpirun } from './mpirun.js';

interface Entry {
  readonly rank: number;
  readonly seconds: number;
  readonly close: string;
  readonly first: { readonly code: string; readonly message: string };
}

/** The call of the odd rank, and that of the others. */
const mistakes: readonly (readonly [way: string, odd: string, others: string, place: string])[] = [
  ['read', "read of datum 'large'", "run 'step'", 'call 3'],
  ['read-own', "read of datum 'small'", "run 'step'", 'call 3'],
  ['read-own-at-the-end', "read of datum 'small'", 'close of the runtime', 'call 3'],
  ['set', "set of datum 'large'", "run 'step'", 'call 3'],
  ['close-datum', "close of datum 'small'", "run 'step'", 'call 3'],
  ['run', "run 'step'", "read of datum 'large'", 'call 3'],
  ['order', "read of datum 'large'", "read of datum 'small'", 'call 3'],
  ['data', "creation of datum 'more' (8 elements of f64, rank 0)", "run 'step'", 'call 3'],
  [
    'size',
    "creation of datum 'more' (16 elements of f64, rank 0)",
    "creation of datum 'more' (8 elements of f64, rank 0)",
    'call 3',
  ],
  ['close-runtime', 'close of the runtime', "run 'step'", 'call 3'],
  [
    'inside',
    "read of datum 'large'",
    'the end of that program',
    "call 1 in the program of run 'step'",
  ],
  ['window', "read of datum 'large'", "run 'step'", 'call 3'],
];

for (const library of LIBRARIES)
  describe(`calls over ${library}`, needing(layers[library]), () => {
    const together = async (
      ranks: number,
      way: string,
      odd: number,
    ): Promise<[Entry[], string]> => {
      const run = await mpirun(ranks, 'calls.mjs', {
        library,
        args: [JSON.stringify({ way, odd })],
      });
      const entries = run.reports as unknown as Entry[];
      expect(run.code, run.output).toBe(0);
      expect(entries, run.output).toHaveLength(ranks);
      return [entries, run.output];
    };

    const cells = mistakes.map((each, i) => [...each, 2 + (i % 2)] as const);
    // The comparison is the engine's: one case with two ranks and one with three show that another library carries it.
    test.each(over(library, cells, cells.slice(0, 2)))(
      '%s: one rank is at %s, the others at %s',
      async (way, odd, others, place, ranks) => {
        // Rank 0 compares: it is the odd one in every other case.
        const who = way.length % ranks;
        const [entries, output] = await together(ranks, way, who);
        const [zero, rest] = who === 0 ? [odd, others] : [others, odd];
        for (const { first, seconds } of entries) {
          expect(first.code, output + first.message).toBe('ERR_PROGRAM_MISMATCH');
          expect(first.message).toContain(`rank 0 is at ${zero} (${place})`);
          expect(first.message).toContain(`is at ${rest} (${place})`);
          expect(seconds).toBeLessThan(10);
        }
      },
    );

    test.each(['late', 'together', 'failed'])('%s: nothing is wrong', async (way) => {
      const [entries, output] = await together(3, way, 1);
      for (const { first, close } of entries) {
        expect(first, output).toEqual({ code: 'none' });
        expect(close, output).toBe('well');
      }
    });
  });
