// A plan, and a recognised stretch, deal their tasks to the workers as evenly as the engine does. In virtual time: the shares depend on
// decisions only.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import { sharesOf } from '../../bench/plan-balance.js';
import { chains, cholesky, independent, stencil, unequal } from '../../bench/repeated-steps.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import { partOf } from '../support/grids.js';

/** Shares of the workers are compared to that. */
const LEAST = 0.98;

describe.each(partOf([2, 3, 4], [2, 4]))('on %i workers', (workers) => {
  for (const us of partOf([1, 5, 20, 200, 1000], [5, 200])) {
    test(`steps of a stencil of ${us} us tasks`, async () => {
      for (const width of [3, 4, 8, 33, 64]) {
        const { inserted, played, recognised } = await sharesOf(stencil(width), { workers, us });
        expect(played / inserted, `${width}, played`).toBeGreaterThan(LEAST);
        expect(recognised / inserted, `${width}, recognised`).toBeGreaterThan(LEAST);
      }
    });

    test(`chains, and factorisations, of ${us} us tasks`, async () => {
      for (const [name, program] of Object.entries({
        chains: chains(7, 8),
        unequal: unequal(16, 4),
        cholesky: cholesky(8),
      })) {
        const { inserted, played, recognised } = await sharesOf(program, { workers, us });
        expect(played / inserted, `${name}, played`).toBeGreaterThan(LEAST);
        expect(recognised / inserted, `${name}, recognised`).toBeGreaterThan(LEAST);
      }
    });
  }

  test('a stretch has so many periods that the workers have equally many tasks', async () => {
    for (const n of [5, 7, 9, 33]) {
      const { recognised } = await sharesOf(independent(n), { workers, us: 200 });
      expect(recognised, `${n} tasks`).toBeGreaterThan(0.99);
    }
  });
});

describe('guards', () => {
  afterEach(() => setGuard('stretchMeasured', true));

  test('without stretchMeasured: a stretch is dealt out before it is known how long its tasks take', async () => {
    const share = async (): Promise<number> => {
      const { recognised } = await sharesOf(unequal(16, 4), { workers: 3, us: 200 });
      return recognised;
    };
    expect(await share()).toBeGreaterThan(0.95);
    setGuard('stretchMeasured', false);
    expect(await share()).toBeLessThan(0.85);
  });
});
