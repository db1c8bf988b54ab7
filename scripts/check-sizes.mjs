// Warns about source files that probably hold more than one idea. Never fails: size is a hint, not a rule.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandLine } from './lib/command-line.mjs';
import { listFiles } from './lib/stamp.mjs';

const usage = `usage: node scripts/check-sizes.mjs [project folder]

Warns about source files that probably hold more than one idea. Never fails.

  --help    this text
`;

/** Number of lines above which a file needs a look. Tests may be longer, because they have many similar cases. */
export const limits = { source: 400, test: 700 };

const folders = [
  'index.ts',
  'scheduler',
  'stages',
  'devices',
  'native',
  'trace',
  'algorithms',
  'cli',
  'examples',
  'bench',
  'scripts',
  'test',
];
const endings = ['.ts', '.mjs', '.cc', '.cpp', '.h', '.hpp', '.cu'];

/** @returns {{ file: string, lines: number, limit: number }[]} largest first */
export function largeFiles(root) {
  return listFiles(root, folders, (file) => endings.some((ending) => file.endsWith(ending)))
    .map((file) => ({
      file,
      lines: readFileSync(path.join(root, file), 'utf8').split('\n').length - 1,
      limit: file.startsWith('test/') ? limits.test : limits.source,
    }))
    .filter(({ lines, limit }) => lines > limit)
    .sort((a, b) => b.lines - a.lines);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { positionals } = commandLine(usage, {}, { words: true });
  const root = path.resolve(
    positionals[0] ?? path.dirname(path.dirname(fileURLToPath(import.meta.url))),
  );
  for (const { file, lines, limit } of largeFiles(root)) {
    console.log(
      `warning: ${file} has ${lines} lines (more than ${limit}): does it still hold one idea?`,
    );
  }
}
