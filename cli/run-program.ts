// `headrace run program.ts`: starts a program of the user under node, in a process of its own. Options before the program's
// name become defaults of the runtimes that it creates (scheduler/program/environment-options.ts).
// Invariant: the program has its streams, its arguments and its signals as if node had started it, and the exit code is
// its own.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { shellWord } from '../devices/installation.js';
import { launchOf } from '../devices/launch.js';
import { awaited } from './awaited.js';
import type { CliContext } from './context.js';
import {
  choice,
  describeOptions,
  flag,
  integer,
  leadingOptions,
  parseOptions,
  text,
  UsageError,
} from './options.js';
import { loaderOptions } from './program-loader.js';
import { launch } from './ranks.js';

/** Times of files are as coarse as the kernel's clock. */
const CLOCK_MS = 20;

/** The options before the name of a program. */
const options = {
  gpus: integer({
    min: 0,
    max: 30,
    fallback: undefined,
    shown: '0',
    help: 'GPUs of each runtime, emulated ones unless the driver says otherwise',
  }),
  driver: choice(['emulated', 'cuda', 'hip'], {
    fallback: undefined,
    shown: 'emulated',
    help: 'driver of the GPUs',
  }),
  ranks: integer({
    min: 1,
    max: 1024,
    fallback: undefined,
    shown: '1, or as launched',
    help: 'processes, started with mpirun',
  }),
  plans: choice(['auto', 'off'], {
    fallback: undefined,
    shown: 'auto',
    help: 'auto: runs that repeat their tasks are played as plans',
  }),
  trace: text({ metavar: 'FILE', help: 'write a trace of every task and transfer' }),
  watch: flag({ help: 'print rates, memory and waits every two seconds' }),
  help: flag({ help: 'this text' }),
};

/** Their values. */
interface ProgramValues {
  readonly gpus: number | undefined;
  readonly driver: 'emulated' | 'cuda' | 'hip' | undefined;
  readonly ranks: number | undefined;
  readonly plans: 'auto' | 'off' | undefined;
  readonly trace: string | undefined;
  readonly watch: boolean;
  readonly help: boolean;
}

/** How many words stand before the name of the program. */
export function wordsBeforeProgram(argv: readonly string[]): number {
  return leadingOptions(argv, options);
}

/** @throws UsageError */
export function programOptions(argv: readonly string[], usage: string): ProgramValues {
  return parseOptions(argv, options, usage);
}

/** Usage text of `headrace run`. */
export function runUsage(algorithms: string): string {
  return `usage: headrace run [options] <program> [arguments]
       headrace run <algorithm> [options]

Runs a program of yours, a file in TypeScript or JavaScript. Words after its name are its arguments. The options
are defaults for the runtimes that it creates: options that the program gives itself win.

${describeOptions(options)}
Algorithms:

${algorithms}`;
}

/** A program and what was given with it. */
interface ProgramCall {
  readonly file: string;
  readonly args: readonly string[];
  readonly values: ProgramValues;
  readonly usage: string;
}

/** Runs the program; resolves to its exit code, or to 128 and the number of the signal that ended it. */
export async function runProgramCommand(call: ProgramCall, context: CliContext): Promise<number> {
  const { values } = call;
  const file = programFile(call.file, call.usage);
  const trace = values.trace === undefined ? undefined : path.resolve(values.trace);
  const env = {
    ...context.env,
    ...(values.gpus === undefined ? {} : { HEADRACE_GPUS: String(values.gpus) }),
    ...(values.driver === undefined ? {} : { HEADRACE_DRIVER: values.driver }),
    ...(values.plans === undefined ? {} : { HEADRACE_PLANS: values.plans }),
    ...(trace === undefined ? {} : { HEADRACE_TRACE: trace }),
  };
  const watch = values.watch
    ? ['--import', new URL('./watch-program.js', import.meta.url).href]
    : [];
  const command = [process.execPath, ...watch, ...loaderOptions(file), file, ...call.args];
  const isRank = launchOf(context.env).launcher !== undefined;
  const began = Date.now();
  const ranks = values.ranks ?? 1;
  const code =
    ranks > 1 && !isRank
      ? await awaited('mpirun', launch(command, ranks, { ...context, env }))
      : await awaited('the program', startProgram(command, env, context));
  if (trace !== undefined && !isRank) reportTraces(trace, began, context);
  return code;
}

/** The program's file as node would see it. @throws UsageError */
export function programFile(file: string, usage: string): string {
  if (!existsSync(file)) throw new UsageError(`there is no program ${file}`, usage);
  if (!statSync(file).isFile()) throw new UsageError(`${file} is no file`, usage);
  if (!['', '.js', '.mjs', '.cjs', '.ts', '.mts', '.cts'].includes(path.extname(file))) {
    throw new UsageError(`${file} is no program: its name does not end in .js or .ts`, usage);
  }
  return path.resolve(file);
}

/** Starts a program with the streams and the signals of this process; resolves to its exit code. */
export function startProgram(
  [program, ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
  context: CliContext,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: 'inherit' });
    context.takeSignals?.((signal) => {
      // Ctrl-C on a terminal goes to all its processes.
      if (signal !== 'SIGINT' || process.stdin.isTTY !== true) child.kill(signal);
    });
    child.on('error', reject);
    child.on('close', (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  });
}

/** Names the trace files that the program has written, with the command that opens each of its runtimes. */
function reportTraces(trace: string, began: number, context: CliContext): void {
  const files = writtenTraces(trace, began);
  if (files.length === 0) {
    context.stderr.write(
      'headrace: the program has written no trace: it created no runtime that takes --trace\n',
    );
    return;
  }
  const groups = new Map<string, string[]>();
  for (const file of files) {
    const ofRuntime = file.replace(/\.\d+(\.hrtrace)?$/, '$1');
    groups.set(ofRuntime, [...(groups.get(ofRuntime) ?? []), file]);
  }
  const lines = [...groups.values()].map(
    (group) => `  ${context.program} trace view ${group.map(shellWord).join(' ')}\n`,
  );
  context.stderr.write(`\nTo open the timeline of this run:\n\n${lines.join('')}`);
}

/** Files of runtimes, threads and ranks under this name that were written since `began` (ms). */
function writtenTraces(trace: string, began: number): string[] {
  const folder = path.dirname(trace);
  if (!existsSync(folder)) return [];
  const [base, ending] = [path.basename(trace, '.hrtrace'), /(\.hrtrace)?$/.exec(trace)?.[0] ?? ''];
  const isOurs = (name: string): boolean =>
    name.startsWith(base) &&
    name.endsWith(ending) &&
    /^(-thread\d+)?(-\d+)?(\.\d+)?$/.test(stem(name).slice(base.length));
  const stem = (file: string): string => file.slice(0, file.length - ending.length);
  return readdirSync(folder)
    .filter(isOurs)
    .map((name) => path.relative(process.cwd(), path.join(folder, name)))
    .filter((file) => statSync(file).mtimeMs >= began - CLOCK_MS)
    .sort((a, b) => stem(a).localeCompare(stem(b), 'en', { numeric: true }));
}
