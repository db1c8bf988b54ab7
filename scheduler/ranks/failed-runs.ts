// What this rank knows of failed runs, and the errors of the runs, reads and restores that end with them.

import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { Epoch, Epochs } from './epochs.js';

/** A failed run, the rank on which its failure began, and the failure. */
type Failed = Pick<Epoch, 'number' | 'source' | 'failure'>;

export class FailedRuns {
  /** The run whose failure began the present era. */
  last: Failed = { number: 0, source: 0, failure: undefined };
  private readonly epochs: Epochs;

  constructor(epochs: Epochs) {
    this.epochs = epochs;
  }

  /** A run that began in the present era has failed and is not settled. */
  get isFailing(): boolean {
    return this.before(Number.POSITIVE_INFINITY) !== undefined;
  }

  /** A failed run that is not settled here, of whatever era. */
  any(): Failed | undefined {
    for (const epoch of this.epochs.values()) if (epoch.failure !== undefined) return epoch;
    return undefined;
  }

  /** The error of the read or restore at a position after a run that failed in this era and is not settled. */
  failing(datum: string, position: number): HeadraceError | undefined {
    const failed = this.before(position);
    return failed && this.refusal(datum, failed, 'before the ranks used it');
  }

  private before(position: number): Failed | undefined {
    if (!guards.readsRefused) return undefined;
    for (const epoch of this.epochs.values()) {
      const { run, failure, era, before } = epoch;
      const isPresent = run !== undefined && era === this.epochs.era;
      if (isPresent && failure !== undefined && before.made < position) return epoch;
    }
    return undefined;
  }

  /** The error of a run that was open when another one failed. */
  together({ number, source, failure }: Failed): HeadraceError {
    return new HeadraceError(
      'ERR_PEER_FAILED',
      `run ${number} failed on rank ${source} while this one was open: ${failure?.message ?? ''}`,
      {
        rank: source,
        cause: failure,
        remedy:
          'on several ranks runs that are open at the same time fail together: await one before the next',
      },
    );
  }

  /** The error of a run that began on some rank before that rank learned of the failure that ended the era. */
  apart(): HeadraceError {
    return this.together(this.last);
  }

  /** The error of a read or restore that some ranks made before a failure was settled, and others after it. */
  torn(datum: string): HeadraceError {
    return this.refusal(datum, this.last, 'when the ranks used it');
  }

  /** The error of a read or restore whose value did not arrive from rank `from` before the era ended. */
  tooLate(datum: string, from: number): HeadraceError {
    const { number, source, failure } = this.last;
    return new HeadraceError(
      'ERR_PEER_FAILED',
      `datum '${datum}' had not come from rank ${from} when run ${number} failed on rank ${source}: ${failure?.message ?? ''}`,
      {
        datum,
        rank: source,
        cause: failure,
        remedy: 'await reads before a run that may fail, or read again',
      },
    );
  }

  private refusal(datum: string, { number, source, failure }: Failed, when: string): HeadraceError {
    return new HeadraceError(
      'ERR_PEER_FAILED',
      `datum '${datum}' has no value on which the ranks agree: run ${number} failed on rank ${source} ${when}: ${failure?.message ?? ''}`,
      {
        datum,
        rank: source,
        cause: failure,
        remedy: 'await a run that may fail before `read` or `restore`, or read again',
      },
    );
  }
}
