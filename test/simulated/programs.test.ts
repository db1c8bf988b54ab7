// Programs of several runs, cancelled and failing ones among them, with everything a program can do in between: what is
// read is what program order says, whichever tasks were dropped, and nothing hangs, leaks or is poisoned without a reason.
import { describe, expect, test } from 'vitest';
import { randomCase } from '../../cli/simulation/case.js';
import {
  directedPrograms,
  growingPrograms,
  underAdversary,
} from '../../cli/simulation/directed-programs.js';
import { play } from '../../cli/simulation/play.js';
import { shrink } from '../../cli/simulation/shrink.js';

const ADVERSARIES = 60;

test.each(Object.entries(directedPrograms))('by hand: %s', async (_, program) => {
  for (let seed = 1; seed <= ADVERSARIES; seed++) {
    const { problems } = await play(underAdversary(program, seed));
    expect(problems, `adversary ${seed}`).toEqual([]);
  }
});

test.each(Object.entries(growingPrograms))('bodies that insert: %s', async (_, program) => {
  const { problems, outcome } = await play(program);
  expect(problems).toEqual([]);
  expect(outcome).toBe('');
});

describe('random programs', () => {
  test.each([1, 2, 3, 4])(
    'on %i ranks',
    async (ranks) => {
      for (let seed = 1; seed <= 120 / ranks; seed++) {
        const c = randomCase(seed, { ranks, mixed: true });
        const { problems } = await play(c);
        if (problems.length === 0) continue;
        throw new Error(`seed ${seed}: ${problems[0]}\nshrunk: ${JSON.stringify(await shrink(c))}`);
      }
    },
    120_000,
  );
});
