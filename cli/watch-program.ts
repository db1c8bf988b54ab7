// `headrace run --watch program.ts`: node loads this before the program. It prints the state of the program's runs on
// stderr, a line every two seconds, because the terminal belongs to the program.
import { subscribe } from 'node:diagnostics_channel';
import { launchOf } from '../devices/launch.js';
import type { Run } from '../index.js';
import { createWatch } from './watch.js';

/** Milliseconds between two looks at a run in which nothing completes. */
const LOOK_MS = 250;

const stream = { isTTY: false, write: (text: string) => process.stderr.write(text) };
const watch = createWatch({ stream, env: process.env });
/** The runs that are under way, the oldest first: that one is shown. */
const runs = new Set<Run>();

function show(): void {
  const [oldest] = runs;
  if (oldest !== undefined) watch.show(oldest.status());
}

if (launchOf().rank === 0) {
  const runOf = (message: unknown): Run => (message as { readonly run: Run }).run;
  subscribe('headrace:run:start', (message) => runs.add(runOf(message)));
  subscribe('headrace:run:progress', show);
  const ended = (message: unknown): void => void runs.delete(runOf(message));
  subscribe('headrace:run:end', ended);
  subscribe('headrace:run:error', ended);
  setInterval(show, LOOK_MS).unref();
  process.on('exit', () => watch.end());
}
