// The runs of several ranks, by the number that is the same on all ranks.
//
// Invariants: a run keeps its epoch from the first news of it until it is over here; an epoch of another rank's run may
// come before this rank begins the run.

import type { HeadraceError } from '../../devices/errors.js';
import type { RunState } from '../engine/run-state.js';
import type { CallCount } from './links.js';

/** The graph of a run, as this rank has inserted it so far. */
interface GraphCount {
  tasks: number;
  digest: number;
  lastClass: string;
  /** What is done in place of the last task, if it is no task. */
  does: string | undefined;
  /** Number of transfers by rank, for the ranks with which there are any. */
  readonly sentTo: Map<number, number>;
  readonly expectedFrom: Map<number, number>;
}

/** One run, as this rank knows it. */
export interface Epoch {
  readonly number: number;
  run: RunState | undefined;
  /** The program skips tasks that do not concern its rank: digests differ by design. */
  pruned: boolean;
  readonly graph: GraphCount;
  /** A failure that another rank reported before this rank began the run. */
  failure: HeadraceError | undefined;
  /** Rank on which the failure began. */
  source: number;
  /** Number of calls that this rank made before the run. */
  before: CallCount;
  /** The era in which the run began on this rank. */
  era: number;
  /** Its program function has ended here. */
  isSealed: boolean;
}

export class Epochs {
  /** Runs of this rank that are not over. */
  open = 0;
  /** The present era: the number of times that failed runs were settled. */
  era = 0;
  private readonly byNumber: Map<number, Epoch> = new Map();
  private readonly bySlot: (Epoch | undefined)[] = [];
  private nextNumber = 1;

  /** A run begins on this rank. */
  begin(run: RunState): Epoch {
    const epoch = this.enter(this.nextNumber++);
    epoch.run = run;
    epoch.era = this.era;
    this.bySlot[run.slot] = epoch;
    this.open++;
    return epoch;
  }

  /** The epoch of run `number`; a new one at the first news of it. */
  enter(number: number): Epoch {
    let epoch = this.byNumber.get(number);
    if (epoch === undefined) {
      epoch = {
        number,
        run: undefined,
        pruned: false,
        graph: {
          tasks: 0,
          digest: 0,
          lastClass: '',
          does: undefined,
          sentTo: new Map(),
          expectedFrom: new Map(),
        },
        failure: undefined,
        source: -1,
        before: { made: 0, digest: 0 },
        era: this.era,
        isSealed: false,
      };
      this.byNumber.set(number, epoch);
    }
    return epoch;
  }

  at(number: number): Epoch | undefined {
    return this.byNumber.get(number);
  }

  of(run: RunState): Epoch | undefined {
    return this.bySlot[run.slot];
  }

  values(): IterableIterator<Epoch> {
    return this.byNumber.values();
  }

  /** Run `number` is over on this rank: another rank's report of its failure may come after the verdict. */
  isSettled(number: number): boolean {
    return number < this.nextNumber && !this.byNumber.has(number);
  }

  /** No rank will say more about the run. */
  remove(number: number): void {
    this.byNumber.delete(number);
  }

  /** The slot of the run is free for another. */
  close(run: RunState): void {
    this.bySlot[run.slot] = undefined;
    this.open--;
  }
}
