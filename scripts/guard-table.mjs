// Writes the rows of the guards with a test of their own into the table of docs/reliability.md. The rows of the other guards
// have what simulated cases have shown (scripts/mutations.mjs), and stay as they are.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { commandLine } from './lib/command-line.mjs';
import { guardTests } from './lib/guard-tests.mjs';
import { root } from './lib/prepare.mjs';

const usage = `usage: node scripts/guard-table.mjs

Writes the guards of scripts/lib/guard-tests.mjs into the table of docs/reliability.md.

  --help   this text
`;
commandLine(usage, {});
const page = path.join(root, 'docs/reliability.md');
const text = readFileSync(page, 'utf8');
const rows = guardTests
  .map(
    ({ guard, hazard, breaks }) => `| \`${guard}\` | ${hazard} | ${breaks} | a test of its own |\n`,
  )
  .join('');
const isOld = /(?:^\|.*\| a test of its own \|\n)+/m;
if (!isOld.test(text)) throw new Error('docs/reliability.md has no rows of guards');
writeFileSync(
  page,
  text.replace(isOld, () => rows),
);
