// `headrace trace view` and `headrace trace html`: the timeline in a browser, served or as a file.
// The server listens on the loopback address only, answers one page and nothing else, and refuses requests that name
// another host, so that no web page can read a trace through a rebound name.
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeTo, writeToMemory } from '../../trace/export/index.js';
import { writePage } from '../../trace/html/index.js';
import { awaited } from '../awaited.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../options.js';
import { parseTraceArguments, wholeNumber } from './arguments.js';
import { loadForCommand } from './files.js';

const viewUsage = `usage: headrace trace view FILE... [--no-open] [--port N] [--all]

Serves the timeline on this machine and opens it in the browser; ends with Ctrl-C.

  --no-open   only print the address
  --port N    port to listen on [any free one]
  --all       also the time before the first run and after the last
`;

/** Serves the timeline until interrupted. */
export async function viewCommand(argv: readonly string[], context: CliContext): Promise<void> {
  const given = parseTraceArguments(
    argv,
    { 'no-open': { type: 'boolean' }, port: { type: 'string' }, all: { type: 'boolean' } },
    [1, Number.POSITIVE_INFINITY],
    viewUsage,
  );
  if (given.flag('help')) {
    context.stdout.write(viewUsage);
    return;
  }
  const port = wholeNumber(given, 'port', [0, 65535], viewUsage) ?? 0;
  const trace = loadForCommand(given.files, context, given.flag('all'));
  const page = writeToMemory((output) => writePage(trace, output));
  const server = pageServer(page);
  const address = await awaited('a port to listen on', listening(server, port));
  context.stdout.write(`${address}\n`);
  context.stderr.write('headrace: press Ctrl-C to end\n');
  if (!given.flag('no-open')) openBrowser(address, context);
  await awaited('an interruption', interrupted(context.signal));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

function pageServer(page: Uint8Array): Server {
  return createServer((request, response) => {
    const host = request.headers.host ?? '';
    if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(host)) {
      response.writeHead(403).end();
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end();
    } else if (request.url !== '/') {
      response.writeHead(404).end();
    } else {
      response.writeHead(200, {
        'content-type': 'text/html; charset=utf-8',
        'content-length': page.length,
        'cache-control': 'no-store',
      });
      response.end(request.method === 'HEAD' ? undefined : page);
    }
  });
}

function listening(server: Server, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? `port ${port} is in use` : error.message;
      reject(new UsageError(`cannot listen: ${why}; choose another with --port`, viewUsage));
    });
    server.listen(port, '127.0.0.1', () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    });
  });
}

function interrupted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function openBrowser(address: string, context: CliContext): void {
  const [command, ...words] =
    process.platform === 'darwin'
      ? ['open', address]
      : process.platform === 'win32'
        ? ['cmd', '/c', 'start', '', address]
        : ['xdg-open', address];
  const child = spawn(command, words, { stdio: 'ignore', detached: true });
  child.on('error', () => {
    context.stderr.write(`headrace: no browser could be started; open ${address} yourself\n`);
  });
  child.unref();
}

const htmlUsage = `usage: headrace trace html FILE... -o OUT.html [--all]

Writes the timeline as one self-contained file that works from disk.

  -o, --output OUT   file to write, - for standard output [FILE with the ending .html]
  --all              also the time before the first run and after the last
`;

/** Writes the page into a file. */
export function htmlCommand(argv: readonly string[], context: CliContext): void {
  const given = parseTraceArguments(
    argv,
    { output: { type: 'string', short: 'o' }, all: { type: 'boolean' } },
    [1, Number.POSITIVE_INFINITY],
    htmlUsage,
  );
  if (given.flag('help')) {
    context.stdout.write(htmlUsage);
    return;
  }
  const target = given.text('output') ?? `${given.files[0].replace(/(\.\d+)?\.hrtrace$/, '')}.html`;
  if (given.files.includes(target)) {
    throw new UsageError(`--output ${target} would overwrite the trace`, htmlUsage);
  }
  const trace = loadForCommand(given.files, context, given.flag('all'));
  const bytes = writeTo(target, (output) => writePage(trace, output), context.leftover);
  if (target !== '-') context.stderr.write(`${target}: ${bytes} bytes; open it in a browser\n`);
}
