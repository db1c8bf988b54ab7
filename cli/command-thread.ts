// The thread of a command: runs its command line and passes on the output of the command.
// Invariant: the last message is the result, or names the awaited promises if there is no result.
import { parentPort, workerData } from 'node:worker_threads';
import { describeAwaited } from './awaited.js';
import type { runCli } from './commands.js';
import { type CommandThreadData, type FromCommand, Word } from './thread-messages.js';

const { commands, argv, program, isTTY, words } = workerData as CommandThreadData;
const shared = new Int32Array(words);
const tell = (message: FromCommand): void => parentPort?.postMessage(message);

const interruption = new AbortController();
function stop(): void {
  if (interruption.signal.aborted) return;
  tell({ kind: 'heard' });
  interruption.abort();
}
parentPort?.on('message', stop);
// The port alone must not keep the thread alive: a command without work ends without a result, and reports that.
parentPort?.unref();

let isOver = false;
process.on('exit', () => {
  if (!isOver) tell({ kind: 'silent', awaited: describeAwaited() });
});

const module = (await import(commands)) as { readonly runCli: typeof runCli };
const code = await module.runCli(argv, {
  stdout: { write: (text) => tell({ kind: 'stdout', text }) },
  stderr: {
    isTTY,
    get columns() {
      return Atomics.load(shared, Word.columns) || undefined;
    },
    write: (text) => tell({ kind: 'stderr', text }),
  },
  env: process.env,
  program,
  signal: interruption.signal,
  checkSignals: () => {
    if (Atomics.load(shared, Word.stop) !== 0) stop();
  },
  leftover: (path, unfinished) => tell({ kind: 'leftover', path, unfinished }),
});
isOver = true;
tell({ kind: 'result', code });
