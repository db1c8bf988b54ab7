// Placement: which device runs a task, and which of the device's queues.
//
// Rule: the device the user named; else where the first written datum was advised to live or is owned now; else
// the device with most of the input bytes; else the least loaded one. A device whose memory can never hold the
// task's data is no candidate. Pure decisions over the tables; nothing is changed here.
import { NO_QUEUE } from '../devices/backend.js';
import type { Directory } from '../devices/directory.js';
import { NO_HOME } from '../devices/directory.js';
import type { Submission } from '../devices/submission.js';
import { AccessMode, type TaskClassRow, type TaskTable } from '../stages/task-table.js';
import { ReadyQueue } from './ready-queue.js';

/** Tasks dealt to one queue in a row, at most. */
const RUN = 8;
/** With that many commands before it a queue does not wait for the next pass, or the engine is what limits the rate. */
const MUCH = 8;

export class Placement {
  private readonly tasks: TaskTable;
  private readonly directory: Directory;
  private readonly submission: Submission;
  /** Spaces whose memory is short (shortage.ts). */
  private readonly short: Uint8Array;
  /** Largest task each space can hold, in bytes. */
  private readonly capacity: Float64Array;
  /** Queues that execute kernels, per space. */
  readonly execQueues: readonly (readonly number[])[];
  /** Space whose kernels a queue executes, or -1 for queues that only copy. */
  private readonly executesFor: Int16Array;
  /** Queue that took the last task without data of its own on any, per space. */
  private readonly lastQueue: Int16Array;
  /** How many such tasks in a row it took. */
  private readonly runs: Int32Array;
  /** At most the smallest backlog of a space's queues: what was seen last, or 0 when something completed since. */
  private readonly leastSeen: Int32Array;
  /** Queue that took the last task, per space. */
  private readonly previous: Int16Array;
  /** Tasks given to a queue that had run dry since something completed, per space. */
  private readonly moved: Int32Array;
  /** Scratch of `elect`: votes per queue, all 0 outside of it, and another queue that got some. */
  private readonly votes: Int32Array;
  private second = NO_QUEUE;
  /** Ready tasks that were given to a queue and wait for room in it, per queue. */
  readonly lines: readonly ReadyQueue[];
  /** Tasks placed on each space and not yet retired. */
  readonly load: Int32Array;
  /** Commands that may be queued ahead, per queue. */
  readonly depth: Int32Array;

  constructor(
    tasks: TaskTable,
    directory: Directory,
    submission: Submission,
    capacity: Float64Array,
    maximumDepth: number,
    short: Uint8Array,
  ) {
    this.short = short;
    this.tasks = tasks;
    this.directory = directory;
    this.submission = submission;
    this.capacity = capacity;
    const { spaces, queues } = submission.backend;
    this.load = new Int32Array(spaces.length);
    this.leastSeen = new Int32Array(spaces.length);
    this.moved = new Int32Array(spaces.length);
    this.votes = new Int32Array(queues.length);
    this.depth = new Int32Array(queues.length).fill(maximumDepth);
    this.executesFor = Int16Array.from(queues, (q) =>
      q.kind === 'worker' || q.kind === 'compute' ? q.space : -1,
    );
    this.runs = new Int32Array(spaces.length);
    this.lines = queues.map(() => new ReadyQueue(tasks.window));
    this.lastQueue = Int16Array.from(spaces, (_, s) => Math.max(0, this.executesFor.indexOf(s)));
    this.previous = Int16Array.from(this.lastQueue);
    this.execQueues = spaces.map((_, s) =>
      queues.flatMap((q, i) =>
        q.space === s && (q.kind === 'worker' || q.kind === 'compute') ? [i] : [],
      ),
    );
  }

