// Which files a trace argument means: the file itself, or the files of all ranks of a run recorded under that name.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { cropToRuns, loadTrace, type Trace } from '../../trace/index.js';
import type { TextOutput } from '../context.js';

/** `out.hrtrace` -> itself, or `out.0.hrtrace`, `out.1.hrtrace` ... when only those exist. */
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

/**
 * Loads traces and says on `notes` what is missing from them. Unless `all` is set, only the time of the runs is kept:
 * not what the program did before the first and after the last.
 */
export function loadForCommand(names: readonly string[], notes: TextOutput, all: boolean): Trace {
  const trace = loadTrace(resolveTraceFiles(names));
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
