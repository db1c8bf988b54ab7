// `headrace trace summary | critical-path | diff`: the answers in text or JSON.
import {
  Causes,
  criticalPath,
  criticalPathText,
  diffSummaries,
  diffText,
  formatShare,
  formatTime,
  parseWhatIf,
  summarize,
  summaryText,
  Waits,
  WhatIfModel,
} from '../../trace/analysis/index.js';
import type { CliContext } from '../context.js';
import { parseTraceArguments, wholeNumber } from './arguments.js';
import { loadForCommand } from './files.js';

const summaryUsage = `usage: headrace trace summary FILE... [--json] [--all]

Makespan and its bounds, busy and idle time per lane with the reasons, bytes moved and required, task classes,
memory, overlap. Give one file per rank, or the name they were recorded under.

  --json   one JSON object with all numbers (times in nanoseconds, sizes in bytes)
  --all    also the time before the first run and after the last
`;

/** The summary of a trace. */
export function summaryCommand(argv: readonly string[], context: CliContext): void {
  const given = parseTraceArguments(
    argv,
    { json: { type: 'boolean' }, all: { type: 'boolean' } },
    [1, Number.POSITIVE_INFINITY],
    summaryUsage,
  );
  if (given.flag('help')) {
    context.stdout.write(summaryUsage);
    return;
  }
  const summary = summarize(
    loadForCommand(given.files, context, given.flag('all'), given.flag('json')),
  );
  context.stdout.write(given.flag('json') ? `${JSON.stringify(summary)}\n` : summaryText(summary));
}

const pathUsage = `usage: headrace trace critical-path FILE... [--what-if NAME=FACTOR]... [--limit N] [--json] [--all]

The chain of tasks, transfers and messages that determined the makespan, with the cause that released each and the
gap before it.

  --what-if NAME=FACTOR   evaluate the recorded graph again with a part FACTOR times as fast, or free.
                          NAME is a task class, h2d, d2h, d2d, network, transfers (all four), scheduler, memory
                          or submission. Repeat it to change several parts at once: network=2, gemm=free
  --limit N               steps to print [40]
  --json                  one JSON object with all steps
  --all                   also the time before the first run and after the last
`;

/** The critical path, and what-if. */
export function criticalPathCommand(argv: readonly string[], context: CliContext): void {
  const given = parseTraceArguments(
    argv,
    {
      'what-if': { type: 'string', multiple: true },
      limit: { type: 'string' },
      json: { type: 'boolean' },
      all: { type: 'boolean' },
    },
    [1, Number.POSITIVE_INFINITY],
    pathUsage,
  );
  if (given.flag('help')) {
    context.stdout.write(pathUsage);
    return;
  }
  const limit = wholeNumber(given, 'limit', [2, 1e9], pathUsage) ?? 40;
  const trace = loadForCommand(given.files, context, given.flag('all'), given.flag('json'));
  const settings = given.list('what-if');
  const scenario = parseWhatIf(settings, trace);
  const causes = new Causes(trace, new Waits(trace));
  const path = criticalPath(trace, causes);
  const whatIf =
    settings.length > 0 ? new WhatIfModel(trace, causes).evaluate(scenario) : undefined;
  if (given.flag('json')) {
    const answer = whatIf && { settings, ...whatIf };
    context.stdout.write(`${JSON.stringify({ ...path, whatIf: answer })}\n`);
    return;
  }
  context.stdout.write(criticalPathText(path, limit));
  if (whatIf) {
    const saved = whatIf.recorded - whatIf.predicted;
    context.stdout.write(
      `\nWhat if ${settings.join(' and ')}: ${formatTime(whatIf.predicted)} instead of ` +
        `${formatTime(whatIf.recorded)} (${formatShare(saved, whatIf.recorded)} less, ` +
        `${whatIf.speedup.toFixed(2)} x), with the same tasks on the same lanes in the same order\n`,
    );
  }
}

const diffUsage = `usage: headrace trace diff A B [--json] [--all]

The differences between trace A and trace B: makespan, idle time by reason, kernel time by class, lanes, bytes, memory.

  --json   one JSON object
  --all    also the time before the first run and after the last
`;

/** The difference between two traces. */
export function diffCommand(argv: readonly string[], context: CliContext): void {
  const given = parseTraceArguments(
    argv,
    { json: { type: 'boolean' }, all: { type: 'boolean' } },
    [2, 2],
    diffUsage,
  );
  if (given.flag('help')) {
    context.stdout.write(diffUsage);
    return;
  }
  const [a, b] = given.files.map((file) =>
    summarize(loadForCommand([file], context, given.flag('all'), given.flag('json'))),
  );
  const diff = diffSummaries(a, b);
  context.stdout.write(given.flag('json') ? `${JSON.stringify(diff)}\n` : diffText(diff));
}