  /** Space on which the task in `row` should run. */
  device(row: number, cls: TaskClassRow, bytes: number): number {
    const { tasks, directory: dir } = this;
    const hint = tasks.device[row];
    if (hint >= 0) return hint;
    const spaces = dir.spaces;
    if (spaces === 1) return 0;
    const first = tasks.flowStart[row];
    const modes = cls.modes;
    let gpus = 0;
    for (let s = 1; s < spaces; s++) if (this.canRun(cls, s, bytes)) gpus++;
    if (gpus === 0) return 0;
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      const d = tasks.flowDatum[first + i];
      const home = dir.home[d] !== NO_HOME ? dir.home[d] : dir.owner(d);
      if (home > 0 && this.canRun(cls, home, bytes)) return home;
      break;
    }
    let best = -1;
    let bestBytes = 0;
    for (let s = 1; s < spaces; s++) {
      if (!this.canRun(cls, s, bytes)) continue;
      let there = 0;
      for (let i = 0; i < modes.length; i++) {
        const d = tasks.flowDatum[first + i];
        if (modes[i] !== AccessMode.write && (dir.validMask[d] >> s) & 1) there += dir.bytes[d];
      }
      if (
        best < 0 ||
        there > bestBytes ||
        (there === bestBytes && this.load[s] < this.load[best])
      ) {
        best = s;
        bestBytes = there;
      }
    }
    return best;
  }

  /** Whether a class has a body for space `s` and the space could ever hold `bytes`. */
  canRun(cls: TaskClassRow, s: number, bytes: number): boolean {
    return (
      (cls.kernels[s] >= 0 || (s === 0 && cls.body !== undefined)) && bytes <= this.capacity[s]
    );
  }

  /**
   * The queue of the task's device that should run it; it may be full.
   *
   * A queue is in order, so a task that follows the tail of another queue keeps everything behind it waiting. Hence a
   * task goes to the queue that wrote most of its data: chains stay where they are, and the columns of a grid keep
   * together, because one that strayed is outvoted by its neighbours at the next step. Where the vote is a draw the
   * task goes where the one before it went. It leaves its queue only for one that shares its data and is far less
   * loaded, or for one about to run dry, which has nothing to lose by waiting; of those only a few at a time, because
   * what they write takes its followers along. New data are dealt out in runs: neighbours in program order often
   * share data. Where memory is short all tasks go to the first queue.
   */
  queue(row: number, modes: readonly number[]): number {
    const s = this.tasks.device[row];
    const queues = this.execQueues[s];
    if (queues.length === 1 || this.short[s] !== 0) return queues[0];
    const elected = this.elect(row, modes, s);
    const q = elected === NO_QUEUE ? this.deal(s, queues) : this.balance(s, queues, elected);
    this.previous[s] = q;
    return q;
  }

  /** Backlogs may be smaller than at the last look, and queues that ran dry may take tasks again. */
  lookAgain(): void {
    this.leastSeen.fill(0);
    this.moved.fill(0);
  }

  /** The queue of space `s` with most of the task's data, by last writer; NO_QUEUE when none wrote any. */
  private elect(row: number, modes: readonly number[], s: number): number {
    const { votes, executesFor } = this;
    const { writeQueue, spaces } = this.directory;
    const { flowDatum } = this.tasks;
    const first = this.tasks.flowStart[row];
    const n = modes.length;
    // Nearly always they agree.
    const q = n === 0 ? NO_QUEUE : writeQueue[flowDatum[first] * spaces + s];
    let same = 1;
    while (same < n && writeQueue[flowDatum[first + same] * spaces + s] === q) same++;
    if (same >= n && q >= 0 && executesFor[q] === s) {
      this.second = NO_QUEUE;
      return q;
    }
    let elected = NO_QUEUE;
    let most = 0;
    let second = NO_QUEUE;
    for (let i = 0; i < n; i++) {
      const q = writeQueue[flowDatum[first + i] * spaces + s];
      if (q < 0 || executesFor[q] !== s) continue;
      // What a task changes it must follow in any case.
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
    const previous = this.previous[s];
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

  /** The elected queue, or another if that one is too far behind. */
  private balance(s: number, queues: readonly number[], elected: number): number {
    const { depth, moved, second } = this;
    const backlog = this.backlog(elected);
    // Between completions backlogs only grow, so an old look at the least of them errs on the side of caution.
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

  /** A queue for a task without data on any. */
  private deal(s: number, queues: readonly number[]): number {
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

  /** The queue with the smallest backlog, among equals rather not the one that had its turn. */
  private leastLoaded(s: number, queues: readonly number[]): number {
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

  /** Commands of a queue that are not seen complete, and tasks that wait for it to have room. */
  backlog(q: number): number {
    return this.submission.outstanding[q] + this.lines[q].length;
  }

  /** Whether every queue that executes kernels has much to do, as far as was seen. */
  allBusy(): boolean {
    const { outstanding } = this.submission;
    for (let q = 0; q < outstanding.length; q++) {
      if (this.executesFor[q] >= 0 && outstanding[q] < MUCH) return false;
    }
    return true;
  }

  /** Whether a queue may take another command. */
  hasRoom(q: number): boolean {
    return this.submission.outstanding[q] < this.depth[q] || this.hasRoomOfAll(q);
  }

  /** Where memory is short one queue stands for all of its device. */
  private hasRoomOfAll(q: number): boolean {
    const s = this.executesFor[q];
    const all = this.execQueues[s].length;
    return this.short[s] !== 0 && this.submission.outstanding[q] < this.depth[q] * all;
  }

  /** The longest line of another queue of the same space, for a queue that has run dry; NO_QUEUE without one. */
  victimFor(thief: number): number {
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

  /** Whether some queue of space `s` may take another command. */
  hasSlot(s: number): boolean {
    const queues = this.execQueues[s];
    if (this.short[s] !== 0) return this.hasRoom(queues[0]);
    for (let i = 0; i < queues.length; i++) {
      const q = queues[i];
      if (this.submission.outstanding[q] < this.depth[q]) return true;
    }
    return queues.length === 0;
  }
}
