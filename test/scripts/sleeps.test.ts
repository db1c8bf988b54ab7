// Tests wait for conditions. A comment at each fixed sleep gives the reason why the test needs real time.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('..', import.meta.url));
const SLEEP = /new Promise(<\w+>)?\(\(\w+\) => setTimeout\(/;
/** A function of its own that sleeps: its calls are the sleeps. */
const HELPER =
  /^\s*(?:export )?const (\w+) = .*=>\s*new Promise(?:<\w+>)?\(\(\w+\) => setTimeout\(/;
const TIMERS = /^import \{([^}]*)\} from 'node:timers\/promises'/m;
/** What may stand just before: a loop that looks for something, or a comment. */
const REASON = /\b(for|while) \(|^\s*\/\/|^\s*\* /;
const NEAR = 4;

/** Names by which a file calls sleeps. */
function sleepersIn(text: string): string[] {
  const helpers = text.split('\n').flatMap((line) => HELPER.exec(line)?.[1] ?? []);
  const timer = /\bsetTimeout(?: as (\w+))?/.exec(TIMERS.exec(text)?.[1] ?? '');
  return timer === null ? helpers : [...helpers, timer[1] ?? 'setTimeout'];
}

/** Lines, from 0, with a sleep, and those of them without a reason. */
function sleepsIn(text: string): { readonly all: number[]; readonly bare: number[] } {
  const lines = text.split('\n');
  const names = sleepersIn(text);
  const call = names.length === 0 ? SLEEP : new RegExp(`\\b(?:${names.join('|')})\\(`);
  const all = lines.flatMap((line, i) =>
    (SLEEP.test(line) || call.test(line)) && !HELPER.test(line) ? [i] : [],
  );
  const hasReason = (i: number): boolean =>
    lines.slice(Math.max(0, i - NEAR), i + 1).some((line) => REASON.test(line));
  return { all, bare: all.filter((i) => !hasReason(i)) };
}

test('a sleep in a test is part of a loop, or has a comment', () => {
  const bare: string[] = [];
  let sleeps = 0;
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(ts|mjs)$/.test(file) || file === 'scripts/sleeps.test.ts') continue;
    const text = readFileSync(path.join(folder, file), 'utf8');
    const found = sleepsIn(text);
    sleeps += found.all.length;
    const lines = text.split('\n');
    bare.push(...found.bare.map((i) => `${file}:${i + 1}: ${lines[i]?.trim()}`));
  }
  expect(sleeps).toBeGreaterThan(5);
  expect(bare).toEqual([]);
});

test.each([
  ['a promise', 'await new Promise((resolve) => setTimeout(resolve, 5));', 1],
  ['a body', 'body: () => new Promise<void>((go) => setTimeout(go, 5)),', 1],
  [
    'a helper',
    'const nap = (ms) => new Promise((go) => setTimeout(go, ms));\nf();\nawait nap(5);',
    1,
  ],
  [
    'a timer of Node',
    "import { setTimeout } from 'node:timers/promises';\nawait setTimeout(5);",
    1,
  ],
  ['its other name', "import { setTimeout as nap } from 'node:timers/promises';\nawait nap(5);", 1],
  ['a loop', 'while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));', 0],
  ['a comment', '// The reason.\nawait new Promise((resolve) => setTimeout(resolve, 5));', 0],
  ['a callback', 'setTimeout(() => abort(), 5);', 0],
])('the guard sees %s', (_, text, bare) => {
  expect(sleepsIn(text).bare).toHaveLength(bare);
});
