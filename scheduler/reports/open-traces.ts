// Traces of runtimes that are open. If the process ends without closing them (process.exit, an error, the end of the
// program), they get their ends here, so a trace shows what happened until then.
// Invariant: nothing here changes the exit code.
import { HeadraceError } from '../../devices/errors.js';
import { TraceError } from '../../trace/errors.js';
import type { TraceRecorder } from '../../trace/recorder.js';
import { FileSink } from '../../trace/sinks.js';
import { describeThrown } from '../../trace/thrown.js';

const open: Set<TraceRecorder> = new Set();

function finishAll(): void {
  for (const recorder of open) {
    try {
      recorder.finish();
    } catch (error) {
      process.stderr.write(`headrace: ${describeThrown(error)}\n`);
    }
  }
}

/** Creates the file of a trace. @throws HeadraceError `ERR_TRACE_WRITE` */
export function openTraceFile(path: string, inBackground: boolean): FileSink {
  return typed(() => new FileSink(path, inBackground));
}

/** What `use` returns; its errors of the trace room become errors of the runtime. */
function typed<T>(use: () => T): T {
  try {
    return use();
  } catch (cause) {
    if (!(cause instanceof TraceError)) throw cause;
    throw new HeadraceError(cause.code, cause.message, { cause });
  }
}

/** The trace gets its end at the end of the process at the latest. */
export function keepOpen(recorder: TraceRecorder): void {
  if (open.size === 0) process.once('exit', finishAll);
  open.add(recorder);
}

/** The runtime closes: ends its trace. @throws HeadraceError `ERR_TRACE_WRITE` if it is incomplete */
export function finishTrace(recorder: TraceRecorder): void {
  open.delete(recorder);
  if (open.size === 0) process.off('exit', finishAll);
  typed(() => recorder.finish());
}
