// Every guard of the engine is needed: without it some random case fails, and a check detects the failure.
import '../support/removable-guards.js';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { randomCase } from '../../devices/simulated/cases/case.js';
import { mutate, mutations } from '../../devices/simulated/cases/mutations.js';
import { play } from '../../devices/simulated/cases/play.js';
import { guardNames } from '../../devices/simulated/cases/set-guard.js';
import { guardTests } from '../../scripts/lib/guard-tests.mjs';

describe('without a guard', () => {
  const inProcess = mutations.filter((m) => m.endless !== true);
  test.each(inProcess.map((m) => [m.hazard, m.guard, m] as const))(
    '%s: without %s the suite turns red',
    async (_, __, mutation) => {
      const { seeds, breaks } = await mutate(mutation, 1000);
      expect(breaks).not.toBe('');
      expect(seeds).toBeGreaterThan(0);
    },
    // How many cases it takes is fixed; how long they take is not.
    120_000,
  );

  test('every guard has a row, or a test of its own', () => {
    const native = readFileSync(new URL('../../native/core/guards.h', import.meta.url), 'utf8');
    const all = [
      ...guardNames,
      ...[...native.matchAll(/^ {2}bool (\w+) = true;$/gm)].map(([, name]) => name),
    ];
    const covered = [...mutations, ...guardTests].map((m) => m.guard);
    expect(covered.toSorted()).toEqual(all.toSorted());
  });

  test.each(guardTests as readonly { guard: string; file: string }[])(
    '$guard is switched off by $file',
    ({ guard, file }) => {
      const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      expect(text).toContain(`'${guard}'`);
      // The mutation table looks for its test by this name.
      expect(text).toMatch(new RegExp(`without (?:${guard}|%s|\\$guard|\\$\\{\\w+\\}):`));
    },
  );

  test('and with all of them back, the same cases are good', async () => {
    for (let seed = 1; seed <= 50; seed++) {
      expect((await play(randomCase(seed, { faults: seed % 2 === 0 }))).problems).toEqual([]);
    }
  });
});
