#!/usr/bin/env node
// The program `headrace`: connects the process to the commands. Everything testable is in commands.ts.
// The first SIGINT or SIGTERM asks the command to stop and clean up; a second one, or a clean-up that takes
// longer than the grace time, ends the process.
import { runCli } from './commands.js';
import { ExitCode } from './context.js';
import { programWords } from './program-words.js';

/** Milliseconds a command has to end after it was asked to. */
const grace = 5000;

const interruption = new AbortController();
for (const [signal, code] of [
  ['SIGINT', ExitCode.interrupted],
  ['SIGTERM', 143],
] as const) {
  process.on(signal, () => {
    if (interruption.signal.aborted) process.exit(code);
    interruption.abort();
    setTimeout(() => {
      process.stderr.write(`headrace: no end after ${grace / 1000} s, giving up\n`);
      process.exit(code);
    }, grace).unref();
  });
}
// A reader that closes the pipe early (`headrace ... | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(ExitCode.ok);
  throw error;
});

process.exitCode = await runCli(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  program: programWords(process.argv[1], process.cwd()),
  signal: interruption.signal,
});
