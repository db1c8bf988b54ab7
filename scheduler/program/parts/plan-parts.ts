// The parts that a plan has open: those that its program, or its file, names first, those that its tasks use, and those by way of which it
// copies. They end with the plan, so that the datum is then like one without parts again, unless other plans or the program have them.
// Invariants:
// - a part that the program has made or used does not end with a plan;
// - on several ranks the record of the parts (parts.ts) changes at the same place of all programs, and alike. Only a use in this era counts,
//   because a rank may have made a part, or used it in a run that has failed, that others know nothing of.
import type { Datum } from '../datum.js';
import type { View } from './view.js';

type DatumView = View<Datum>;

/** What the parts of a plan use of all parts. */
interface LettingGo {
  letGo(view: DatumView, endsUse: boolean): void;
}

export class PlanParts {
  private readonly real: LettingGo;
  private readonly views: Set<DatumView> = new Set();

  constructor(real: LettingGo) {
    this.real = real;
  }

  /** The plan has a part, and it was not open before, or only in plans. */
  hold(view: DatumView): boolean {
    if (view === view.family.whole) return false;
    if (!this.views.has(view)) view.plans++;
    this.views.add(view);
    return !view.isHeld;
  }

  /**
   * The plan is closed, or it was not made. `isAlike`: on all ranks at the same place; then the plan's use of the parts ends, too.
   */
  letGo(isAlike: boolean): void {
    for (const view of this.views) {
      this.views.delete(view);
      this.real.letGo(view, isAlike);
    }
  }
}
