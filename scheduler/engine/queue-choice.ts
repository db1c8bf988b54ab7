// The choice of a queue of the device for a task, the backlog of each queue, and the line from which an idle queue
// steals.
// The decisions are pure functions of the tables; this part keeps only its last decisions.
import { executesKernels, findQueues, type QueueInfo } from '../../devices/backend.js';
import {
  type Column,
  FIRST_QUEUE,
  HOST,
  NO_QUEUE,
  type QueueId,
  type SpaceId,
} from '../../devices/handles.js';
import type { Directory } from '../../devices/memory/directory.js';
import type { Submission } from '../../devices/submission.js';
import { Tally } from '../../devices/tally.js';
import { AccessMode, type TaskClassRow, type TaskTable } from '../../stages/task-table.js';
import type { MemoryPressure } from './memory-pressure.js';
import { ReadyQueue } from './ready-queue.js';

/** Limit for tasks dealt to one queue in a row. */
const RUN = 8;
/** A queue with that many commands ahead does not wait for the next pass; otherwise the engine limits the rate. */
const MUCH = 8;

/** A space, or the script workers of the host: the queues among which a task has the choice. */
export type Place = number;

type Pressure = Pick<MemoryPressure, 'short' | 'streams'>;
type PlacedClass = Pick<TaskClassRow, 'modes' | 'onScriptWorkers' | 'spreads'>;

export class QueueChoice {
  private readonly tasks: TaskTable;
  private readonly directory: Directory;
  private readonly submission: Submission;
  /** Spaces under memory pressure, and the number of their queues in use. */
  private readonly pressure: Pressure;
  /** Queues that execute kernels, per place: a space, or after the spaces the script workers of the host. */
  readonly execQueues: readonly (readonly QueueId[])[];
  /** The queue of a place that has one, which needs no choice; NO_QUEUE elsewhere. */
  readonly onlyQueue: Column<Int16Array, QueueId>;
  /** The place of the script workers. */
  readonly scripts: Place;
  /** The place of which a queue executes the tasks, or -1 for queues that only copy. */
  private readonly executesFor: Int16Array;
  /** Script workers have been chosen for a task. */
  private usesScripts = false;
  /** Queue that took the last task whose data no queue had written, per place. */
  private readonly lastQueue: Column<Int16Array, QueueId>;
  /** Number of such tasks that it took in a row. */
  private readonly runs: Int32Array;
  /** Lower bound for the smallest backlog of a place's queues: the last value seen, or 0 after a completion. */
  private readonly leastSeen: Int32Array;
  /** Queue that took the last task, per place. */
  private readonly previous: Column<Int16Array, QueueId>;
  /** Tasks given to a queue that had run dry, since the last completion, per place. */
  private readonly moved: Int32Array;
  /** Scratch of `elect`: votes per queue, all 0 outside of it, and another queue with votes. */
  private readonly votes: Int32Array;
  private second = NO_QUEUE;
  /** Ready tasks that were assigned to a queue and wait for room in it, per queue. */
  readonly lines: readonly ReadyQueue[];
  /** All ready tasks, in lines and not assigned to a queue yet (dispatcher.ts). */
  readonly waiting: Tally = new Tally();
  /** Commands that may be queued ahead, per queue. */
  readonly depth: Int32Array;

  /**
   * @param maximumDepth commands that may be queued ahead on a queue, before anything was measured (depth.ts)
   */
  constructor(
    tasks: TaskTable,
    directory: Directory,
    submission: Submission,
    maximumDepth: number,
    pressure: Pressure,
  ) {
    this.pressure = pressure;
    this.tasks = tasks;
    this.directory = directory;
    this.submission = submission;
    const { spaces, queues } = submission.backend;
    this.scripts = spaces.length;
    const places = spaces.length + 1;
    const placeOf = (q: QueueInfo): Place => (q.kind === 'script' ? this.scripts : q.space);
    this.leastSeen = new Int32Array(places);
    this.moved = new Int32Array(places);
    this.votes = new Int32Array(queues.length);
    this.depth = new Int32Array(queues.length).fill(maximumDepth);
    this.executesFor = Int16Array.from(queues, (q) => (executesKernels(q) ? placeOf(q) : -1));
    this.runs = new Int32Array(places);
    // Queues that only copy share a line, which stays empty: there are many of them.
    const none = new ReadyQueue(tasks.window, this.waiting);
    const executes = queues.map((q) => executesKernels(q));
    this.lines = executes.map((is) => (is ? new ReadyQueue(tasks.window, this.waiting) : none));
    const first = (place: Place): number => Math.max(0, this.executesFor.indexOf(place));
    const all = Array.from({ length: places }, (_, place) => place);
    this.lastQueue = Int16Array.from(all, first) as Column<Int16Array, QueueId>;
    this.previous = Int16Array.from(all, first) as Column<Int16Array, QueueId>;
    this.execQueues = all.map((place) =>
      findQueues(queues, (q) => executesKernels(q) && placeOf(q) === place),
    );
    // That script workers are chosen for a task must be seen.
    const only = this.execQueues.map((each, place) =>
      each.length === 1 && place !== this.scripts ? each[0] : NO_QUEUE,
    );
    this.onlyQueue = Int16Array.from(only) as Column<Int16Array, QueueId>;
  }

