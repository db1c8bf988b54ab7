// Signals to the compiled program as a process, while a command is busy, blocks in a call, or waits for an event that
// never comes. No command here would end by itself within the time of a test.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { runOnThread as RunOnThread } from '../../cli/on-thread.js';
import { record, task } from '../trace/support.js';
import { testContext } from './context.js';

const dist = fileURLToPath(new URL('../../dist/cli/', import.meta.url));
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace-signals-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Exit code as a shell gives it: 128 and the signal's number for a process that a signal ended. */
const shellCode = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? (signal === 'SIGINT' ? 130 : signal === 'SIGTERM' ? 143 : -1);

function start(...words: string[]): { child: ChildProcess; ended: Promise<Ended> } {
  const env = { ...process.env, TMPDIR: path.join(folder, 'tmp') };
  execFileSync('mkdir', ['-p', env.TMPDIR]);
  const child = spawn(process.execPath, [path.join(dist, 'main.js'), ...words], { env });
  let [out, err] = ['', ''];
  child.stdout?.on('data', (text) => (out += text));
  child.stderr?.on('data', (text) => (err += text));
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => resolve({ code: shellCode(code, signal), out, err })),
  );
  return { child, ended };
}

/** Waits until `look` finds something. */
async function found<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const value = look();
    if (value !== undefined) return value;
    await pause(10);
  }
}

test.each([
  { signal: 'SIGINT', code: 130 },
  { signal: 'SIGTERM', code: 143 },
] as const)('$signal ends a simulation that inserts a million tasks', async ({ signal, code }) => {
  const words = 'cholesky --ranks 64 --n 204800 --tile 1024 --json --trace'.split(' ');
  const { child, ended } = start('simulate', ...words, path.join(folder, 't.hrtrace'));
  await found(() => readdirSync(folder).find((name) => name === 't.63.hrtrace'));
  child.kill(signal);
  const { code: found_, out, err } = await ended;
  expect({ code: found_, err }).toEqual({ code, err: 'headrace: interrupted\n' });
  expect(JSON.parse(out)).toMatchObject({ ok: false, error: { code: 'ERR_ABORTED' } });
  expect(readdirSync(path.join(folder, 'tmp'))).toEqual([]);
});

test('a command in a write that does not come back is cut off', async () => {
  const [fifo, trace] = [path.join(folder, 'pipe'), path.join(folder, 't.hrtrace')];
  execFileSync('mkfifo', [fifo]);
  writeFileSync(
    trace,
    record((recorder) => task(recorder, 1, 0, { start: 0, end: 9 })),
  );
  const fd = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const { child, ended } = start('trace', 'html', trace, '-o', fifo, '--all');
  // A page is larger than a pipe, of which only this is read.
  await found(() => {
    try {
      return readSync(fd, new Uint8Array(1)) || undefined;
    } catch {
      return undefined;
    }
  });
  child.kill('SIGINT');
  expect(await ended).toMatchObject({ code: 130, err: 'headrace: interrupted\n' });
  closeSync(fd);
});

test('a run is interrupted in the middle of its insertions', async () => {
  const trace = path.join(folder, 't.hrtrace');
  const words = ['--n', '8192', '--tile', '32', '--workers', '1', '--trace', trace];
  const { child, ended } = start('run', 'cholesky', ...words);
  await found(() => readdirSync(folder).find((name) => name === 't.hrtrace'));
  child.kill('SIGTERM');
  expect(await ended).toMatchObject({ code: 143, err: expect.stringContaining('interrupted') });
});

test('a command that waits in vain names the thing for which it waits', async () => {
  const { runOnThread } = (await import(path.join(dist, 'on-thread.js'))) as {
    runOnThread: typeof RunOnThread;
  };
  const module = path.join(folder, 'commands.mjs');
  writeFileSync(
    module,
    `import { awaited } from ${JSON.stringify(pathToFileURL(path.join(dist, 'awaited.js')).href)};
     export const runCli = () =>
       awaited('the second coming', new Promise(() => {}), () => 'no sign so far');`,
  );
  for (const argv of [[], ['--json']]) {
    const context = testContext();
    expect(await runOnThread(argv, context, pathToFileURL(module))).toBe(1);
    const words = /without a result; it waited for the second coming:\nno sign so far/;
    expect(context.err()).toMatch(words);
    if (argv.length > 0)
      expect(JSON.parse(context.out())).toMatchObject({
        ok: false,
        error: { code: 'ERR_INTERNAL', message: expect.stringMatching(words) },
      });
  }
});
