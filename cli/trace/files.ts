// The files of a trace argument: the file itself, or the files of all ranks of a run recorded under that name.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { cropToRuns, loadTrace, type Trace } from '../../trace/index.js';
import type { CliContext } from '../context.js';
import { createProgress } from '../progress.js';

/** `out.hrtrace` -> itself, or `out.0.hrtrace`, `out.1.hrtrace` ... if only those exist. */
export function resolveTraceFiles(names: readonly string[]): string[] {
  return names.flatMap((name) => {
    if (existsSync(name)) return [name];
    const ranks = rankFiles(name);
    return ranks.length > 0 ? ranks : [name];
  });
}

function rankFiles(name: string): string[] {
  const folder = path.dirname(name);
  const base = path.basename(name).replace(/\.hrtrace$/, '');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((file) => ({ file, rank: rankOf(file, base) }))
    .filter(({ rank }) => rank >= 0)
    .sort((a, b) => a.rank - b.rank)
    .map(({ file }) => path.join(folder, file));
}

function rankOf(file: string, base: string): number {
  if (!file.startsWith(`${base}.`)) return -1;
  const match = /^\.(\d+)\.hrtrace$/.exec(file.slice(base.length));
  return match ? Number(match[1]) : -1;
}

/** Loads traces with a progress bar, unless that is to be quiet, and stops when the user asks for it. */
function load(files: readonly string[], context: CliContext, isQuiet: boolean): Trace {
  const { stderr: stream, env, signal } = context;
  const progress = createProgress({ stream, enabled: !isQuiet, env });
  try {
    return loadTrace(files, (done, total) => {
      progress.update('read traces', done, total);
      context.checkSignals?.();
      signal.throwIfAborted();
    });
  } finally {
    progress.clear();
  }
}

/**
 * Loads traces and reports their missing parts on stderr. Unless `all` is set, it keeps the time of the runs only, and
 * drops the time before the first and after the last.
 */
export function loadForCommand(
  names: readonly string[],
  context: CliContext,
  all: boolean,
  isQuiet = false,
): Trace {
  const { stderr: notes } = context;
  const trace = load(resolveTraceFiles(names), context, isQuiet);
  for (const problem of trace.problems) notes.write(`headrace: note: ${problem}\n`);
  if (all) return trace;
  const runs = cropToRuns(trace);
  const left = trace.tasks.count - runs.tasks.count;
  if (left > 0) {
    notes.write(
      `headrace: note: ${left} tasks outside of runs (reading results, closing) are left out; --all shows them\n`,
    );
  }
  return runs;
}
