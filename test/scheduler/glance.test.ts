// The look at runs that nothing is known of: it passes most insertions, sees that a run repeats a stretch, and tells runs apart.
import { describe, expect, test } from 'vitest';
import { Random } from '../../devices/simulated/machine/random.js';
import type { TaskInsertion } from '../../scheduler/engine/task-insertion.js';
import { Glance } from '../../scheduler/recognition/glance.js';

type Task = readonly [number, number, number];

/** The numbers of a run, the insertions that were not passed, and the first one after which a stretch was seen. */
function look(tasks: readonly Task[]) {
  const glance = new Glance();
  glance.start(false);
  let seen = 0;
  let repeatedAt = Number.POSITIVE_INFINITY;
  for (const [place, flows] of tasks.entries()) {
    const insertion = {
      cls: { id: 1, modes: [0, 0, 0] },
      flows: Int32Array.from(flows),
      priority: 0,
      device: -1,
    } as unknown as TaskInsertion;
    if (glance.passes(insertion.flows, 2, place)) continue;
    seen++;
    glance.see(insertion, place);
    if (glance.repeated > 0) repeatedAt = Math.min(repeatedAt, place);
  }
  return { seen, repeatedAt, run: glance.run, first: glance.first };
}

const random = (seed: number, count: number): Task[] => {
  const r = new Random(seed);
  return Array.from({ length: count }, () => [r.below(64), r.below(64), r.below(64)]);
};
const repeating = (count: number, period: number, seed = 5): Task[] => {
  const tasks = random(seed, period);
  return Array.from({ length: count }, (_, i) => tasks[i % period]);
};

describe('a glance', () => {
  test('passes most insertions of a run that does not repeat, and sees no stretch', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { seen, repeatedAt } = look(random(seed, 4000));
      expect(seen).toBeLessThan(4000 / 20);
      expect(repeatedAt).toBe(Number.POSITIVE_INFINITY);
    }
  });

  test.each([1, 7, 32, 100, 500, 1500])('sees a period of %i tasks', (period) => {
    for (const before of [0, 3, 700]) {
      const { repeatedAt } = look([...random(9, before), ...repeating(20_000, period)]);
      const least = Math.max(512, period);
      expect(repeatedAt).toBeGreaterThanOrEqual(least);
      expect(repeatedAt).toBeLessThan(4 * (before + least + period) + 128);
    }
  });

  test('gives equal runs equal numbers, and others other ones', () => {
    const tasks = random(3, 1000);
    const { run, first } = look(tasks);
    expect(look(tasks)).toMatchObject({ run, first });
    for (const place of [0, 5, 16 + 32 * 10]) {
      const other = tasks.map((flows, i): Task => (i === place ? [1, 2, 65] : flows));
      expect(look(other).run).not.toBe(run);
      expect(look(other).first === first).toBe(place > 0);
    }
  });
});
