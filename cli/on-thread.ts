// Runs a command on a thread of its own, so that the main thread serves signals whatever the command does.
//
// The first signal asks the command to stop. A command that lets its event loop turn, or checks for signals in its loops,
// answers and cleans up by itself. A command that does not answer is cut off, and this file removes its leftovers.
// Invariant: a command ends with a result, or with an error that gives the reason.
import { rmSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { HeadraceError } from '../scheduler/errors.js';
import { reportError } from './commands.js';
import type { CliContext } from './context.js';
import { type CommandThreadData, type FromCommand, Word } from './thread-messages.js';

/** Milliseconds that a command has to answer that it will stop. */
const ANSWER_MS = 80;

/** Runs the command line to its exit code. Never rejects. `commands` is the module with the commands. */
export function runOnThread(
  argv: readonly string[],
  context: CliContext,
  commands: URL = new URL('./commands.js', import.meta.url),
): Promise<number> {
  const { stdout, stderr, program, signal } = context;
  const shared = new Int32Array(new SharedArrayBuffer(4 * Word.count));
  const setColumns = (): void => {
    Atomics.store(shared, Word.columns, stderr.columns ?? 0);
  };
  setColumns();
  const workerData: CommandThreadData = {
    commands: commands.href,
    argv,
    program,
    isTTY: stderr.isTTY === true,
    words: shared.buffer as SharedArrayBuffer,
  };
  const worker = new Worker(new URL('./command-thread.js', import.meta.url), {
    workerData,
    // The default heap of a thread is smaller than that of a process.
    resourceLimits: { maxOldGenerationSizeMb: getHeapStatistics().heap_size_limit / 2 ** 20 },
  });
  const leftovers = new Set<string>();
  let heard = false;
  let isOver = false;
  let waitedFor = '';
  return new Promise((resolve) => {
    const end = (code: number): void => {
      isOver = true;
      process.off('SIGWINCH', setColumns);
      for (const path of leftovers) rmSync(path, { recursive: true, force: true });
      resolve(code);
      // Without a signal the thread ends by itself, after it has sent the rest of its output.
      if (signal.aborted) void worker.terminate();
    };
    const fail = (error: unknown): void => {
      if (isOver) return;
      // The rest of a progress bar.
      if (stderr.isTTY === true) stderr.write('\r\u001b[2K');
      end(reportError(error, argv, context));
    };
    process.on('SIGWINCH', setColumns);
    worker.on('message', (message: FromCommand) => {
      if (isOver) return;
      switch (message.kind) {
        case 'stdout':
          stdout.write(message.text);
          break;
        case 'stderr':
          stderr.write(message.text);
          break;
        case 'heard':
          heard = true;
          break;
        case 'silent':
          waitedFor = message.awaited;
          break;
        case 'leftover':
          if (message.unfinished) leftovers.add(message.path);
          else leftovers.delete(message.path);
          break;
        case 'result':
          end(message.code);
      }
    });
    worker.on('error', fail);
    worker.on('exit', () => fail(withoutResult(waitedFor)));
    const stop = (): void => {
      Atomics.store(shared, Word.stop, 1);
      worker.postMessage('stop');
      setTimeout(() => {
        if (!heard) fail(signal.reason);
      }, ANSWER_MS);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}

/** The error of a command that ended without a result. */
export function withoutResult(awaited: string): HeadraceError {
  const what = awaited === '' ? 'nothing that is known' : awaited;
  return new HeadraceError(
    'ERR_INTERNAL',
    `the command ended without a result; it waited for ${what}`,
    { remedy: 'this is a defect of Headrace; please report it' },
  );
}
