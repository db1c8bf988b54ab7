#!/usr/bin/env node
// The program `headrace`: connects the process to the commands. Everything testable is in commands.ts.
// The first SIGINT or SIGTERM asks the command to stop and clean up. A second one, or a clean-up that takes
// longer than the grace time, ends the process. Commands run on a thread of their own (on-thread.ts), so the process serves
// signals whatever a command does. Ranks under a launcher do not, because MPI belongs to the process; nor does the command
// that starts a user's program or loads a user's module, because it passes the signals on to a process of its own.
import { programWords } from '../devices/installation.js';
import { launchOf } from '../devices/launch.js';
import { describeAwaited } from './awaited.js';
import { reportError, runCli } from './commands.js';
import { type CliContext, ExitCode } from './context.js';
import { runOnThread, withoutResult } from './on-thread.js';
import { startsProgram } from './run.js';

/** Milliseconds that a command has to end after the request. */
const grace = 5000;
/** Milliseconds until the process ends if the command is over, but its thread is in a call that does not return. */
const lastMoment = 30;

const isRank = launchOf().launcher !== undefined;
const interruption = new AbortController();
const codes = { SIGINT: ExitCode.interrupted, SIGTERM: 143 } as const;
let received: keyof typeof codes | undefined;
let taken: ((signal: NodeJS.Signals) => void) | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (taken !== undefined) {
      taken(signal);
      return;
    }
    if (interruption.signal.aborted) end(signal);
    received = signal;
    interruption.abort();
    setTimeout(() => {
      process.stderr.write(`headrace: no end after ${grace / 1000} s, giving up\n`);
      end(signal);
    }, grace).unref();
  });
}

/** Ends the process. Not by `exit` if there is a thread of a command: that would wait for it. */
function end(signal: keyof typeof codes): void {
  if (runsHere) process.exit(codes[signal]);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

// A reader that closes the pipe early (`headrace ... | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(ExitCode.ok);
  throw error;
});

const argv = process.argv.slice(2);
const context: CliContext = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  program: programWords(process.argv[1], process.cwd()),
  signal: interruption.signal,
  takeSignals: (listener) => {
    taken = listener;
  },
};
let hasResult = false;
process.on('exit', () => {
  if (!hasResult) process.exitCode = reportError(withoutResult(describeAwaited()), argv, context);
});
const runsHere = isRank || argv[0] === 'graph' || startsProgram(argv);
void (runsHere ? runCli(argv, context) : runOnThread(argv, context)).then((code) => {
  hasResult = true;
  process.exitCode =
    received === undefined || code !== ExitCode.interrupted ? code : codes[received];
  if (received !== undefined) setTimeout(end, lastMoment, received).unref();
});
