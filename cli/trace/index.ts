// `headrace trace <subcommand>`: finds the subcommand and turns the trace room's errors into the program's.
import { HeadraceError } from '../../scheduler/errors.js';
import { TraceError } from '../../trace/index.js';
import { type CliContext, ExitCode } from '../context.js';
import { nearest, UsageError } from '../options.js';
import { exportCommand } from './export.js';
import { criticalPathCommand, diffCommand, summaryCommand } from './summary.js';
import { htmlCommand, viewCommand } from './view.js';

const subcommands: {
  readonly [name: string]: {
    readonly summary: string;
    readonly run: (argv: readonly string[], context: CliContext) => void | Promise<void>;
  };
} = {
  summary: { summary: 'makespan, idle reasons, bytes, classes, memory', run: summaryCommand },
  'critical-path': {
    summary: 'the chain that determined the makespan, and predictions for faster parts',
    run: criticalPathCommand,
  },
  diff: { summary: 'the differences between two traces', run: diffCommand },
  view: { summary: 'open the timeline in a browser', run: viewCommand },
  html: { summary: 'write the timeline as one self-contained file', run: htmlCommand },
  export: {
    summary: 'write it for Perfetto, Chrome, ViTE, Graphviz, spreadsheets',
    run: exportCommand,
  },
};

/** Usage of `headrace trace`. */
function traceUsage(): string {
  const lines = Object.entries(subcommands).map(
    ([name, { summary }]) => `  ${name.padEnd(15)}${summary}\n`,
  );
  return `usage: headrace trace <subcommand> FILE... [options]

${lines.join('')}
headrace trace <subcommand> --help lists the options. Traces are recorded with: headrace run ... --trace FILE
`;
}

/**
 * Runs `headrace trace` with the words after it; resolves to the exit code. Throws UsageError for a wrong command
 * line and HeadraceError for a trace that cannot be read. The program's main turns them into words and exit codes.
 */
export async function runTraceCommand(
  argv: readonly string[],
  context: CliContext,
): Promise<number> {
  const [name, ...rest] = argv;
  if (name === '--help' || name === '-h') {
    context.stdout.write(traceUsage());
    return ExitCode.ok;
  }
  if (name === undefined || name.startsWith('-')) {
    throw new UsageError('a trace subcommand is needed', traceUsage());
  }
  if (!Object.hasOwn(subcommands, name)) {
    const near = nearest(name, Object.keys(subcommands));
    const hint = near === undefined ? '' : `, did you mean ${near}?`;
    throw new UsageError(`unknown trace subcommand ${JSON.stringify(name)}${hint}`, traceUsage());
  }
  try {
    await subcommands[name].run(rest, context);
    return ExitCode.ok;
  } catch (error) {
    if (error instanceof TraceError && error.code === 'ERR_TRACE_USAGE') {
      throw new UsageError(error.message);
    }
    if (error instanceof TraceError) {
      throw new HeadraceError(error.code, error.message, { cause: error.cause });
    }
    throw error;
  }
}
