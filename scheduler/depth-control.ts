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

  constructor(submission: Submission, placement: Placement, maximum: number) {
    const n = submission.backend.queues.length;
    this.submission = submission;
    this.depth = placement.depth;
    this.maximum = maximum;
    this.since = new Float64Array(n);
    this.average = new Float64Array(n);
    this.depth.fill(Math.min(INITIAL, maximum));
  }

  /** `n` commands of queue `q` were seen complete at time `now` (nanoseconds). */
  completed(q: number, n: number, now: number): void {
    if (n === 0) return;
    const since = this.since[q];
    this.since[q] = now;
    if (since === 0 || now <= since) return;
    const each = (now - since) / n;
    // Weigh by how much was seen: a lone completion after an idle spell says little.
    const weight = n >= 8 ? 0.5 : 0.125;
    const average = this.average[q] === 0 ? each : this.average[q] + weight * (each - this.average[q]);
    this.average[q] = average;
    const depth = Math.ceil(AHEAD / average);
    this.depth[q] = depth < LEAST ? LEAST : depth > this.maximum ? this.maximum : depth;
  }
}
