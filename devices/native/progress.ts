// What the threads of a core's queues have completed, as the engine sees it between two looks.
//
// A thread counts a failed record on its queue, then on all queues, and then publishes that the record is complete
// (native/queues/queue.h).
//
// Invariants, after each look:
// - the failures of a queue include those of all its completed records: its count is read after its last completion;
// - a record that completed after a failure on another queue is not seen before that failure is.
import { Control, type NativeCore, Shared } from '../../native/contract.js';
import { guards } from '../guards.js';
import { FIRST_QUEUE } from '../handles.js';

type Words = Pick<NativeCore, 'control' | 'shared'> & { readonly queues: ArrayLike<unknown> };
type Load = (words: Int32Array, index: number) => number;

export class QueueProgress {
  /** Last complete record of each queue. */
  readonly completed: Int32Array;
  /** Failed records of each queue; it may be ahead of `completed`. */
  readonly failures: Int32Array;
  /** `Shared.arrivals` as of the last look. */
  arrivals = 0;
  private readonly control: Int32Array;
  private readonly shared: Int32Array;
  private readonly count: number;
  private readonly firstLane: number;
  private readonly load: Load;
  /** Failed records that the engine has handled, over all queues. */
  private handled = 0;

  /** `firstLane`: the number of the first lane, or of queues; `load`: reads a word that other threads write. */
  constructor(core: Words, firstLane: number, load: Load = Atomics.load) {
    this.control = core.control;
    this.shared = core.shared;
    this.count = core.queues.length;
    this.firstLane = firstLane;
    this.load = load;
    this.completed = new Int32Array(this.count);
    this.failures = new Int32Array(this.count);
    for (let q = FIRST_QUEUE; q < this.count; q++)
      this.completed[q] = load(this.control, q * Control.words + Control.completed);
  }

  /** The engine has handled that many failed records, over all queues. */
  handledFailures(count: number): void {
    this.handled = count;
    Atomics.store(this.shared, Shared.failuresHandled, count);
  }

  /** Looks at all queues; true when one has completed anything. */
  poll(): boolean {
    const { control, completed, load } = this;
    let moved = false;
    // Lanes only when one has completed something. The count is read before their words: it covers no more than these.
    const arrivals = load(this.shared, Shared.arrivals);
    const end = arrivals === this.arrivals ? this.firstLane : this.count;
    this.arrivals = arrivals;
    for (let q = FIRST_QUEUE; q < end; q++) {
      const now = load(control, q * Control.words + Control.completed);
      if (now === completed[q]) continue;
      this.failures[q] = load(control, q * Control.words + Control.failures);
      completed[q] = now;
      moved = true;
    }
    if (moved) this.showFailures();
    return moved;
  }

  /**
   * A completion that was seen may have followed a failure on a queue that had been read before: what completes is looked at
   * until nothing changes. Then all that came before a completion that is seen is seen, too.
   */
  private showFailures(): void {
    // A failure may be counted before its record is complete, so this goes on until the engine has handled all of them.
    while (this.load(this.shared, Shared.failed) !== this.handled && this.hasChanged());
  }

  private hasChanged(): boolean {
    const { control, completed, failures, load } = this;
    let changed = false;
    for (let q = FIRST_QUEUE; q < this.count; q++) {
      const at = q * Control.words;
      const now = load(control, at + Control.completed);
      const failed = load(control, at + Control.failures);
      changed ||= now !== completed[q] || failed !== failures[q];
      completed[q] = now;
      failures[q] = failed;
    }
    return changed && guards.failuresSettle;
  }
}