  /**
   * The queue of the task's place that should run it; it may be full.
   *
   * A queue is in order. So a task that waits for the tail of another queue delays everything behind it. Hence a task
   * goes to the queue that wrote most of its data. Chains stay on their queue, and the columns of a grid stay together,
   * because the neighbours of a stray column outvote it at the next step. If the vote is a draw, the task goes to the
   * queue of the task before it. It leaves its queue only for a queue that shares its data and is far less loaded, or
   * for a queue that is about to run dry and loses nothing by waiting. The latter take only a few tasks at a time,
   * because the followers of these tasks move with their data. New data are dealt out in runs: neighbours in program
   * order often share data; tasks that begin chains, one by one. Under memory pressure tasks go to the first queues in turn (memory-pressure.ts).
   */
  queue(row: number, cls: PlacedClass, place: Place): QueueId {
    if (place === this.scripts) this.usesScripts = true;
    const queues = this.execQueues[place];
    if (queues.length === 1) return queues[0];
    const isShort = this.isShort(place);
    if (isShort || cls.spreads === true) {
      const next = queues.indexOf(this.previous[place]) + 1;
      const among = isShort ? this.inUse(queues) : queues.length;
      this.previous[place] = queues[next % among];
      return this.previous[place];
    }
    const elected = this.elect(row, cls.modes, place);
    const q =
      elected === NO_QUEUE ? this.deal(place, queues) : this.balance(place, queues, elected);
    this.previous[place] = q;
    return q;
  }

  /** The place that runs the task in `row`, whose device is chosen. */
  placeOf(row: number, cls: PlacedClass): Place {
    const s = this.tasks.device[row];
    return s === HOST && cls.onScriptWorkers === true ? this.scripts : s;
  }

  /** The space whose memory the queues of a place use. */
  spaceOf(place: Place): SpaceId {
    return place === this.scripts ? HOST : (place as SpaceId);
  }

  private isShort(place: Place): boolean {
    return this.pressure.short[this.spaceOf(place)] !== 0;
  }

  /** How many of the queues of a place are in use under memory pressure. */
  private inUse({ length }: readonly QueueId[]): number {
    return Math.min(this.pressure.streams, length);
  }

  /** Backlogs may be smaller than at the last look, and queues that ran dry may take tasks again. */
  lookAgain(): void {
    this.leastSeen.fill(0);
    this.moved.fill(0);
  }

  /** The queue of a place that last wrote most of the task's data; NO_QUEUE if no queue wrote any. */
  private elect(row: number, modes: readonly number[], place: Place): QueueId {
    const { votes, executesFor } = this;
    const s = this.spaceOf(place);
    const { writeQueue, spaces } = this.directory;
    const { flowDatum } = this.tasks;
    const first = this.tasks.flowStart[row];
    const n = modes.length;
    // The votes nearly always agree.
    const q = n === 0 ? NO_QUEUE : writeQueue[flowDatum[first] * spaces + s];
    let same = 1;
    while (same < n && writeQueue[flowDatum[first + same] * spaces + s] === q) same++;
    if (same >= n && q >= 0 && executesFor[q] === place) {
      this.second = NO_QUEUE;
      return q;
    }
    let elected = NO_QUEUE;
    let most = 0;
    let second = NO_QUEUE;
    for (let i = 0; i < n; i++) {
      const q = writeQueue[flowDatum[first + i] * spaces + s];
      if (q < 0 || executesFor[q] !== place) continue;
      // The task must follow the last writer of the data that it changes in any case.
      votes[q] += modes[i] === AccessMode.readWrite ? 3 : 1;
      if (q === elected) most = votes[q];
      else if (votes[q] > most) {
        second = elected;
        elected = q;
        most = votes[q];
      } else second = q;
    }
    this.second = second;
    if (second === NO_QUEUE) {
      if (elected >= 0) votes[elected] = 0;
      return elected;
    }
    const previous = this.previous[place];
    if (votes[previous] === most) {
      if (previous !== elected) this.second = elected;
      elected = previous;
    }
    for (let i = 0; i < n; i++) {
      const q = writeQueue[flowDatum[first + i] * spaces + s];
      if (q >= 0) votes[q] = 0;
    }
    return elected;
  }

