// What planning makes: the lists of records per queue, with the places where addresses must be filled in, and the places of
// the data before and after an iteration.
import { RecordLayout } from '../../devices/backend.js';
import type { DatumId, QueueId, SpaceId } from '../../devices/handles.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { Insertions } from './insertions.js';
import type { Iteration } from './iteration.js';
import type { PlannedMessage } from './messages.js';
import type { RankShare } from './rank-share.js';

/** The records of one queue (native/contract.ts). */
export interface PlannedQueue {
  readonly queue: QueueId;
  readonly records: Int32Array;
  /** Entries of PlanOpen. */
  readonly open: Int32Array;
  /** Insertion that each record belongs to; -1 for copies and waits. */
  readonly insertion: Int32Array;
}

/** Number of records in a list, those of one iteration. */
export function recordsIn({ records }: PlannedQueue): number {
  return records.length / RecordLayout.words;
}

/** Memory that the plan uses in one piece. */
export interface PlannedRegion {
  readonly space: SpaceId;
  readonly bytes: number;
  /** The only datum that lies in it, from its begin to its end; undefined if several data use it in turn. */
  readonly datum: DatumId | undefined;
}

/** The places in the lists that hold addresses. */
export interface PlannedAddresses {
  /** Those of region g: `first[g]` to `first[g + 1]`. */
  readonly first: Int32Array;
  /** Number of the queue's list, and index of the float64 in its records. */
  readonly list: Int16Array;
  readonly place: Int32Array;
  /** Offset in the region; undefined: all are 0. */
  readonly offset: Float64Array | undefined;
}

/** A copy of a datum in a region. */
export interface PlannedCopy {
  readonly datum: DatumId;
  readonly region: number;
}

/** A copy of a datum that has its value after an iteration, and the command that brings the value there. */
export interface PlannedExit {
  readonly region: number;
  /** The last command of an iteration that writes the copy: a task or a transfer. Its list, and its record in it. */
  readonly list: number;
  readonly record: number;
}

/** A datum that the plan writes. */
export interface PlannedResult {
  readonly datum: DatumId;
  /** Its last writer in an iteration: the list, and the record in it. */
  readonly list: number;
  readonly record: number;
  /** Its copies after an iteration; the first is the owner's. */
  readonly copies: readonly PlannedExit[];
}

/** A task of the plan, for messages. */
export interface PlannedTask {
  readonly cls: TaskClassRow;
  readonly data: readonly DatumId[];
  readonly params: readonly number[];
  /** Slot of each parameter, or -1 for one that is not open. */
  readonly slots: readonly number[];
  /** Set if it is an end of a message to or from another rank. */
  readonly message: PlannedMessage | undefined;
}

/** What was decided for the tasks of a plan. The rest of it follows (assembly.ts). */
export interface Decisions {
  readonly name: string;
  readonly insertions: Insertions;
  /** On several ranks. */
  readonly share: RankShare | undefined;
  readonly iteration: Iteration;
  readonly evictions: number;
  /** Seconds of the iteration on the planned machine. */
  readonly makespan: number;
  /** Tasks of its longest chain. */
  readonly criticalPath: number;
}

/** Figures of a plan. Bytes and tasks are those of one iteration; times are in seconds of the planned machine. */
export interface PlanReport {
  readonly name: string;
  /** Tasks; on several ranks those of this one. */
  readonly tasks: number;
  /** Versions that this rank sends to others, and receives from them. */
  readonly messages: { readonly sent: number; readonly received: number };
  /** Commands per queue, by its name, such as `worker 0` or `gpu 0 compute 0`. */
  readonly commands: Readonly<Record<string, number>>;
  /** Waits of a queue for another. */
  readonly waits: number;
  /** Bytes copied by kind. */
  readonly bytes: { readonly h2d: number; readonly d2h: number; readonly d2d: number };
  /** Bytes of memory that the plan needs, per device. */
  readonly memory: Readonly<Record<string, number>>;
  /** Copies that leave a GPU to make room. */
  readonly evictions: number;
  /** Tasks of the longest chain of tasks that follow each other in an iteration. */
  readonly criticalPath: number;
  /** Seconds of an iteration on the planned machine. */
  readonly makespan: number;
  /** Seconds that the planner has taken; of a plan from a file, those that loading has taken. */
  readonly planning: number;
  /** 'captured' when the iterations are played as one graph of the GPU's driver; otherwise why they are not. */
  readonly graph: string;
}

/** The commands of a plan for a graph of the GPU's driver (driver-graph.ts). */
export interface GraphLists {
  readonly queues: readonly PlannedQueue[];
  readonly addresses: PlannedAddresses;
}

export interface PlannedProgram {
  readonly decisions: Decisions;
  readonly queues: readonly PlannedQueue[];
  readonly regions: readonly PlannedRegion[];
  readonly addresses: PlannedAddresses;
  /** Copies that must be valid before an iteration. */
  readonly entry: readonly PlannedCopy[];
  readonly results: readonly PlannedResult[];
  /** The region with the number of a condition, if it has memory of its own (look.ts). */
  readonly number: number | undefined;
  /** Names of the open parameters, by slot. */
  readonly slots: readonly string[];
  readonly task: (insertion: number) => PlannedTask;
  /** Insertions: tasks, and ends of messages. */
  readonly insertions: number;
  /** Bytes that the copies of an iteration bring into each space, and out of it. */
  readonly copied: { readonly into: readonly number[]; readonly outOf: readonly number[] };
  /** Made on every call. */
  readonly graphLists: () => GraphLists;
  readonly report: Omit<PlanReport, 'graph'>;
}
