// The process that `headrace graph` starts: loads the user's file, and verifies or draws its graph. It ends when that is done, whatever
// the file has left open.
import { reportError } from './commands.js';
import { type CliContext, ExitCode } from './context.js';
import { drawGraph } from './graph-drawing.js';
import { openGraph } from './graph-file.js';
import type { GraphRequest } from './graph-request.js';
import { verifyGraph } from './graph-verification.js';

// A reader that closes the pipe early is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(ExitCode.ok);
  throw error;
});

const request = JSON.parse(process.argv[2]) as GraphRequest;
const context: CliContext = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  program: request.program,
  signal: new AbortController().signal,
};

async function answer(): Promise<number> {
  const opened = await openGraph(request);
  return request.command === 'verify'
    ? verifyGraph(opened, request, context)
    : drawGraph(opened, request, context);
}

const wantsJson = request.command === 'verify' && request.json;
const code = await answer().catch((error: unknown) =>
  reportError(error, wantsJson ? ['--json'] : [], context),
);
process.stdout.write('', () => process.exit(code));