  /** The elected queue, or another queue if the elected one has a far longer backlog. */
  private balance(s: Place, queues: readonly QueueId[], elected: QueueId): QueueId {
    const { depth, moved, second } = this;
    const backlog = this.backlog(elected);
    // Between completions backlogs only grow, so an old value of the smallest backlog errs on the side of caution.
    if (backlog - this.leastSeen[s] <= RUN) return elected;
    const best = this.leastLoaded(s, queues);
    const least = this.leastSeen[s];
    if (backlog - least <= RUN) return elected;
    if (least <= depth[best] >> 6 && moved[s] < RUN) {
      moved[s]++;
      return best;
    }
    if (second >= 0 && backlog - this.backlog(second) > Math.max(RUN, depth[elected] >> 2))
      return second;
    return elected;
  }

  /** A queue for a task whose data no queue has written. */
  private deal(s: Place, queues: readonly QueueId[]): QueueId {
    const { depth, runs } = this;
    const last = this.lastQueue[s];
    const best = this.leastLoaded(s, queues);
    if (runs[s] < Math.min(RUN, depth[last] >> 1) && this.backlog(last) - this.leastSeen[s] < RUN) {
      runs[s]++;
      return last;
    }
    this.lastQueue[s] = best;
    runs[s] = 1;
    return best;
  }

  /** The queue with the smallest backlog; among equals preferably not the queue of the last task. */
  private leastLoaded(s: Place, queues: readonly QueueId[]): QueueId {
    const last = this.lastQueue[s];
    let best = last;
    let least = 0x7fffffff;
    for (let i = 0; i < queues.length; i++) {
      const q = queues[i];
      const b = this.backlog(q);
      if (b < least || (b === least && best === last)) {
        least = b;
        best = q;
      }
    }
    this.leastSeen[s] = least;
    return best;
  }

  /** Commands of a queue that are not seen complete, plus tasks that wait for room in it. */
  backlog(q: QueueId): number {
    return this.submission.outstanding[q] + this.lines[q].length;
  }

  /** Whether every queue that executes kernels had enough work at the last look. Script workers count once they are used. */
  allBusy(): boolean {
    const { outstanding } = this.submission;
    for (let q = FIRST_QUEUE; q < outstanding.length; q++) {
      const place = this.executesFor[q];
      if (place === this.scripts && !this.usesScripts) continue;
      if (place >= 0 && outstanding[q] < MUCH) return false;
    }
    return true;
  }

  /** Whether a queue may take another command. */
  hasRoom(q: QueueId): boolean {
    return this.submission.outstanding[q] < this.depth[q] || this.hasRoomOfAll(q);
  }

  /** Under memory pressure the queues in use stand for all of their device. */
  private hasRoomOfAll(q: QueueId): boolean {
    const place = this.executesFor[q];
    const queues = this.execQueues[place];
    const all = queues.length / this.inUse(queues);
    return this.isShort(place) && this.submission.outstanding[q] < this.depth[q] * all;
  }

  /** The longest line of another queue of the same place, for a queue that has run dry; NO_QUEUE if there is none. */
  victimFor(thief: QueueId): QueueId {
    let victim = NO_QUEUE;
    let most = 0;
    for (const q of this.execQueues[this.executesFor[thief]]) {
      if (q !== thief && this.lines[q].length > most) {
        most = this.lines[q].length;
        victim = q;
      }
    }
    return victim;
  }

  /** Whether some queue of a place may take another command. */
  hasSlot(place: Place): boolean {
    const queues = this.execQueues[place];
    const among = this.isShort(place) ? this.inUse(queues) : queues.length;
    for (let i = 0; i < among; i++) if (this.hasRoom(queues[i])) return true;
    return queues.length === 0;
  }
}
