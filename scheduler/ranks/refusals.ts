// The reasons why a movement brings no value: the sender has none, the runs of the ranks failed, or an earlier receive
// of the datum failed.

import { HeadraceError } from '../../devices/errors.js';
import type { DatumId, TaskId } from '../../devices/handles.js';
import type { NoVersion } from '../../devices/network/keys.js';
import { valueFor } from '../../stages/poison.js';
import { NetworkRole } from '../../stages/task-table.js';
import type { RankRuns } from './agreement.js';
import type { RankHost } from './host.js';
import type { Movement, Movements } from './movements.js';

/** What the runs know of failures. */
type RunFailures = Pick<RankRuns, 'failureIn' | 'failures' | 'eras'>;

/** Failures of a run that say nothing about a datum which it should have fetched. */
const OF_RUNS: ReadonlySet<string> = new Set(['ERR_TASK_FAILED', 'ERR_ABORTED']);

export class Refusals {
  private readonly engine: RankHost;
  private readonly movements: Movements;
  private readonly runs: RunFailures;
  /** By datum: the receive that left it without a value, and the reason. */
  private readonly failures: Map<number, { readonly by: number; readonly error: HeadraceError }> =
    new Map();

  constructor(engine: RankHost, movements: Movements, runs: RunFailures) {
    this.engine = engine;
    this.movements = movements;
    this.runs = runs;
  }

  /** The reason why a movement that is about to start moves nothing; undefined as far as this rank knows. */
  of(movement: Movement): HeadraceError | undefined {
    const failure = this.ofRead(movement);
    if (failure !== undefined) return failure;
    const isTorn = this.runs.eras.isTorn(movement.call);
    return isTorn || this.movements.isLeftBehind(movement) ? this.leftBehind(movement) : undefined;
  }

  /** The failure because of which no rank may send the value of a read or restore. */
  ofRead({ role, program, call, d, era, noVersion }: Movement): HeadraceError | undefined {
    if (role !== NetworkRole.receive || call < 0) return undefined;
    if (program !== 0) return this.runs.failureIn(program);
    if (noVersion !== undefined || era !== this.movements.era) return undefined;
    return this.runs.failures.failing(this.nameOf(d), call);
  }

  /** The era of a receive has ended before its version came. */
  leftBehind({ d, origin }: Movement): HeadraceError {
    return this.runs.failures.tooLate(this.nameOf(d), origin);
  }

  /** The rank that should have the value cannot send it, and has said so. */
  told(movement: Movement): HeadraceError {
    const { from, reason } = movement.noVersion as NoVersion;
    const datum = this.nameOf(movement.d);
    const where = { datum, rank: from, stage: 'comm-in' };
    return reason === ''
      ? new HeadraceError(
          'ERR_DATUM_POISONED',
          `datum '${datum}' has no usable value on rank ${from}`,
          where,
        )
      : new HeadraceError(
          'ERR_PEER_FAILED',
          `rank ${from} could not send datum '${datum}': ${reason}`,
          where,
        );
  }

  /** Task `by` was to receive datum `d` and failed. */
  note(d: DatumId, by: number, error: HeadraceError): void {
    this.failures.set(d, { by, error });
  }

  /**
   * The failure of a datum's last receive before task `reader`, unless another task between them has determined the datum's
   * state.
   */
  ofDatum(d: DatumId, reader: TaskId): HeadraceError | undefined {
    const failure = this.failures.get(d);
    if (failure?.by !== valueFor(this.engine.x, d, reader).by) return undefined;
    const { error } = failure;
    return OF_RUNS.has(error.code) ? this.behind(d, error) : error;
  }

  /** The error of a datum whose value a failed run of this rank should have fetched. */
  private behind(d: DatumId, cause: HeadraceError): HeadraceError {
    const datum = this.nameOf(d);
    return new HeadraceError(
      'ERR_DATUM_POISONED',
      `datum '${datum}' has no usable value: it had not come when a run failed: ${cause.message}`,
      { datum, cause, remedy: 'write all of it again before reading it' },
    );
  }

  /** Row `d` belongs to a new datum. */
  forget(d: DatumId): void {
    this.failures.delete(d);
  }

  /** Name of a datum in the user's words. */
  nameOf(d: DatumId): string {
    return this.engine.directory.info[d]?.name ?? `#${d}`;
  }
}
