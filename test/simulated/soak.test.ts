// A soak stops at a signal, also a soak without a limit, and reports its cases so far.
import { expect, test } from 'vitest';
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
