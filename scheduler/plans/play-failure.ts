// Why a play has failed: the error of its first task that did, in the user's words.
import type { Backend } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import type { EngineState } from '../engine/state.js';
import { commandFailure, explaining, isOfBody, scriptFailure } from '../failure/describe.js';
import type { PartValues } from './part-values.js';
import { type PlannedProgram, type PlannedQueue, recordsIn } from './planned-program.js';
import type { PlayWish } from './play.js';
import type { PlayFailure } from './play-exit.js';

/** What is played, and for whom. */
interface Played {
  readonly state: EngineState;
  readonly program: PlannedProgram;
  readonly wish: PlayWish;
}

/** The part of a play that is over. */
interface FailedPart {
  /** Iterations before it. */
  readonly before: number;
  readonly parameters: PartValues;
  /** What bodies have thrown, by list. */
  readonly thrown: ReadonlyMap<number, unknown>;
}

/**
 * What the bodies of the last records have thrown, or what ended their workers, by list. All are taken: the next record with such a
 * number is another one. `times`: iterations of the part; `last`: last record of each list; `outcome`: see NativeCore.playOutcome.
 */
export function takeThrown(
  { scripts }: Pick<Backend, 'scripts'>,
  lists: readonly PlannedQueue[],
  times: number,
  last: ArrayLike<number>,
  outcome: readonly number[],
): ReadonlyMap<number, unknown> {
  const thrown = new Map<number, unknown>();
  lists.forEach((list, i) => {
    if (!isOfBody(outcome[2 * i + 1])) return;
    const left = Math.imul(times, recordsIn(list)) - outcome[2 * i];
    thrown.set(i, scripts?.thrown(list.queue, (last[i] - left + 1) | 0));
  });
  return thrown;
}

/** The error of the task that has failed. */
export function playFailure(
  { state, program, wish }: Played,
  { before, parameters, thrown }: FailedPart,
  { iteration, insertion, list, status }: PlayFailure,
): HeadraceError {
  const { queue } = program.queues[list];
  const device = state.spaceName(state.backend.queues[queue].space);
  const words = state.backend.lastError(queue);
  const { name: plan } = program.report;
  const isPlan = wish.stand === undefined;
  const where = isPlan ? `in iteration ${iteration} of plan '${plan}'` : `in run '${plan}'`;
  const played = isPlan ? { plan, iteration } : {};
  if (insertion < 0)
    return new HeadraceError(
      'ERR_TRANSFER_FAILED',
      `a copy on ${device} failed ${where}${words === '' ? '' : `: ${words}`}`,
      { device, ...played },
    );
  const { cls, params: closed, slots, message, data } = program.task(insertion);
  if (message !== undefined) {
    const datum = state.directory.info[data[0]]?.name ?? '';
    return new HeadraceError(
      'ERR_TRANSFER_FAILED',
      `datum '${datum}' could not go from rank ${message.from} to rank ${message.to} ${where}`,
      { datum, ...played },
    );
  }
  const params = closed.map((value, i) =>
    slots[i] < 0 ? value : parameters.at(iteration - before, slots[i]),
  );
  const values = cls.paramNames.map((name, i) => `${name} = ${params[i]}`).join(', ');
  const task =
    wish.stand?.nameOf?.(cls, insertion, iteration) ??
    `${cls.name}${values === '' ? '' : `(${values})`} ${where}`;
  if (isOfBody(status)) return scriptFailure(task, status, thrown.get(list), played);
  const explain = (code: number): string | undefined =>
    state.callbacks.call(
      () => explaining(cls),
      () => wish.explain(insertion, code, params),
    );
  return commandFailure({ cls, task, device, words, explain, played }, status);
}
