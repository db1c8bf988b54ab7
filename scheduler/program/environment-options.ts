// Options of a runtime from the environment: HEADRACE_TRACE, HEADRACE_GPUS, HEADRACE_DRIVER and HEADRACE_PLANS, which
// `headrace run` sets for the program that it starts.
// Invariant: they are defaults. An option that the program gives itself wins, because the program may depend on it (it
// compares the host with two GPUs, for example). If the two differ, a process warning says so, once.
import { threadId } from 'node:worker_threads';
import { HeadraceError } from '../../devices/errors.js';
import { launchOf } from '../../devices/launch.js';
import { traceOfRank, traceOfRuntime } from '../../trace/file-names.js';
import type { ResolvedOptions, RuntimeOptions } from './options.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The options that the environment may give, by their variables. */
const VARIABLES = {
  trace: 'HEADRACE_TRACE',
  gpus: 'HEADRACE_GPUS',
  driver: 'HEADRACE_DRIVER',
  plans: 'HEADRACE_PLANS',
} as const;

/** Runtimes of this thread that were created with HEADRACE_TRACE. */
let traced = 0;
const reported: Set<string> = new Set();

/**
 * The options that the environment gives to the next runtime of this process.
 * @throws HeadraceError `ERR_OPTION` when HEADRACE_GPUS is no number, or HEADRACE_PLANS another word
 */
export function environmentOptions(env: Environment = process.env): RuntimeOptions {
  const trace = env['HEADRACE_TRACE'] ?? '';
  const gpus = env['HEADRACE_GPUS'] ?? '';
  const driver = env['HEADRACE_DRIVER'] ?? '';
  const plans = env['HEADRACE_PLANS'] ?? '';
  if (!/^\d*$/.test(gpus)) {
    throw new HeadraceError('ERR_OPTION', `HEADRACE_GPUS must be a number of GPUs, not '${gpus}'`);
  }
  if (!['', 'auto', 'off'].includes(plans)) {
    throw new HeadraceError('ERR_OPTION', `HEADRACE_PLANS must be auto or off, not '${plans}'`);
  }
  return {
    ...(trace === '' ? {} : { trace: traceFile(trace, ++traced, env) }),
    ...(gpus === '' ? {} : { gpus: Number(gpus) }),
    ...(driver === '' ? {} : { driver: driver as 'emulated' }),
    ...(plans === '' ? {} : { plans: plans as 'auto' | 'off' }),
  };
}

/** Each rank, each worker thread of the program and each runtime has a file of its own. */
function traceFile(given: string, number: number, env: Environment): string {
  const { rank, size } = launchOf(env);
  const file = given.replaceAll('%p', String(process.pid));
  const ofThread = threadId === 0 ? file : file.replace(/(\.hrtrace)?$/, `-thread${threadId}$1`);
  const ofRuntime = traceOfRuntime(ofThread, number);
  return size > 1 ? traceOfRank(ofRuntime, rank) : ofRuntime;
}

/** Warns of the options of the environment that the program has overridden. */
export function reportOverridden(
  options: ResolvedOptions,
  defaults: RuntimeOptions,
  env: Environment = process.env,
): void {
  for (const [name, variable] of Object.entries(VARIABLES)) {
    const key = name as keyof typeof VARIABLES;
    const given = defaults[key];
    if (given === undefined || given === options[key] || options[key] === env[variable]) continue;
    const text =
      `Runtime.create has the option ${name}: ${JSON.stringify(options[key])} of the program's own, so ` +
      `${variable}=${given} (headrace run --${name}) does not count; remove the option there to choose it outside`;
    if (reported.has(text)) continue;
    reported.add(text);
    process.emitWarning(text, { type: 'HeadraceWarning', code: 'HEADRACE_OPTION' });
  }
}
