// The thread of a command: runs the command line it is given and passes on what the command writes.
// Invariant: the last message is the result, or says what was awaited when there is none.
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
// The port alone must not keep the thread alive: a command that waits for nothing ends without a result, and says so.
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
