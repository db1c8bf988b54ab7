// Which runs are looked at. A look costs some ten microseconds per run, mostly because its code and data are not in the caches, so a
// program that does not repeat would pay for it with every run. After some looks in a row that have found nothing, only one run
// in a few is looked at; one that finds something makes all of the next ones be looked at.
//
// The work of the runs decides, and not their number: a look at a short run says little, and costs as much as one at a long run.
import { RUN } from './account.js';

/** Looks in vain after which runs are passed over. */
const PATIENCE = 8;
/** Most work that is passed over, in times of the work that was looked at. */
const MOST = 16;

export class Attention {
  /** Looks in a row that have found nothing. */
  private inVain = 0;
  /** Work that is passed over before the next look. */
  private passing = 0;

  /** Whether a run that begins now is looked at. */
  get isDue(): boolean {
    return this.passing <= 0;
  }

  /** A run of so many tasks was not looked at. */
  passed(tasks: number): void {
    this.passing -= RUN + tasks;
  }

  /** The look at a run of so many tasks has found nothing. */
  lookedInVain(tasks: number): void {
    const beyond = ++this.inVain - PATIENCE;
    if (beyond > 0) this.passing = (RUN + tasks) * Math.min(2 ** beyond - 1, MOST - 1);
  }

  /** Something has come again. */
  found(): void {
    this.inVain = 0;
    this.passing = 0;
  }
}
