// The environment variables that shipped code reads are the ones that docs/installation.md lists.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { documented } from '../../scripts/release/variables.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const ROOMS = ['scheduler', 'stages', 'devices', 'trace', 'algorithms', 'cli', 'native'];
/** Parts of native/ that are not part of the addons. */
const TESTS = /^native\/(test|stub|bench)\//;
const READS = /(?:process\.env|\benv)\['(HEADRACE_\w+)'\]|getenv\("(HEADRACE_\w+)"\)/g;

test('docs/installation.md lists the variables that Headrace reads', () => {
  const read = new Set<string>();
  for (const room of ROOMS) {
    const files = readdirSync(path.join(root, room), { recursive: true, encoding: 'utf8' });
    for (const file of files.map((name) => path.posix.join(room, name))) {
      if (!/\.(ts|cpp|h)$/.test(file) || TESTS.test(file)) continue;
      const source = readFileSync(path.join(root, file), 'utf8');
      for (const [, script, native] of source.matchAll(READS)) read.add(script ?? native);
    }
  }
  expect(read.size).toBeGreaterThan(8);
  expect([...documented()].sort()).toEqual([...read].sort());
});
