// Random programs of the public interface on simulated ranks: every value that they see is that of plain arrays.
import { afterEach, describe, expect, test } from 'vitest';
import '../support/removable-guards.js';
import { playFrontEnd } from '../../devices/simulated/cases/front-end-cases.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import { soak } from '../../devices/simulated/cases/soak.js';
import { partOf } from '../support/grids.js';

test('random programs give what plain arrays give', async () => {
  const kinds: Record<string, number> = {};
  for (let seed = 1; seed <= partOf(600, 30); seed++) {
    const played = await playFrontEnd(seed);
    expect(played.problem, `seed ${seed}`).toBe('');
    for (const [kind, n] of Object.entries(played.kinds)) kinds[kind] = (kinds[kind] ?? 0) + n;
  }
  const all = [
    'plain',
    'async',
    'kernel',
    'script',
    'init',
    'commute',
    'reduce',
    'list',
    'steered',
  ];
  all.push('steeredKernel', 'family', 'family on ranks', 'fails', 'value', 'read', 'space');
  all.push('runs', 'runs that fail', 'parameterised graphs');
  all.push('part', 'partKernel', 'readPart', 'closePart');
  all.push('initKernel', 'commuteKernel', 'check', 'played runs', 'runs with played stretches');
  all.push('plans', 'plans with parts', 'family with parts');
  expect(Object.keys(kinds).sort()).toEqual(all.sort());
}, 120_000);

/** The programs of these numbers repeat their runs, and stretches of them: what is wrong with one, and what was played in all. */
async function playRepeating(first: number, many: number) {
  const sum = { problem: '', runs: 0, whole: 0, stretches: 0, bad: 0 };
  for (let seed = 5 * first; seed < 5 * (first + many) && sum.problem === ''; seed += 5) {
    const { problem, kinds } = await playFrontEnd(seed);
    if (problem !== '') sum.problem = `seed ${seed}: ${problem}`;
    sum.runs += kinds['runs'] ?? 0;
    sum.bad += kinds['runs that fail'] ?? 0;
    sum.whole += kinds['played runs'] ?? 0;
    sum.stretches += kinds['runs with played stretches'] ?? 0;
  }
  return sum;
}

test('programs that repeat runs and stretches give what plain arrays give, and are played', async () => {
  const { problem, runs, whole, stretches, bad } = await playRepeating(1, partOf(400, 40));
  expect(problem).toBe('');
  expect(whole).toBeGreaterThan(runs / 8);
  expect(stretches).toBeGreaterThan(runs / 40);
  expect(bad).toBeGreaterThan(runs / 40);
}, 120_000);

describe('defects that they found', () => {
  test.each([
    ['tasks that follow those of other ranks, after a failed run', 323],
    ['data that are made after a failed run with such tasks', 63],
    ['a dropped writer behind a family', 392],
    ['a value from before a run that has succeeded', 27001206],
    ['a part that some ranks have made in a failed run', 33001378],
    ['the failure of a task as that of a read', 3001243],
  ])('%s', async (_, seed) => {
    expect((await playFrontEnd(seed)).problem).toBe('');
  });
});

describe('a soak', () => {
  afterEach(() => {
    for (const name of guardNames) setGuard(name, true);
  });

  test('plays them besides its cases, and counts the kinds of their steps', async () => {
    const sum = await soak({ firstSeed: 1, seeds: 4, frontEnd: 'also' });
    expect(sum).toMatchObject({ seeds: 4, frontEnd: 2, violations: 0, frontEndFailures: [] });
    expect(sum.frontEndKinds['kernel']).toBeGreaterThan(0);
  });

  test.each([
    ['recognisedSame', 90],
    ['stretchBodies', 250],
  ] as const)('names a program that repeats without %s', async (guard, seed) => {
    expect((await playFrontEnd(seed)).problem).toBe('');
    setGuard(guard, false);
    expect((await playFrontEnd(seed)).problem).not.toBe('');
  });

  test.each(['joinWaits', 'familyInPlace'] as const)(
    'names one that goes wrong without %s, and its seed plays it again',
    async (guard) => {
      setGuard(guard, false);
      const only = { frontEnd: 'only', stopAtFirst: true } as const;
      const sum = await soak({
        ...only,
        firstSeed: guard === 'familyInPlace' ? 392 : 1,
        seeds: 60,
      });
      expect(sum.violations).toBe(1);
      const [{ seed, problem }] = sum.frontEndFailures;
      expect(problem).not.toBe('');
      const again = await soak({ ...only, firstSeed: seed, seeds: 1 });
      expect(again.frontEndFailures).toEqual([{ seed, problem }]);
    },
    60_000,
  );
});
