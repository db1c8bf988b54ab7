// Tests wait for conditions. A comment at each fixed sleep gives the reason why the test needs real time.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('..', import.meta.url));
const SLEEP = /await new Promise(<\w+>)?\(\(\w+\) => setTimeout\(/;
/** What may stand just before: a loop that looks for something, or a comment. */
const REASON = /\b(for|while) \(|^\s*\/\/|^\s*\* /;
const NEAR = 4;

test('a sleep in a test is part of a loop, or has a comment', () => {
  const bare: string[] = [];
  let sleeps = 0;
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(ts|mjs)$/.test(file) || file === 'scripts/sleeps.test.ts') continue;
    const lines = readFileSync(path.join(folder, file), 'utf8').split('\n');
    for (const [i, line] of lines.entries()) {
      if (!SLEEP.test(line)) continue;
      sleeps++;
      const before = lines.slice(Math.max(0, i - NEAR), i);
      if (!before.some((each) => REASON.test(each))) bare.push(`${file}:${i + 1}: ${line.trim()}`);
    }
  }
  expect(sleeps).toBeGreaterThan(5);
  expect(bare).toEqual([]);
});
