// The tutorial, executed like a reader: the test writes every program to a file, runs every command, and compares the
// output with the page. Blocks of the language `sh` marked `no-test` install things; those marked `mpi` need an MPI
// library.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { blocksOf } from '../support/markdown.js';
import { needing, ranks } from '../support/needs.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = readdirSync(path.join(root, 'docs/tutorial'))
  .map((file) => `docs/tutorial/${file}`)
  .sort();

/** A folder with headrace installed, as `npm install headrace` leaves it. */
function project(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'headrace-tutorial-'));
  const bin = path.join(folder, 'node_modules', '.bin');
  mkdirSync(bin, { recursive: true });
  symlinkSync(root, path.join(folder, 'node_modules', 'headrace'));
  const command = path.join(bin, 'headrace');
  writeFileSync(
    command,
    `#!/bin/sh\nexec '${process.execPath}' '${path.join(root, 'dist/cli/main.js')}' "$@"\n`,
  );
  chmodSync(command, 0o755);
  return folder;
}

/** Runs one command line of a page; returns what it printed. */
function run(folder: string, line: string): string {
  const bin = path.join(folder, 'node_modules', '.bin');
  const local = line
    .replace(/^npx headrace /, 'headrace ')
    .replace(/^mpirun /, 'mpirun --allow-run-as-root --oversubscribe --bind-to none ');
  return execFileSync('sh', ['-c', local], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 50_000,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PATH: `${bin}:${process.env['PATH'] ?? ''}`, NO_COLOR: '1' },
  });
}

/** Plays a page; `mpi` says whether its blocks with that mark are played. */
function play(page: string, mpi: boolean): void {
  const folder = project();
  try {
    let printed = '';
    for (const { language, mark, text } of blocksOf(page)) {
      if (language === 'js') {
        const name = /^\/\/ (\S+)\n/.exec(text)?.[1];
        expect(name, `${page}: a program without a name`).toBeDefined();
        writeFileSync(path.join(folder, name as string), text);
      } else if (language === 'sh' && mark !== 'no-test') {
        printed = '';
        if (mark === 'mpi' && !mpi) continue;
        for (const line of text.trim().split('\n')) {
          printed += run(folder, line);
        }
      } else if (language === 'text' && printed !== '') {
        const order = (lines: string): string[] =>
          mark === 'sorted' ? lines.trim().split('\n').sort() : lines.trim().split('\n');
        expect(order(printed)).toEqual(order(text));
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('tutorial', () => {
  test.each(pages.filter((page) => !page.includes('two-ranks')))('%s', (page) => {
    play(page, false);
  });
});

describe('tutorial on two ranks', needing(ranks), () => {
  test('docs/tutorial/5-two-ranks.md', () => {
    play('docs/tutorial/5-two-ranks.md', true);
  });
});
