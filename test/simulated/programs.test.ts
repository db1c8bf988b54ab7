// Programs of several runs, some of them cancelled or failing, with all calls between runs. Every read gives the value
// of program order, also after dropped tasks, and nothing hangs, leaks or is poisoned without a reason.
import { describe, expect, test } from 'vitest';
import { randomCase, type SimulatedCase } from '../../devices/simulated/cases/case.js';
import {
  directedPrograms,
  growingPrograms,
  underAdversary,
} from '../../devices/simulated/cases/directed-programs.js';
import { play } from '../../devices/simulated/cases/play.js';
import { shrink } from '../../devices/simulated/cases/shrink.js';

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

/** Fails with the seed and the shrunk case, ready for `headrace simulate --replay`. */
async function expectGood(c: SimulatedCase): Promise<void> {
  const { problems } = await play(c);
  if (problems.length === 0) return;
  throw new Error(`seed ${c.seed}: ${problems[0]}\nshrunk: ${JSON.stringify(await shrink(c))}`);
}

describe('random programs', () => {
  test.each([1, 2, 3, 4])(
    'on %i ranks',
    async (ranks) => {
      for (let seed = 1; seed <= 200 / ranks; seed++)
        await expectGood(randomCase(seed, { ranks, mixed: true, faults: seed % 2 === 0 }));
    },
    240_000,
  );

  test('are the same each time', async () => {
    for (const seed of [3, 14, 159]) {
      const c = randomCase(seed, { mixed: true, faults: seed % 2 === 0 });
      expect(randomCase(seed, { mixed: true, faults: seed % 2 === 0 })).toEqual(c);
      expect(await play(JSON.parse(JSON.stringify(c)))).toEqual(await play(c));
    }
  });

  test('do all that programs can do', () => {
    const done = new Map<string, number>();
    const count = (what: string): void => void done.set(what, (done.get(what) ?? 0) + 1);
    for (let seed = 1; seed <= 100; seed++) {
      const { steps = [], tasks, window } = randomCase(seed, { mixed: true, ranks: 1 });
      for (const [what] of steps) count(what);
      for (const { body, fails, inserts, grows, makes } of tasks) {
        count(body);
        if (fails === true) count('fails');
        if (inserts !== undefined) count('inserts');
        if (grows !== undefined) count('grows');
        if (makes !== undefined) count('makes');
      }
      if (window === 4) count('tiny window');
    }
    const steps = ['open', 'insert', 'end', 'cancel', 'make', 'set', 'restore', 'read', 'close'];
    const bodies = ['kernel', 'host', 'script', 'async', 'fails', 'inserts', 'grows', 'makes'];
    for (const what of [...steps, ...bodies, 'pass', 'tiny window'])
      expect(done.get(what), what).toBeGreaterThan(5);
  });
});
