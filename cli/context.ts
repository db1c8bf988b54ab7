// What a command may touch of the process: its two output streams, the environment and the signal that asks it
// to stop. Tests bring their own.
import type { ProgressStream } from './progress.js';

/** Where text goes. */
export interface TextOutput {
  write(text: string): unknown;
}

/** The outside of a command. */
export interface CliContext {
  /** Results only; with `--json` nothing but one JSON value. */
  readonly stdout: TextOutput;
  /** Everything else. */
  readonly stderr: ProgressStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How a shell in the current folder starts this program: the words to print before a command. */
  readonly program: string;
  /** Aborted by the first SIGINT or SIGTERM, when the event loop turns. */
  readonly signal: AbortSignal;
  /** Aborts `signal` at once when there was such a signal; for loops that do not let the event loop turn. */
  readonly checkSignals?: () => void;
  /** A file or folder to remove if the command is cut off; with `false` no longer. */
  readonly leftover?: (path: string, unfinished: boolean) => void;
}

/** Exit codes. */
export const ExitCode = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;
