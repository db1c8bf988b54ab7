// How far ahead of each executor the engine runs.
//
// Commands queued ahead hide the engine's latency but fix the order and the executor of a task early. So the depth
// is a time, not a count: about AHEAD of work per queue, from the rate at which the queue completed commands of
// late. Microsecond tasks are queued by the thousand, millisecond tasks by threes.
// Invariant: LEAST <= depth <= the configured run-ahead.
import type { Submission } from '../devices/submission.js';
import type { Placement } from './placement.js';

/** Work queued ahead per executor, in nanoseconds: well above the cost of waking the engine (about 50 us). */
const AHEAD = 2e6;
const LEAST = 3;
const INITIAL = 16;

export class DepthControl {
  private readonly submission: Submission;
  private readonly depth: Int32Array;
  private readonly maximum: number;
  /** Time at which the queue was last seen to complete something, or to start from empty. */
  private readonly since: Float64Array;
  private readonly average: Float64Array;
  /** 1: nothing was under way after the last completions, so the queue may have been idle since. */
  private readonly ranDry: Uint8Array;

  constructor(submission: Submission, placement: Placement, maximum: number) {
    const n = submission.backend.queues.length;
    this.submission = submission;
    this.depth = placement.depth;
    this.maximum = maximum;
    this.since = new Float64Array(n);
    this.average = new Float64Array(n);
    this.ranDry = new Uint8Array(n);
    this.depth.fill(Math.min(INITIAL, maximum));
  }

  /** Whether the commands of queue `q` are known to take less than `nanoseconds` on average. */
  isShort(q: number, nanoseconds: number): boolean {
    return this.average[q] > 0 && this.average[q] < nanoseconds;
  }

  /** `n` commands of queue `q` were seen complete at time `now` (nanoseconds). */
  completed(q: number, n: number, now: number): void {
    if (n === 0) return;
    const since = this.since[q];
    const ranDry = this.submission.outstanding[q] === 0;
    const mayHaveIdled = ranDry || this.ranDry[q] === 1;
    this.since[q] = now;
    this.ranDry[q] = ranDry ? 1 : 0;
    if (since === 0 || now <= since) return;
    const each = (now - since) / n;
    const average = this.average[q];
    // A queue that was empty for part of the time tells no more than that its tasks are no longer than this.
    if (average === 0) this.average[q] = each;
    else if (!mayHaveIdled) this.average[q] = average + (n >= 8 ? 0.5 : 0.125) * (each - average);
    else if (each < average) this.average[q] = each;
    else return;
    const depth = Math.ceil(AHEAD / this.average[q]);
    this.depth[q] = depth < LEAST ? LEAST : depth > this.maximum ? this.maximum : depth;
  }
}
