// Every guard of the engine is needed: without it some random case goes wrong, and that is noticed.
// The switches exist only where HEADRACE_MUTATIONS is set before the engine is loaded, as in this file.
import { describe, expect, test } from 'vitest';

process.env['HEADRACE_MUTATIONS'] = '1';
const { mutate, mutations } = await import('../../cli/simulation/mutations.js');
const { play } = await import('../../cli/simulation/play.js');
const { randomCase } = await import('../../cli/simulation/case.js');

describe('without a guard', () => {
  const inProcess = mutations.filter((m) => m.endless !== true);
  test.each(inProcess.map((m) => [m.guard, m] as const))(
    '%s the suite turns red',
    async (_, mutation) => {
      const { seeds, breaks } = await mutate(mutation, 1000);
      expect(breaks).not.toBe('');
      expect(seeds).toBeGreaterThan(0);
    },
  );

  test('every guard names the hazard it answers', () => {
    expect(mutations.filter((m) => m.hazard === '').map((m) => m.guard)).toEqual([]);
  });

  test('and with all of them back, the same cases are good', async () => {
    for (let seed = 1; seed <= 50; seed++) {
      expect((await play(randomCase(seed, { faults: seed % 2 === 0 }))).problems).toEqual([]);
    }
  });
});
