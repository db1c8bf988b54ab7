// The program of a simulated case as plain JSON: its data, its tasks, and its actions step by step.
// Invariant: everything is named by numbers, so that a case can be printed, kept and shrunk.

/** Access modes as in trace/format.ts: 1 read, 2 write, 3 read and write. */
export type CaseFlow = readonly [datum: number, mode: 1 | 2 | 3];

/** Instead of a datum's number: the datum that the inserting body has created. */
export const OWN = -1;

export interface CaseTask {
  readonly flows: readonly CaseFlow[];
  /** A kernel for GPUs (or workers without GPUs), a kernel for workers, or a JavaScript body, perhaps asynchronous. */
  readonly body: 'kernel' | 'host' | 'script' | 'async';
  /** Requested rank. */
  readonly rank?: number;
  /** Requested GPU, counted from 0. */
  readonly device?: number;
  readonly priority?: number;
  /** Earlier tasks that it follows without data. */
  readonly after?: readonly number[];
  /** It pulls the data that it reads. */
  readonly pulls?: boolean;
  /** Length in virtual microseconds. */
  readonly micros: number;
  /** Its JavaScript body throws, or rejects. */
  readonly fails?: boolean;
  /** Tasks that its JavaScript body inserts into its own run. */
  readonly inserts?: readonly CaseTask[];
  /** Its JavaScript body inserts the task itself twice, one level less deep. */
  readonly grows?: number;
  /** Units of a datum that its JavaScript body creates, for the tasks that it inserts (datum OWN there), and closes. */
  readonly makes?: number;
}

/** The next action of a program; runs, tasks and data by number. Impossible actions are omitted. */
export type CaseStep =
  | readonly ['open', run: number]
  | readonly ['insert', run: number, task: number]
  /** The program of the run ends. */
  | readonly ['end', run: number]
  | readonly ['cancel', run: number, rank: number]
  /** A datum that is `later` is created. */
  | readonly ['make', datum: number]
  | readonly ['set', datum: number]
  | readonly ['restore', datum: number]
  | readonly ['read', datum: number]
  | readonly ['close', datum: number]
  /** The program awaits all runs, reads and writes. */
  | readonly ['await']
  /** The program awaits another promise meanwhile. */
  | readonly ['pass', micros: number];

export interface CaseDatum {
  /** Size in allocation units of 512 bytes. */
  readonly units: number;
  /** It has a value from the start; otherwise a task writes it first. */
  readonly initial: boolean;
  /** GPU advised for its writers. */
  readonly home?: number;
  /** Rank that owns it. */
  readonly owner?: number;
  /** It is created by a step of the program, not before. */
  readonly later?: boolean;
}
