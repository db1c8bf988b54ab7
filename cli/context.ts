// The part of the process that a command may use: its two output streams, the environment and the signal that asks it
// to stop. Tests bring their own.
import type { ProgressStream } from './progress.js';

/** A sink for text. */
interface TextOutput {
  write(text: string): unknown;
}

/** The outside of a command. */
export interface CliContext {
  /** Results only; with `--json` nothing but one JSON value. */
  readonly stdout: TextOutput;
  /** Everything else. */
  readonly stderr: ProgressStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The words that start this program from a shell in the current folder, to print before a command. */
  readonly program: string;
  /** Aborted by the first SIGINT or SIGTERM, when the event loop turns. */
  readonly signal: AbortSignal;
  /** Aborts `signal` at once if a signal has arrived; for loops that do not let the event loop turn. */
  readonly checkSignals?: () => void;
  /** Passes SIGINT and SIGTERM to `listener` from now on; then they no longer end the process. */
  readonly takeSignals?: (listener: (signal: NodeJS.Signals) => void) => void;
  /** A file or folder to remove if the command is cut off; `false` takes it off the list. */
  readonly leftover?: (path: string, unfinished: boolean) => void;
}

/** Exit codes. */
export const ExitCode = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/** Runs a command with the words after its name; resolves to the exit code. */
export type CommandRunner = (argv: string[], context: CliContext) => Promise<number>;
