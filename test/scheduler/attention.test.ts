// Which runs are looked at: all, until some in a row were new; then few; and all again once something has come again.
import { describe, expect, test } from 'vitest';
import { Attention } from '../../scheduler/recognition/attention.js';

/** Which of so many runs are looked at, if `isNew` says of each whether the look finds nothing. */
function looks(runs: number, tasks: (run: number) => number, isNew: (run: number) => boolean) {
  const attention = new Attention();
  const seen: number[] = [];
  for (let run = 0; run < runs; run++) {
    if (!attention.isDue) {
      attention.passed(tasks(run));
      continue;
    }
    seen.push(run);
    if (isNew(run)) attention.lookedInVain(tasks(run));
    else attention.found();
  }
  return seen;
}

describe('attention', () => {
  test('is with the first runs, and with one in 16 when all are new', () => {
    for (const tasks of [1, 100, 10_000]) {
      const seen = looks(
        400,
        () => tasks,
        () => true,
      );
      expect(seen.slice(0, 9)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
      expect(seen.filter((run) => run >= 80)).toHaveLength(20);
    }
  });

  test('comes back to all of them when one was not new', () => {
    const seen = looks(
      400,
      () => 50,
      (run) => run < 200,
    );
    const first = seen.find((run) => run >= 200) as number;
    expect(first).toBeLessThan(216);
    expect(seen.filter((run) => run >= first)).toHaveLength(400 - first);
  });

  test('goes by the work of the runs: behind a short one no long one is passed over but the next', () => {
    const seen = looks(
      200,
      (run) => (run < 100 ? 1 : 10_000),
      () => true,
    );
    expect(seen.filter((run) => run >= 100 && run < 103).length).toBeGreaterThan(0);
  });
});
