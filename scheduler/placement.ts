// Placement: which device runs a task, and which of the device's queues.
//
// Rule: the device the user named; else where the first written datum was advised to live or is owned now; else
// the device with most of the input bytes; else the least loaded one. A device whose memory can never hold the
// task's data is no candidate. Pure decisions over the tables; nothing is changed here.
import type { Directory } from '../devices/directory.js';
import { NO_HOME } from '../devices/directory.js';
import type { Submission } from '../devices/submission.js';
import { AccessMode, type TaskClassRow, type TaskTable } from '../stages/task-table.js';

/** A queue stays with the writer of the data it continues unless it is this much behind the emptiest one. */
const AFFINITY_SHARE = 4;

export class Placement {
  private readonly tasks: TaskTable;
  private readonly directory: Directory;
  private readonly submission: Submission;
  /** Largest task each space can hold, in bytes. */
  private readonly capacity: Float64Array;
  /** Queues that execute kernels, per space. */
  readonly execQueues: readonly (readonly number[])[];
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
      if (best < 0 || there > bestBytes || (there === bestBytes && this.load[s] < this.load[best])) {
        best = s;
        bestBytes = there;
      }
    }
    return best;
  }

  /** Whether a class has a body for space `s` and the space could ever hold `bytes`. */
  canRun(cls: TaskClassRow, s: number, bytes: number): boolean {
    return (cls.kernels[s] >= 0 || (s === 0 && cls.body !== undefined)) && bytes <= this.capacity[s];
  }

  /** The queue of the task's device that should run it: the one its data come from, unless that one is behind. */
  queue(row: number): number {
    const { tasks, directory: dir, submission: sub } = this;
    const s = tasks.device[row];
    const queues = this.execQueues[s];
    if (queues.length === 1) return queues[0];
    const outstanding = sub.outstanding;
    let best = queues[0];
    let least = outstanding[best] - this.depth[best];
    for (let i = 1; i < queues.length; i++) {
      const q = queues[i];
      const o = outstanding[q] - this.depth[q];
      if (o < least) {
        least = o;
        best = q;
      }
    }
    const modes = this.modesOf(row);
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] === AccessMode.read) continue;
      const q = dir.writeQueue[tasks.flowDatum[first + i] * dir.spaces + s];
      if (q < 0 || q === best || sub.backend.queues[q].space !== s) break;
      if (sub.backend.queues[q].kind !== 'worker' && sub.backend.queues[q].kind !== 'compute') break;
      const ahead = outstanding[q] - outstanding[best];
      if (outstanding[q] < this.depth[q] && ahead <= this.depth[q] / AFFINITY_SHARE) best = q;
      break;
    }
    return best;
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

  /** Set by the engine: access modes of the class of a row. */
  modesOf: (row: number) => Uint8Array = () => new Uint8Array(0);
}
