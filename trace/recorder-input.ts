// The records that the recorder takes, where a call would have more arguments than a reader can tell apart. Times are
// nanoseconds on the rank's clock, sizes are bytes. The recorder reads a record during the call and keeps nothing of it,
// so that a caller in a hot path fills one object again and again.

/** A task apart from its times. */
export interface TaskHead {
  readonly id: number;
  /** 0 to 65535, as given to `taskClass`. */
  readonly taskClass: number;
  /** Memory space of the device that it ran on. */
  readonly device: number;
  readonly lane: number;
  /** `TaskFlag` bits and the number of completed stages. */
  readonly flags: number;
  /** The predecessor that released it last, or `NONE`. */
  readonly releasedBy: number;
}

/** A retired task: see `TraceRecorder.taskRow` for times that were never taken. */
export interface RetiredTask extends TaskHead {
  readonly inserted: number;
  readonly ready: number;
  readonly alloc: number;
  readonly stageIn: number;
  readonly commIn: number;
  readonly issued: number;
  readonly execStart: number;
  readonly execEnd: number;
  readonly stageOut: number;
  readonly finalized: number;
}

/** The fields that the tasks of a group share. The last time is less than `SHORT_LIFE` after the first. */
export interface GroupHead {
  /** 0 to 65535, as given to `taskClass`. */
  readonly taskClass: number;
  /** Memory space of the device that they ran on. */
  readonly device: number;
  readonly lane: number;
  /** `TaskFlag` bits and the number of completed stages. */
  readonly flags: number;
  /** An `AccessMode` for each datum of a task, `MOST_DATA` at most. */
  readonly modes: readonly number[];
  /** Number of parameters of each task, `MOST_PARAMETERS` at most. */
  readonly parameters: number;
  /** Each task has a word for the predecessor that released it last. */
  readonly isReleased: boolean;
  readonly inserted: number;
  readonly ready: number;
  /** A body that began before this time counts as issued when it began. */
  readonly issued: number;
  readonly finalized: number;
}

/** A finished transfer. */
export interface FinishedTransfer {
  /** `TransferKind` */
  readonly kind: number;
  /** `TransferReason` */
  readonly reason: number;
  /** The lane that carried it. */
  readonly lane: number;
  /** Memory space, or `NO_INDEX` when it is on another rank. */
  readonly source: number;
  /** Memory space, or `NO_INDEX` when it is on another rank. */
  readonly destination: number;
  /** The task that needed it (for a send: the task that produced the datum), or `NONE`. */
  readonly task: number;
  /** Id of the datum, or `NONE`. */
  readonly datum: number;
  readonly version: number;
  /** The other rank of a message, or `NO_PEER`. */
  readonly peer: number;
  /** Number of the message between this ordered pair of ranks, equal on both sides, or `NONE`. */
  readonly message: number;
  /** Bytes moved. */
  readonly bytes: number;
  /** Time at which it was handed to the lane. One that was never taken (0, or later than the start) becomes the start. */
  readonly issued: number;
  /** Time at which the bytes began to move. */
  readonly start: number;
  /** Time at which they had arrived. */
  readonly end: number;
}

/** Bytes of one memory space. */
export interface MemorySample {
  readonly space: number;
  readonly time: number;
  readonly used: number;
  readonly pinned: number;
  readonly dirty: number;
  readonly clean: number;
  /** Reserved for copies on their way. */
  readonly arriving: number;
}

/** Progress of a rank: lengths of queues now, and tasks since the start. */
export interface ProgressSample {
  readonly time: number;
  /** Ready tasks. */
  readonly ready: number;
  /** Tasks in the window. */
  readonly window: number;
  readonly bytesInFlight: number;
  readonly messagesInFlight: number;
  /** Tasks inserted since the start. */
  readonly inserted: number;
  /** Tasks retired since the start. */
  readonly retired: number;
}

/** Some iterations of a plan that was played. Task n of iteration i among them has the id first + i * tasks + n. */
export interface PlayedIterations {
  /** The plan's name. */
  readonly plan: string;
  /** Id of the first task. */
  readonly first: number;
  readonly iterations: number;
  /** Tasks of an iteration. */
  readonly tasks: number;
  /** Number of the first of these iterations in the play, from 0. */
  readonly iteration: number;
  /** Id of the last task that was inserted before the play. */
  readonly before: number;
}

/** The fields of an event that apply to it. */
export interface EventDetails {
  /** Memory space; default `NO_INDEX`. */
  readonly space?: number;
  /** Id of a task; default `NONE`. */
  readonly task?: number;
  /** Id of a datum; default `NONE`. */
  readonly datum?: number;
  readonly bytes?: number;
  readonly text?: string;
}

/** A record that its owner fills again and again. */
export type Scratch<T> = { -readonly [K in keyof T]: T[K] };
