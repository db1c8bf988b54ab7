// Finds the command that a command line names, runs it, and turns every error into words and an exit code.
// Invariant: with --json stdout carries exactly one JSON value, also on failure.
import { packageVersion } from '../devices/installation.js';
import { HeadraceError } from '../scheduler/errors.js';
import { describeThrown, isError } from '../trace/thrown.js';
import { type CliContext, type CommandRunner, ExitCode } from './context.js';
import { nearest, UsageError } from './options.js';

interface Command {
  readonly summary: string;
  /** Loads the code only when the command is used. */
  readonly load: () => Promise<CommandRunner>;
}

const commands: Readonly<Record<string, Command>> = {
  new: {
    summary: 'make a small project: a program, a test, a trace (new my-project)',
    load: async () => (await import('./new.js')).runNewCommand,
  },
  run: {
    summary: 'run a program of yours (run program.ts) or an algorithm (run cholesky)',
    load: async () => (await import('./run.js')).runRunCommand,
  },
  trace: {
    summary: 'analyse a trace: summary, timeline, critical path, export',
    load: async () => (await import('./trace/index.js')).runTraceCommand,
  },
  graph: {
    summary: 'verify or draw a parameterised graph (graph verify graph.ts)',
    load: async () => (await import('./graph.js')).runGraphCommand,
  },
  doctor: {
    summary: 'report the abilities of this machine, and the commands that install missing parts',
    load: async () => (await import('./doctor.js')).runDoctorCommand,
  },
  build: {
    summary: 'build the missing parts of an installed package from source (MPI)',
    load: async () => (await import('./build.js')).runBuildCommand,
  },
  simulate: {
    summary: 'predict a run on a machine described in a file',
    load: async () => (await import('./simulate.js')).runSimulateCommand,
  },
};

/** Usage text of the program. */
function mainUsage(): string {
  const lines = Object.entries(commands).map(
    ([name, { summary }]) => `  ${name.padEnd(10)}${summary}\n`,
  );
  return `usage: headrace <command> [options]

${lines.join('')}
  --help      this text; after a command, its options
  --version   the version

Exit codes: 0 success, 1 failure, 2 wrong command line, 130 interrupted (143 by SIGTERM).
`;
}

/** Runs a command line (without `node` and the script) to its exit code. Never rejects. */
export async function runCli(argv: readonly string[], context: CliContext): Promise<number> {
  try {
    return await dispatch(argv, context);
  } catch (error) {
    return reportError(error, argv, context);
  }
}

async function dispatch(argv: readonly string[], context: CliContext): Promise<number> {
  const [first, ...rest] = argv;
  if (first === '--help' || first === '-h' || first === 'help') {
    context.stdout.write(mainUsage());
    return ExitCode.ok;
  }
  if (first === '--version' || first === '-v') {
    context.stdout.write(`${packageVersion()}\n`);
    return ExitCode.ok;
  }
  if (first === undefined || first.startsWith('-'))
    throw new UsageError('a command is needed', mainUsage());
  if (!Object.hasOwn(commands, first)) {
    const near = nearest(first, Object.keys(commands));
    const hint = near === undefined ? '' : `, did you mean ${near}?`;
    throw new UsageError(`unknown command ${JSON.stringify(first)}${hint}`, mainUsage());
  }
  const run = await commands[first].load();
  return run(rest, context);
}

/** True when the command line asks for JSON, even if it is wrong otherwise. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end === -1 ? undefined : end).includes('--json');
}

/** Prints the failure on the context's streams; returns the exit code. */
export function reportError(error: unknown, argv: readonly string[], context: CliContext): number {
  if (wantsJson(argv)) {
    context.stdout.write(`${JSON.stringify({ ok: false, error: errorFacts(error, context) })}\n`);
  }
  if (error instanceof UsageError) {
    const usage = error.usage === '' ? '' : `\n${error.usage}`;
    context.stderr.write(`headrace: ${error.message}\n${usage}`);
    return ExitCode.usage;
  }
  if (context.signal.aborted) {
    context.stderr.write('headrace: interrupted\n');
    return ExitCode.interrupted;
  }
  context.stderr.write(describeError(error));
  return ExitCode.failure;
}

function errorFacts(error: unknown, context: CliContext): Record<string, unknown> {
  if (error instanceof HeadraceError) return error.toJSON();
  if (context.signal.aborted) return { code: 'ERR_ABORTED', message: 'interrupted' };
  return { code: 'ERR_INTERNAL', message: describeThrown(error) };
}

/** An expected failure in one line and its causes; a stack for a defect of Headrace. */
function describeError(error: unknown): string {
  if (!(error instanceof HeadraceError)) {
    const stack = isError(error) && error.stack !== undefined ? error.stack : describeThrown(error);
    return `headrace: internal error: ${stack}\n`;
  }
  let text = `headrace: ${error.message} [${error.code}]\n`;
  let cause: unknown = error.cause;
  for (let depth = 0; isError(cause) && depth < 5; depth++) {
    const words = describeThrown(cause);
    if (!error.message.includes(words)) text += `  caused by: ${words}\n`;
    cause = cause.cause;
  }
  return text;
}
