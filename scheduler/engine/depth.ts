// The number of commands that the engine keeps queued ahead on each queue.
//
// Commands queued ahead hide the engine's latency, but they fix the order and the queue of a task early. So the depth
// is a time, not a count: each queue holds about AHEAD of work, in commands as long as it lately completed. A
// queue holds thousands of microsecond tasks, but only about three millisecond tasks. Only work counts: a queue that waits
// for another rank between short commands is given as many of them as one that does not wait, or each of these waits would also
// be one for the engine. (What the stream of a GPU waits for counts as its work.)
// Invariant: LEAST <= depth <= the configured run-ahead.
import type { QueueId } from '../../devices/handles.js';
import type { Submission } from '../../devices/submission.js';
import type { QueueChoice } from './queue-choice.js';

/** Work queued ahead per queue, in nanoseconds: well above the cost of waking the engine (about 50 us). */
const AHEAD = 2e6;
const LEAST = 3;
const INITIAL = 16;
/** Commands count as at most so many times the average: one that is far longer than the others says little about them. */
const MOST_GROWTH = 16;

export class DepthControl {
  private readonly submission: Submission;
  private readonly depth: Int32Array;
  private readonly maximum: number;
  /** Nanoseconds that the queue had worked when it last completed a command. */
  private readonly worked: Float64Array;
  /** Nanoseconds of work of a command, of the last ones; 0: none was seen. */
  private readonly average: Float64Array;
  /** 1: lanes, which do no work. */
  private readonly isLane: Uint8Array;

  constructor(submission: Submission, queueChoice: Pick<QueueChoice, 'depth'>, maximum: number) {
    const { queues } = submission.backend;
    this.submission = submission;
    this.depth = queueChoice.depth;
    this.maximum = maximum;
    this.worked = new Float64Array(queues.length);
    this.average = new Float64Array(queues.length);
    this.isLane = Uint8Array.from(queues, ({ kind }) => (kind === 'lane' ? 1 : 0));
    this.depth.fill(Math.min(INITIAL, maximum));
  }

  /** Whether the commands of queue `q` are known to take less than `nanoseconds` on average. */
  isShort(q: QueueId, nanoseconds: number): boolean {
    return this.average[q] > 0 && this.average[q] < nanoseconds;
  }

  /** `n` commands of queue `q` were seen complete. */
  completed(q: QueueId, n: number): void {
    if (n === 0 || this.isLane[q] === 1) return;
    const worked = this.submission.backend.busy(q);
    const each = (worked - this.worked[q]) / n;
    this.worked[q] = worked;
    if (each <= 0) return;
    const average = this.average[q];
    const counted = Math.min(each, MOST_GROWTH * average);
    this.average[q] = average === 0 ? each : average + (counted - average) * (n >= 8 ? 0.5 : 0.125);
    const depth = Math.ceil(AHEAD / this.average[q]);
    this.depth[q] = depth < LEAST ? LEAST : depth > this.maximum ? this.maximum : depth;
  }
}
