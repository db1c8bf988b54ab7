// A soak stops at a signal, also a soak without a limit, and reports its cases so far.
import '../support/removable-guards.js';
import { expect, test } from 'vitest';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { soak } from '../../devices/simulated/cases/soak.js';

test('a soak ends at a signal that only the event loop serves, and reports the cases so far', async () => {
  const stop = new AbortController();
  const counts: number[] = [];
  const result = await soak({
    firstSeed: 1,
    signal: stop.signal,
    played: (cases) => {
      counts.push(cases);
      // A timer, as signals of the process: it fires only when the soak lets the event loop turn.
      if (cases === 3) setTimeout(() => stop.abort());
    },
  });
  expect(result.seeds).toBeGreaterThanOrEqual(3);
  expect(counts).toEqual(Array.from({ length: result.seeds }, (_, i) => i + 1));
  expect(result.violations).toBe(0);
});

test('a soak plans and plays programs, and names those that give something else', async () => {
  const besides = await soak({ firstSeed: 1, seeds: 5, plans: 'also' });
  expect(besides).toMatchObject({ seeds: 5, plans: 2, violations: 0, planFailures: [] });
  setGuard('planLoop', false);
  try {
    const alone = { firstSeed: 1, seeds: 60, plans: 'only', stopAtFirst: true } as const;
    const { violations, planFailures } = await soak(alone);
    expect(violations).toBe(1);
    const [{ seed, problem }] = planFailures;
    expect(problem).toMatch(/^played: /);
    const again = await soak({ firstSeed: seed, seeds: 1, plans: 'only' });
    expect(again.planFailures).toEqual([{ seed, problem }]);
  } finally {
    setGuard('planLoop', true);
  }
});
