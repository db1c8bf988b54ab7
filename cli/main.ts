#!/usr/bin/env node
// The program `headrace`: connects the process to the commands. Everything testable is in commands.ts.
// The first SIGINT asks the command to stop and clean up; a second one ends the process at once.
import { runCli } from './commands.js';
import { ExitCode } from './context.js';

const interruption = new AbortController();
for (const [signal, code] of [
  ['SIGINT', ExitCode.interrupted],
  ['SIGTERM', 143],
] as const) {
  process.on(signal, () => {
    if (interruption.signal.aborted) process.exit(code);
    interruption.abort();
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
  signal: interruption.signal,
});
