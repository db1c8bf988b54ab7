// The outcome of restore() on several ranks. Only the owner of a datum knows whether the value from before is still there, and a
// program decides by it. So the owner writes a datum of one byte behind the restore, if that has succeeded, and all ranks read this
// datum as they read any other: the call has the outcome of this read everywhere.
//
// Invariant: all ranks make the datum at the same call, so it has the same name on all of them, and nothing else uses it.
import type { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { Ranks } from '../ranks/ranks.js';
import type { Datum } from './datum.js';
import type { OwnTasks } from './own-tasks.js';

interface OutcomeParts {
  readonly own: OwnTasks;
  readonly ranks: Ranks;
  /** A datum of one byte with that name; it counts as written. */
  readonly make: (name: string) => Datum;
  readonly close: (datum: Datum) => void;
}

export class RestoreOutcome {
  private readonly parts: OutcomeParts;
  private readonly datum: Datum;
  private readonly outcome: Datum;
  /** Of the restore itself, on the owner. */
  private failure: HeadraceError | undefined;

  constructor(parts: OutcomeParts, datum: Datum) {
    this.parts = parts;
    this.datum = datum;
    // Errors about it are errors about the datum.
    this.outcome = parts.make(datum.name);
    parts.ranks.datumCalls.addOutcome(this.outcome.row, datum.row);
  }

  /** The owner's datum was never written. Ranks that cannot know that get a message. */
  refuse(): void {
    this.parts.ranks.datumCalls.refuseRead(this.outcome.row);
  }

  /** The call is made, or refused. */
  close(): void {
    this.parts.close(this.outcome);
  }

  /** The restore is inserted next, on the owner. */
  vouch(): void {
    const { own } = this.parts;
    const fail = (error: HeadraceError): void => {
      this.failure = error;
    };
    own.insert(own.restore, this.datum, undefined, { run: () => {}, fail });
    const ignored = { run: () => {}, fail: () => {} };
    own.insert(own.vouch, this.datum, undefined, ignored, this.outcome);
  }

  /** Calls one of both when the outcome is known. */
  settle(resolve: () => void, reject: (error: HeadraceError) => void): void {
    const { own, ranks } = this.parts;
    const { row } = this.outcome;
    if (guards.restoreTold) ranks.datumCalls.read(row);
    else if (ranks.ownerOf(row) !== ranks.rank) {
      resolve();
      return;
    }
    const fail = (error: HeadraceError): void => {
      reject(this.failure ?? ranks.datumCalls.failureOf(row) ?? error);
    };
    own.insert(own.read, this.outcome, undefined, { run: resolve, fail });
  }
}
