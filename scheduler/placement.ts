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

export class Placement {
  private readonly tasks: TaskTable;
  private readonly directory: Directory;
  private readonly submission: Submission;
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
  ) {
    this.tasks = tasks;
    this.directory = directory;
    this.submission = submission;
    this.capacity = capacity;
    const { spaces, queues } = submission.backend;
    this.load = new Int32Array(spaces.length);
    this.depth = new Int32Array(queues.length).fill(maximumDepth);
    this.executesFor = Int16Array.from(queues, (q) =>
      q.kind === 'worker' || q.kind === 'compute' ? q.space : -1,
    );
    this.runs = new Int32Array(spaces.length);
    this.lines = queues.map(() => new ReadyQueue(tasks.window));
    this.lastQueue = Int16Array.from(spaces, (_, s) => Math.max(0, this.executesFor.indexOf(s)));
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
   * task stays with the queue that wrote its first output last: chains and columns of a grid stay where they are, and
   * most of what they follow lies on the same queue. It moves when that queue is far behind, or when another is
   * about to run dry and so has nothing to lose by waiting. New data are dealt out in runs, because neighbours in
   * program order often share data.
   */
  queue(row: number, modes: Uint8Array): number {
    const { tasks, directory: dir, depth, runs } = this;
    const s = tasks.device[row];
    const queues = this.execQueues[s];
    if (queues.length === 1) return queues[0];
    const last = this.lastQueue[s];
    let best = last;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < queues.length; i++) {
      const q = queues[i];
      const b = this.backlog(q);
      if (b < least || (b === least && best === last)) {
        least = b;
        best = q;
      }
    }
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      const writer = dir.writeQueue[tasks.flowDatum[first + i] * dir.spaces + s];
      if (writer < 0 || this.executesFor[writer] !== s) break;
      const ahead = this.backlog(writer) - least;
      const most = least <= depth[best] >> 6 ? RUN : Math.max(RUN, depth[writer] >> 2);
      return ahead > most ? best : writer;
    }
    if (runs[s] < Math.min(RUN, depth[last] >> 1) && this.backlog(last) - least < RUN) {
      runs[s]++;
      return last;
    }
    this.lastQueue[s] = best;
    runs[s] = 1;
    return best;
  }

  /** Commands of a queue that are not seen complete, and tasks that wait for it to have room. */
  backlog(q: number): number {
    return this.submission.outstanding[q] + this.lines[q].length;
  }

  /** Whether a queue may take another command. */
  hasRoom(q: number): boolean {
    return this.submission.outstanding[q] < this.depth[q];
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
    for (let i = 0; i < queues.length; i++) {
      const q = queues[i];
      if (this.submission.outstanding[q] < this.depth[q]) return true;
    }
    return queues.length === 0;
  }
}
