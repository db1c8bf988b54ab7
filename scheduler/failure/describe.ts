// Turns a failed command into the user's error: the task, the stage and the reason, in the user's words.
import { Status } from '../../devices/backend.js';
import { type ErrorDetails, HeadraceError, tailOf } from '../../devices/errors.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import { describeThrown, isError } from '../../trace/thrown.js';
import type { EngineState } from '../engine/state.js';

/** A task whose command has failed, in the user's words. */
interface FailedTask {
  readonly cls: TaskClassRow;
  readonly task: string;
  readonly device: string;
  /** The driver's words; may be empty. */
  readonly words: string;
  /** Explains a kernel's positive code. */
  readonly explain: (code: number) => string | undefined;
  /** Plan and iteration of a played task. */
  readonly played?: Pick<ErrorDetails, 'plan' | 'iteration'>;
}

/** The error for a task whose command ended with `status` (not ok, not cancelled). */
export function describeFailure(state: EngineState, row: number, status: number): HeadraceError {
  const { tasks, x } = state;
  const cls = x.classes[tasks.classOf[row]];
  const task = x.describe(row);
  if (isOfBody(status)) {
    const thrown = state.backend.scripts?.thrown(tasks.queue[row], tasks.seq[row]);
    return scriptFailure(task, status, thrown);
  }
  const transfer = state.isMovement(row) ? state.remote?.tasks.failure(row, status) : undefined;
  if (transfer !== undefined) return transfer;
  const device = state.spaceName(tasks.device[row]);
  const words = state.backend.lastError(tasks.queue[row]);
  const explain = (code: number): string | undefined =>
    state.callbacks.call(
      () => explaining(cls),
      () => cls.explain?.(code, row),
    );
  return commandFailure({ cls, task, device, words, explain }, status);
}

/** The function that puts a code of a kernel into words. */
export function explaining({ name }: TaskClassRow): string {
  return `the function \`explain\` of task class '${name}'`;
}

/** The same, for a task that may have no row. */
export function commandFailure(failed: FailedTask, status: number): HeadraceError {
  const { cls, task, device, words } = failed;
  const base = { task, stage: 'exec', device, ...failed.played } as const;
  if (status > 0) {
    const text = kernelCodeText(status, () => failed.explain(status));
    return new HeadraceError(cls.failureCode ?? 'ERR_TASK_FAILED', `task ${task} failed: ${text}`, {
      ...base,
      kernelCode: status,
    });
  }
  const tail = words === '' ? '' : `: ${words}`;
  switch (status) {
    case Status.deviceLost:
      return new HeadraceError(
        'ERR_DEVICE_LOST',
        `${device} was lost while task ${task} ran${tail}`,
        base,
      );
    case Status.truncated:
      return new HeadraceError(
        'ERR_GRAPH_MISMATCH',
        `${task} got a version of another length than its datum has here: the ranks run different programs`,
        { task, stage: 'comm-in', ...failed.played },
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

/** The error of a run whose issued task read a datum that another run failed to write. */
export function computedFromFailure(task: string): HeadraceError {
  return new HeadraceError(
    'ERR_DATUM_POISONED',
    `task ${task} read a datum that a task of another run failed to write`,
    { task, stage: 'exec', remedy: 'await a run before another run reads its data' },
  );
}

/** Explains a kernel's code in the words of the class. The class's `explain` is code of the program and may throw. */
function kernelCodeText(status: number, explain: () => string | undefined): string {
  const plain = `its kernel returned ${status}`;
  try {
    const said: unknown = explain();
    return said === undefined ? plain : describeThrown(said);
  } catch (cause) {
    return `${plain}, and the function that explains it failed: ${describeThrown(cause)}`;
  }
}

/** Whether a command with that status has run a body on a script worker. */
export function isOfBody(status: number): boolean {
  return status === Status.threw || status === Status.workerEnded;
}

type PlayedPlace = FailedTask['played'];

/** The error for a task on a script worker. `thrown`: what its body threw, or what ended the worker; undefined if nothing is known. */
export function scriptFailure(
  task: string,
  status: number,
  thrown: unknown,
  played?: PlayedPlace,
): HeadraceError {
  return status === Status.threw
    ? bodyFailure(task, thrown, played)
    : workerFailure(task, thrown, played);
}

function workerFailure(task: string, cause: unknown, played: PlayedPlace): HeadraceError {
  const reason = cause === undefined ? 'its heap may have been too small' : describeThrown(cause);
  return new HeadraceError(
    'ERR_SCRIPT_WORKER',
    `task ${task} failed: the script worker that ran its body has ended: ${reason}`,
    { task, stage: 'exec', ...played, cause },
  );
}

/** The error for a task whose JavaScript body threw or rejected with `cause`, which may be anything. */
export function bodyFailure(task: string, cause: unknown, played?: PlayedPlace): HeadraceError {
  const where = { task, stage: 'exec', ...played, cause };
  const text = `task ${task} failed: ${describeThrown(cause)}`;
  try {
    if (isError(cause) && cause instanceof HeadraceError && cause.details.task === undefined) {
      // The new error has the same remedy.
      const tail = tailOf(cause.details);
      const words = text.endsWith(tail) ? text.slice(0, text.length - tail.length) : text;
      return new HeadraceError(cause.code, words, { ...cause.details, ...where });
    }
  } catch {
    // The facts of this error cannot be read, so it has none.
  }
  return new HeadraceError('ERR_TASK_FAILED', text, where);
}
