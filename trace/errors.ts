// Errors of the trace room. Every one has a stable code and names the remedy.

/** Stable codes of trace errors. */
export type TraceErrorCode =
  /** The file is not a Headrace trace. */
  | 'ERR_TRACE_FOREIGN'
  /** Written by a newer major version. */
  | 'ERR_TRACE_VERSION'
  /** The header is damaged or cut off: nothing can be recovered. */
  | 'ERR_TRACE_HEADER'
  /** A record contradicts the format. */
  | 'ERR_TRACE_CORRUPT'
  /** The file could not be opened or read. */
  | 'ERR_TRACE_READ'
  /** The file could not be created or written. */
  | 'ERR_TRACE_WRITE'
  /** Files that do not belong together. */
  | 'ERR_TRACE_MERGE'
  /** A request that makes no sense for this trace. */
  | 'ERR_TRACE_USAGE';

/** A failure with a trace; `path` names its file if there is one. */
export class TraceError extends Error {
  readonly code: TraceErrorCode;
  readonly path: string | undefined;
  constructor(code: TraceErrorCode, message: string, path?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'TraceError';
    this.code = code;
    this.path = path;
  }
}
