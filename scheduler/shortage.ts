// Devices whose memory is short: copies had to leave for what their last tasks needed. There, what is moved decides how long
// tasks take, and order decides what is moved. So such a device uses one queue, which keeps program order where several
// drift apart and need the data of several places of the program at a time, and runs ahead no further than half of
// its memory.
//
// Invariant: whoever may not start a task waits for a command that is under way.
import type { MemorySpace } from '../devices/memory-space.js';
import type { Submission } from '../devices/submission.js';

/** Commands of a device's first queue after which an eviction is over and done with. */
const LASTING = 64;
/** Share of a device's memory that may be in use by what was issued. */
const PINNED = 0.5;

export class Shortage {
  /** 1 where copies left lately because room was needed, per space. The host has nothing below it: always 0. */
  readonly short: Uint8Array;
  private readonly spaces: readonly MemorySpace[];
  private readonly submission: Submission;
  /** The queue in use while memory is short, per space. */
  private readonly queues: Int16Array;
  /** Evictions seen, and how far the queue was at the last one, per space. */
  private readonly evictions: Int32Array;
  private readonly since: Int32Array;

  constructor(spaces: readonly MemorySpace[], submission: Submission) {
    this.spaces = spaces;
    this.submission = submission;
    const { queues } = submission.backend;
    this.queues = Int16Array.from(spaces, (_, s) =>
      queues.findIndex((q) => q.space === s && q.kind === 'compute'),
    );
    this.short = new Uint8Array(spaces.length);
    this.evictions = new Int32Array(spaces.length);
    this.since = new Int32Array(spaces.length);
  }

  /** Brings `short` up to date; once a pass is enough. */
  look(): void {
    for (let s = 1; s < this.spaces.length; s++) {
      const { evictions } = this.spaces[s];
      if (evictions === 0) continue;
      const issued = this.submission.backend.issued[this.queues[s]];
      if (evictions !== this.evictions[s]) {
        this.evictions[s] = evictions;
        this.since[s] = issued;
      }
      this.short[s] = (issued - this.since[s]) >>> 0 < LASTING ? 1 : 0;
    }
  }

  /** Whether another task may start on device `s`, whose memory is short. */
  mayStart(s: number): boolean {
    const { pinnedBytes, zone } = this.spaces[s];
    return (
      pinnedBytes <= PINNED * zone.capacity || this.submission.outstanding[this.queues[s]] === 0
    );
  }
}
