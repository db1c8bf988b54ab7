// Turns a failed command into the error the user sees: which task, which stage, and why, in the user's words.
import { Status } from '../devices/backend.js';
import { HeadraceError } from '../devices/errors.js';
import { describeThrown, isError } from '../trace/thrown.js';
import type { Engine } from './engine.js';

/** The error for a task whose command ended with `status` (not ok, not cancelled). */
export function describeFailure(engine: Engine, row: number, status: number): HeadraceError {
  const { tasks, x } = engine;
  const cls = x.classes[tasks.classOf[row]];
  const task = x.describe(row);
  const device = engine.spaceName(tasks.device[row]);
  const base = { task, stage: 'exec', device } as const;
  if (status > 0) {
    const text = kernelCodeText(status, () => cls.explain?.(status, row));
    return new HeadraceError(cls.failureCode ?? 'ERR_TASK_FAILED', `task ${task} failed: ${text}`, {
      ...base,
      kernelCode: status,
    });
  }
  const words = engine.backend.lastError(tasks.queue[row]);
  const tail = words === '' ? '' : `: ${words}`;
  switch (status) {
    case Status.deviceLost:
      return new HeadraceError(
        'ERR_DEVICE_LOST',
        `${device} was lost while task ${task} ran${tail}`,
        base,
      );
    case Status.badArguments:
      return new HeadraceError(
        'ERR_BAD_ARGUMENTS',
        `the kernel of task ${task} does not take ${cls.flowNames.length} flows and ${cls.paramNames.length} parameters${tail}`,
        base,
      );
    case Status.unknownKernel:
      return new HeadraceError(
        'ERR_UNKNOWN_KERNEL',
        `task ${task} has no kernel on ${device}${tail}`,
        base,
      );
    default:
      return new HeadraceError(
        'ERR_TASK_FAILED',
        `task ${task} failed on ${device}${tail} (status ${status})`,
        base,
      );
  }
}

/** The error of a run whose task was under way when another run failed to write what it reads. */
export function computedFromFailure(task: string): HeadraceError {
  return new HeadraceError(
    'ERR_DATUM_POISONED',
    `task ${task} read what a task of another run failed to write`,
    { task, stage: 'exec', remedy: 'await a run before another one reads what it writes' },
  );
}

/** What a kernel's code means: in the words of the class, which are the program's own and may fail. */
function kernelCodeText(status: number, explain: () => string | undefined): string {
  const plain = `its kernel returned ${status}`;
  try {
    const said: unknown = explain();
    return said === undefined ? plain : describeThrown(said);
  } catch (cause) {
    return `${plain}, and what explains that failed: ${describeThrown(cause)}`;
  }
}

/** The error for a task whose JavaScript body threw or rejected with `cause`, which may be anything. */
export function bodyFailure(task: string, cause: unknown): HeadraceError {
  const where = { task, stage: 'exec', cause };
  const text = `task ${task} failed: ${describeThrown(cause)}`;
  try {
    if (isError(cause) && cause instanceof HeadraceError && cause.details.task === undefined)
      return new HeadraceError(cause.code, text, { ...cause.details, ...where });
  } catch {
    // An error whose facts cannot be looked at has none.
  }
  return new HeadraceError('ERR_TASK_FAILED', text, where);
}
