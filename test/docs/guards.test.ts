// docs/reliability.md lists every guard with its hazard, and the tests of their own with what they notice.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mutations } from '../../devices/simulated/cases/mutations.js';
import { guardTests } from '../../scripts/lib/guard-tests.mjs';

interface GuardTest {
  readonly guard: string;
  readonly hazard: string;
  readonly breaks: string;
}

const page = readFileSync(new URL('../../docs/reliability.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(/^\| `(\w+)` \| (.*?) \| (.*) \| (.*) \|$/gm)].map((row) =>
  row.slice(1),
);

test('every guard that simulated cases need has its row', () => {
  const expected = mutations.map(({ guard, hazard }) => [guard, hazard]);
  const found = rows.filter(([, , , cases]) => cases !== 'a test of its own');
  expect(found.map(([guard, hazard]) => [guard, hazard]).toSorted()).toEqual(expected.toSorted());
});

test('every guard with a test of its own has its row', () => {
  const expected = (guardTests as readonly GuardTest[]).map(({ guard, hazard, breaks }) => [
    guard,
    hazard,
    breaks,
  ]);
  const found = rows.filter(([, , , cases]) => cases === 'a test of its own');
  expect(
    found.map((row) => row.slice(0, 3)),
    'node scripts/guard-table.mjs writes these rows',
  ).toEqual(expected);
});
