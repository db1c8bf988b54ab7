// The number of commands that the engine keeps queued ahead on each queue.
//
// Commands queued ahead hide the engine's latency, but they fix the order and the queue of a task early. So the depth
// is a time, not a count: each queue holds about AHEAD of work, at the rate at which it lately completed commands. A
// queue holds thousands of microsecond tasks, but only about three millisecond tasks.
// Invariant: LEAST <= depth <= the configured run-ahead.
import type { QueueId } from '../../devices/handles.js';
import type { Submission } from '../../devices/submission.js';
import type { QueueChoice } from './queue-choice.js';

/** Work queued ahead per queue, in nanoseconds: well above the cost of waking the engine (about 50 us). */
const AHEAD = 2e6;
const LEAST = 3;
const INITIAL = 16;

export class DepthControl {
  private readonly submission: Submission;
  private readonly depth: Int32Array;
  private readonly maximum: number;
  /** Time at which the queue last completed a command, or last received a command while it was empty. */
  private readonly since: Float64Array;
  private readonly average: Float64Array;
  /** 1: no command was under way after the last completions, so the queue may have been idle since then. */
  private readonly ranDry: Uint8Array;

  constructor(submission: Submission, queueChoice: Pick<QueueChoice, 'depth'>, maximum: number) {
    const n = submission.backend.queues.length;
    this.submission = submission;
    this.depth = queueChoice.depth;
    this.maximum = maximum;
    this.since = new Float64Array(n);
    this.average = new Float64Array(n);
    this.ranDry = new Uint8Array(n);
    this.depth.fill(Math.min(INITIAL, maximum));
  }

  /** Whether the commands of queue `q` are known to take less than `nanoseconds` on average. */
  isShort(q: QueueId, nanoseconds: number): boolean {
    return this.average[q] > 0 && this.average[q] < nanoseconds;
  }

  /** `n` commands of queue `q` were seen complete at time `now` (nanoseconds). */
  completed(q: QueueId, n: number, now: number): void {
    if (n === 0) return;
    const since = this.since[q];
    const ranDry = this.submission.outstanding[q] === 0;
    const mayHaveIdled = ranDry || this.ranDry[q] === 1;
    this.since[q] = now;
    this.ranDry[q] = ranDry ? 1 : 0;
    if (since === 0 || now <= since) return;
    const each = (now - since) / n;
    const average = this.average[q];
    // The queue was empty for part of the time. So the measured time is only an upper bound for its tasks.
    if (average === 0) this.average[q] = each;
    else if (!mayHaveIdled) this.average[q] = average + (n >= 8 ? 0.5 : 0.125) * (each - average);
    else if (each < average) this.average[q] = each;
    else return;
    const depth = Math.ceil(AHEAD / this.average[q]);
    this.depth[q] = depth < LEAST ? LEAST : depth > this.maximum ? this.maximum : depth;
  }
}
