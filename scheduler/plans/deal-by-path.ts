// Deals tasks as queues become free, those first that the longest path follows (list scheduling; R. L. Graham, "Bounds on
// Multiprocessing Timing Anomalies", SIAM J. Appl. Math. 17, 1969). The order of the commands is that of their begins.
//
// Invariant: a command is dealt behind all that it follows, and the new order is that of dealing.
import { guards } from '../../devices/guards.js';
import { EventQueue } from '../../devices/simulated/machine/event-queue.js';
import type { PlannedParts } from './chains.js';
import { Timeline } from './timeline.js';
import type { ControlEdges } from './waits.js';

/** Iterations that are dealt, each behind the one before; the last one is taken. */
const ITERATIONS = 3;
const NONE: readonly number[] = [];

export interface Dealt {
  /** Queue of each command. */
  readonly queue: Int16Array;
  /** The commands in their new order. */
  readonly order: Int32Array;
}

/** Which commands follow which, within an iteration. */
interface Followers {
  /** Those of command c: `of[first[c]]` to `of[first[c + 1]]`. */
  readonly first: Int32Array;
  readonly of: Int32Array;
  /** Number of commands that each follows. */
  readonly before: Int32Array;
}

/** `takes`: nanoseconds of each command. */
export function dealByPath(
  parts: PlannedParts,
  control: ControlEdges,
  takes: Float64Array,
  queues: readonly number[],
): Dealt {
  const followers = followersOf(parts, control);
  const path = new Float64Array(takes.length);
  for (let c = takes.length - 1; c >= 0; c--) {
    let longest = 0;
    for (let i = followers.first[c]; i < followers.first[c + 1]; i++)
      longest = Math.max(longest, path[followers.of[i]]);
    path[c] = takes[c] + longest;
  }
  const timeline = new Timeline(parts, control, takes, Math.max(...queues) + 1);
  const dealing = new Dealing(timeline, followers, path, queues);
  for (let k = 1; k < ITERATIONS; k++) dealing.iteration();
  return dealing.iteration();
}

class Dealing {
  private readonly timeline: Timeline;
  private readonly followers: Followers;
  private readonly path: Float64Array;
  private readonly queues: readonly number[];

  constructor(
    timeline: Timeline,
    followers: Followers,
    path: Float64Array,
    queues: readonly number[],
  ) {
    this.timeline = timeline;
    this.followers = followers;
    this.path = path;
    this.queues = queues;
  }

  iteration(): Dealt {
    const { timeline, followers, path, queues } = this;
    const count = path.length;
    const pending = followers.before.slice();
    /** Commands by the time from which they may begin, and those of the present time by their paths. */
    const later = new EventQueue();
    const now = new EventQueue();
    later.reserve(count);
    now.reserve(count);
    for (let c = 0; c < count; c++) if (pending[c] === 0) later.push(c, timeline.ready(c));
    const queue = new Int16Array(count);
    const order = new Int32Array(count);
    for (let dealt = 0; dealt < count; dealt++) {
      let time = Math.min(...queues.map((q) => timeline.free[q]));
      if (now.length === 0) time = Math.max(time, later.time);
      while (later.length > 0 && later.time <= time) {
        const c = later.pop();
        now.push(c, -path[c]);
      }
      const c = now.pop();
      const q = this.nearest(c, time);
      timeline.put(c, q, time);
      queue[c] = q;
      order[dealt] = c;
      for (let i = followers.first[c]; i < followers.first[c + 1]; i++) {
        const next = followers.of[i];
        if (--pending[next] === 0) later.push(next, timeline.ready(next));
      }
    }
    return { queue, order };
  }

  /** Of the queues that are free then, the one to which the least has to come. */
  private nearest(c: number, time: number): number {
    const { timeline, queues } = this;
    let best = -1;
    let least = Number.POSITIVE_INFINITY;
    for (const q of queues) {
      if (timeline.free[q] > time) continue;
      const away = timeline.away(c, q);
      if (away < least) {
        least = away;
        best = q;
      }
    }
    return best;
  }
}

function followersOf(
  { commands, accesses, ranges }: PlannedParts,
  control: ControlEdges,
): Followers {
  const pairs: number[] = [];
  const before = new Int32Array(commands.count);
  const writer = new Int32Array(ranges.segments).fill(-1);
  const readers: number[][] = Array.from({ length: ranges.segments }, () => []);
  const commandOf = new Map<number, number>();
  const follow = (c: number, first: number): void => {
    if (first < 0 || first === c) return;
    pairs.push(first, c);
    before[c]++;
  };
  for (let c = 0; c < commands.count; c++) {
    for (let i = accesses.first[c]; i < accesses.first[c + 1]; i++) {
      const r = accesses.of[i] >> 1;
      const writes = (accesses.of[i] & 1) === 1;
      for (let s = ranges.firstSegment[r]; s <= ranges.lastSegment[r]; s++) {
        follow(c, writer[s]);
        if (writes && guards.planDealt) for (const reader of readers[s]) follow(c, reader);
      }
    }
    for (let i = accesses.first[c]; i < accesses.first[c + 1]; i++) {
      const r = accesses.of[i] >> 1;
      for (let s = ranges.firstSegment[r]; s <= ranges.lastSegment[r]; s++)
        if ((accesses.of[i] & 1) === 0) readers[s].push(c);
        else {
          writer[s] = c;
          readers[s] = [];
        }
    }
    if (control.size === 0) continue;
    for (const first of control.get(commands.insertion[c]) ?? NONE)
      follow(c, commandOf.get(first) as number);
    commandOf.set(commands.insertion[c], c);
  }
  const first = new Int32Array(commands.count + 1);
  for (let i = 0; i < pairs.length; i += 2) first[pairs[i] + 1]++;
  for (let c = 0; c < commands.count; c++) first[c + 1] += first[c];
  const next = first.slice();
  const of = new Int32Array(pairs.length / 2);
  for (let i = 0; i < pairs.length; i += 2) of[next[pairs[i]]++] = pairs[i + 1];
  return { first, of, before };
}
