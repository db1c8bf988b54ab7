// From `npm start` to an open timeline with one command: the test runs its output in a shell, like a newcomer.
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { programWords, shellWord } from '../../native/installation.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace start '));
  for (const name of ['dist', 'build', 'package.json']) {
    symlinkSync(path.join(root, name), path.join(folder, name));
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Shell {
  readonly text: Promise<string>;
  /** Resolves when what was printed so far matches. */
  readonly printed: (pattern: RegExp) => Promise<RegExpExecArray>;
  readonly stop: () => void;
}

/** Runs a command line in a shell in the folder. */
function shell(line: string, env: NodeJS.ProcessEnv = process.env): Shell {
  // A group of its own, so that an interruption reaches the program and not only the shell.
  const child = spawn('/bin/sh', ['-c', line], { cwd: folder, env, detached: true });
  let text = '';
  const listeners = new Set<() => void>();
  const take = (chunk: Buffer): void => {
    text += chunk.toString();
    for (const listener of listeners) listener();
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const ended = new Promise<string>((resolve) => child.on('close', () => resolve(text)));
  return {
    text: ended,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(text);
          if (match !== null) resolve(match);
        };
        listeners.add(look);
        look();
        ended.then(() => reject(new Error(`ended without ${pattern}: ${text}`)));
      }),
    stop: () => {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
    },
  };
}

/** A browser that only notes which address it was given. */
function noteInsteadOfBrowser(): NodeJS.ProcessEnv {
  const bin = mkdtempSync(path.join(folder, 'bin-'));
  for (const name of ['xdg-open', 'open']) {
    writeFileSync(path.join(bin, name), `#!/bin/sh\nprintf %s "$1" > "${folder}/opened"\n`);
    chmodSync(path.join(bin, name), 0o755);
  }
  return { ...process.env, PATH: `${bin}${path.delimiter}${process.env['PATH'] ?? ''}` };
}

async function until<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('npm start prints one command, and that command opens the timeline', async () => {
  const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const start = (scripts.start as string).split(' && ').at(-1);
  const text = await shell(`${start} --n 256 --tile 64`).text;
  const commands = text.match(/^ {2}.*trace view .*$/gm) ?? [];
  expect(commands, text).toHaveLength(1);

  const viewer = shell((commands[0] as string).trim(), noteInsteadOfBrowser());
  try {
    const [address] = await viewer.printed(/http:\/\/127\.0\.0\.1:\d+\//);
    const page = await (await fetch(address)).text();
    expect(page).toMatch(/^<!doctype html>/i);
    expect(page).toContain('potrf');
    const opened = await until(() => {
      try {
        return readFileSync(path.join(folder, 'opened'), 'utf8') || undefined;
      } catch {
        return undefined;
      }
    });
    expect(opened).toBe(address);
  } finally {
    viewer.stop();
    await viewer.text;
  }
});

test('--watch tells on stderr how the run is doing, and leaves the result alone', async () => {
  const run = `node dist/cli/main.js run cholesky --n 256 --tile 64 --json --watch`;
  const result = JSON.parse(await shell(`${run} 2> watched`).text);
  expect(result).toMatchObject({ ok: true, tasks: 20 });
  const lines = readFileSync(path.join(folder, 'watched'), 'utf8').trim().split('\n');
  expect(lines.at(-1)).toMatch(
    /: 20 of 20 tasks \(100 %\); .* tasks\/s, .* moved; .*no tasks in the window$/,
  );
});

describe('the words that start the program again', () => {
  test.each([
    ['/repo/dist/cli/main.js', '/repo', 'node dist/cli/main.js'],
    ['/repo/dist/cli/main.js', '/elsewhere', 'node /repo/dist/cli/main.js'],
    ["/it's here/dist/cli/main.js", '/', "node 'it'\\''s here/dist/cli/main.js'"],
    ['/app/node_modules/.bin/headrace', '/app', 'npx headrace'],
    ['/usr/local/bin/headrace', '/app', 'headrace'],
  ])('%s from %s', (script, cwd, words) => {
    expect(programWords(script, cwd)).toBe(words);
  });

  test('a word with blanks or quotes is one word to the shell', async () => {
    for (const word of ['plain.hrtrace', 'it\'s a $HOME `ls` "run".hrtrace', '']) {
      expect(await shell(`printf '%s' ${shellWord(word)}`).text).toBe(word);
    }
  });
});
