// Traces of runtimes that are open. If the process ends without closing them (process.exit, an error, the end of the
// program), they get their ends here, so a trace shows what happened until then.
// Invariant: nothing here changes the exit code.
import type { TraceRecorder } from '../../trace/recorder.js';
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

/** The trace gets its end at the end of the process at the latest. */
export function keepOpen(recorder: TraceRecorder): void {
  if (open.size === 0) process.once('exit', finishAll);
  open.add(recorder);
}

/** The runtime closes: ends its trace. Throws `TraceError` if it is incomplete. */
export function finishTrace(recorder: TraceRecorder): void {
  open.delete(recorder);
  if (open.size === 0) process.off('exit', finishAll);
  recorder.finish();
}
