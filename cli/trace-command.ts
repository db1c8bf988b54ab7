// `headrace trace`: hands over to the trace room's own command.
import type { CommandRunner } from './commands.js';
import { ExitCode } from './context.js';

/** Runs the trace command with the words after `trace`. */
export const runTrace: CommandRunner = async (argv) => {
  const place: string = './trace/index.js';
  const { runTraceCommand } = await import(place);
  return (await runTraceCommand(argv)) ?? ExitCode.ok;
};
