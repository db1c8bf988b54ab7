// The one error type of the project. It is in the lowest room that can raise an error about a user's input, so
// every room above throws the same class; `scheduler/errors.ts` is the public door.
// Invariant: `code` is stable across versions, the message names the user's own objects.

import { describeThrown } from '../trace/thrown.js';

/** Structured facts that travel with an error. All fields are optional; names are the user's own. */
export interface ErrorDetails {
  /** Task in the user's words: class name and number, e.g. `potrf #12`. */
  readonly task?: string | undefined;
  /** Stage in which the task failed: alloc, stage-in, comm-in, exec, stage-out, finalize. */
  readonly stage?: string | undefined;
  /** Name of the datum concerned. */
  readonly datum?: string | undefined;
  /** Name of the device concerned. */
  readonly device?: string | undefined;
  /** Name of the plan whose play failed. */
  readonly plan?: string | undefined;
  /** Iteration of that play, from 0. */
  readonly iteration?: number | undefined;
  /** Rank that failed. */
  readonly rank?: number | undefined;
  /** Bytes asked for. */
  readonly bytes?: number | undefined;
  /** The limit that was exceeded, in bytes unless the message says otherwise. */
  readonly limit?: number | undefined;
  /** The code that a kernel returned; for potrf the pivot within the tile, counted from 1. */
  readonly kernelCode?: number | undefined;
  /** Tasks or classes of a dependency cycle, first and last the same. */
  readonly cycle?: readonly string[] | undefined;
  /** Line of an input file, counted from 1. */
  readonly line?: number | undefined;
  /** The user's remedy, one sentence. */
  readonly remedy?: string | undefined;
  /** A table of all waits, or of the use of memory. The message ends with it. */
  readonly report?: string | undefined;
  readonly cause?: unknown;
}

/** The end of a message: the remedy and the table. */
export function tailOf({ remedy, report }: ErrorDetails): string {
  return (
    (remedy === undefined ? '' : ` (${remedy})`) + (report === undefined ? '' : `:\n${report}`)
  );
}

/** Every error that Headrace raises on purpose. `docs/errors.md` lists the codes. */
export class HeadraceError extends Error {
  /** Stable identifier such as `ERR_TASK_FAILED`. */
  readonly code: string;
  /** Structured facts; empty when there is nothing to add. */
  readonly details: ErrorDetails;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(
      message + tailOf(details),
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.name = 'HeadraceError';
    this.code = code;
    this.details = details;
  }

  /** Plain object for logs and `--json` output. */
  toJSON(): Record<string, unknown> {
    const { cause, ...facts } = this.details;
    const json: Record<string, unknown> = { code: this.code, message: this.message, ...facts };
    if (cause !== undefined) json['cause'] = causeJson(cause);
    return json;
  }
}

/** A cause is any value that a program threw: it may have no facts, or facts that throw when they are read. */
function causeJson(cause: unknown): Record<string, unknown> {
  try {
    if (cause instanceof HeadraceError) return cause.toJSON();
  } catch {
    // Only its words are left.
  }
  return { message: describeThrown(cause) };
}

/** The run was cancelled by its `AbortSignal` or by `cancel()`. `name` is `AbortError`, as on the web platform. */
export class RunAbortedError extends HeadraceError {
  constructor(message: string, cause?: unknown) {
    super('ERR_ABORTED', message, { cause });
    this.name = 'AbortError';
  }
}
