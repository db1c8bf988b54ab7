// Random programs of the public interface on simulated ranks: every value that they see is that of plain arrays.
import { afterEach, describe, expect, test } from 'vitest';
import '../support/removable-guards.js';
import { playFrontEnd } from '../../devices/simulated/cases/front-end-cases.js';
import type { TaskStep } from '../../devices/simulated/cases/front-end-program.js';
import { Reference } from '../../devices/simulated/cases/front-end-reference.js';
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
  all.push('part', 'partKernel', 'readPart', 'closePart', 'setPart');
  all.push('reduceKernel', 'reducePart', 'reducePartKernel');
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

test('programs that repeat runs on several ranks give what plain arrays give, and are played', async () => {
  let [runs, played] = [0, 0];
  for (let seed = 1; seed <= partOf(200, 20); seed++) {
    const { problem, kinds } = await playFrontEnd(seed, true);
    expect(problem, `seed ${seed}`).toBe('');
    runs += kinds['runs'] ?? 0;
    played += kinds['played runs'] ?? 0;
  }
  expect(played).toBeGreaterThan(runs / 12);
}, 120_000);

describe('defects that they found', () => {
  test.each([
    ['tasks that follow those of other ranks, after a failed run', 323],
    ['data that are made after a failed run with such tasks', 63],
    ['a dropped writer behind a family', 392],
    ['a value from before a run that has succeeded', 27001206],
    ['a part that some ranks have made in a failed run', 33001378],
    ['a failed run has done the second of two tasks that commute, and not the first', 1000125],
  ])('%s', async (_, seed) => {
    expect((await playFrontEnd(seed)).problem).toBe('');
  });
});

describe('what a datum may be after a run that failed', () => {
  const task = (kind: TaskStep['kind'], y: number, plus: number): TaskStep => ({
    ...{ kind, x: 0, y, plus, alpha: 0, parts: [], operator: 'sum', how: 'body', root: undefined },
    ...{ range: { x: 0, y: 0, count: 2 }, options: {} },
  });

  test('is any value that it had, or what some of the tasks that commute have added', () => {
    const reference = new Reference(
      [
        [1, 2],
        [3, 4],
        [50, 60],
      ].map((v) => new Float64Array(v)),
    );
    const may = (seen: string) => reference.mayBe(0, seen);
    reference.step(task('commuteKernel', 1, 10)); // adds 13, 14
    reference.step(task('commuteKernel', 2, 20)); // adds 70, 80
    expect(['1,2', '14,16', '71,82', '84,96'].map(may)).toEqual([true, true, true, true]);
    expect(['15,16', '14,82', '97,110', '70,80'].map(may)).toEqual([false, false, false, false]);
    // A task that reads the datum ends the group.
    reference.step({ ...task('kernel', 0, 1), x: 1 });
    reference.step(task('commuteKernel', 2, 20));
    expect([may('154,176'), may('141,162'), may('141,96')]).toEqual([true, false, false]);
  });

  test('is only bounded where many tasks commute', () => {
    const reference = new Reference([[0], [1]].map((v) => new Float64Array(v)));
    for (let i = 0; i < 20; i++) reference.step(task('commuteKernel', 1, 1));
    expect([reference.mayBe(0, '7'), reference.mayBe(0, '41')]).toEqual([true, false]);
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
    ['stretchBodies', 360],
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
