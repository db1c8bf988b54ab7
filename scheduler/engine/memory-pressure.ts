// Devices under memory pressure: copies were evicted to make room for the last tasks. On such a device data movement
// dominates the time of tasks, and the order of tasks decides which data move. So tasks start in program order, on the first two queues in
// turn: a small kernel, such as the factorisation of a tile, runs beside a large one. More queues would drift apart and would need data from
// several places of the program at the same time. The device also runs ahead no further than half of its memory.
//
// Invariant: a task that may not start waits for a command that is under way.
import { findQueues } from '../../devices/backend.js';
import { FIRST_GPU, type SpaceId } from '../../devices/handles.js';
import type { AllSpaces } from '../../devices/memory/all-spaces.js';
import type { MemorySpace } from '../../devices/memory/space.js';
import type { Submission } from '../../devices/submission.js';

/** Commands of a device's first queue after which an eviction no longer counts. */
const LASTING = 256;
/** Queues of a device in use while memory is short. */
const STREAMS = 2;
/** Share of a device's memory that issued tasks may use. */
const PINNED = 0.5;

export class MemoryPressure {
  /** 1 if copies were lately evicted for room, per space. The host cannot evict to a lower level: always 0. */
  readonly short: Uint8Array;
  private readonly spaces: readonly MemorySpace[];
  private readonly all: AllSpaces;
  private readonly submission: Submission;
  /** The queues of a device in use while its memory is short. */
  streams: number = STREAMS;
  /** Queues that execute kernels, per space. */
  private readonly queues: readonly (readonly number[])[];
  /** Evictions seen, and the queue's position at the last eviction, per space. */
  private readonly evictions: Int32Array;
  private readonly since: Int32Array;
  /** Devices that are short of memory whether they evict or not. */
  private readonly staying: Set<SpaceId> = new Set();

  constructor(spaces: readonly MemorySpace[], all: AllSpaces, submission: Submission) {
    this.spaces = spaces;
    this.all = all;
    this.submission = submission;
    const { queues } = submission.backend;
    this.queues = spaces.map((_, s) =>
      findQueues(queues, (q) => q.space === s && q.kind === 'compute'),
    );
    this.short = new Uint8Array(spaces.length);
    this.evictions = new Int32Array(spaces.length);
    this.since = new Int32Array(spaces.length);
  }

  /** Updates `short`; one call per pass is enough. */
  look(): void {
    if (this.all.evictions === 0) return;
    for (let s = FIRST_GPU; s < this.spaces.length; s++) {
      const { evictions } = this.spaces[s];
      if (evictions === 0) continue;
      const issued = this.submission.backend.issued[this.queues[s][0]];
      if (evictions !== this.evictions[s]) {
        this.evictions[s] = evictions;
        this.since[s] = issued;
      }
      const lasts = (issued - this.since[s]) >>> 0 < LASTING || this.staying.has(s);
      this.short[s] = lasts ? 1 : 0;
    }
  }

  /** Devices that have evicted so far are short of memory from now on, until the engine is gone. Returns them. */
  stay(): ReadonlySet<SpaceId> {
    for (let s = FIRST_GPU; s < this.spaces.length; s++)
      if (this.spaces[s].evictions > 0) this.staying.add(s);
    return this.staying;
  }

  /** Whether another task may start on device `s`, which is under memory pressure. */
  mayStart(s: SpaceId): boolean {
    const { pinnedBytes, zone } = this.spaces[s];
    return pinnedBytes <= PINNED * zone.capacity || this.isIdle(s);
  }

  private isIdle(s: SpaceId): boolean {
    const { outstanding } = this.submission;
    return this.queues[s].every((q) => outstanding[q] === 0);
  }
}
