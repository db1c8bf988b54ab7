// The engine's interface to the other ranks. A single process has no remote.

import type { HeadraceError } from '../../devices/errors.js';
import type { DatumId } from '../../devices/handles.js';
import type { RunState } from './run-state.js';

/** One rank's part in the traffic of a run. */
export interface NetworkReport {
  readonly rank: number;
  readonly ranks: number;
  /** Control messages sent and received; several announcements may travel in one. */
  readonly messagesSent: number;
  readonly messagesReceived: number;
  /** Versions sent to other ranks (each destination counts) and received from them. */
  readonly sends: number;
  readonly receives: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** Receives that found no room on their device and went to host memory first. */
  readonly spilledReceives: number;
  readonly flushes: number;
}

/** The movements of this rank: tasks of the runtime that send or receive a version. */
export interface RemoteTasks {
  /** The movement in `row` has no predecessors left. */
  released(row: number): void;
  /** The movement in `row` is in stage exec and has its buffer. Returns an outcome. */
  start(row: number): number;
  /** The send or receive in `row` is a command of a lane now. */
  commanded(row: number): void;
  /** Marks the lanes, by queue, whose end lets held receives go on soon enough. */
  markLanes(wakes: Uint8Array): void;
  /** Commands the receives that were held until now; true when there were any. */
  commandHeld(): boolean;
  /** On how many lists the receive in `row` stands, which waits for news of its version, for its turn or for a lane. */
  waitLists(row: number): number;
  /** The movement in `row` fails; the ranks that wait for its datum get a message. */
  failing(row: number, error: HeadraceError): void;
  /** The error of the movement in `row`, whose command has ended with `status`; undefined: it has no words of its own. */
  failure(row: number, status: number): HeadraceError | undefined;
  /** The movement in `row` is over with `status`, or was dropped. */
  ended(row: number, status: number): void;
}

export interface Remote {
  /** This rank, and how many there are. */
  readonly rank: number;
  readonly size: number;
  /** The engine waits for something of another rank. */
  readonly expecting: boolean;
  /** Messages found no room and must be sent again. Nothing wakes the engine when room appears. */
  readonly mustRetry: boolean;
  /** Every thread has a core, and a message from another rank may come at any moment. */
  readonly maySpin: boolean;
  /** The movements, as tasks of the engine. */
  readonly tasks: RemoteTasks;

  /** Receives the messages of other ranks; true when there was one. */
  poll(): boolean;
  /** Sends the messages that this pass has written. */
  publish(): void;
  /** The message layer looks at all lanes: a play has begun on them, or was cancelled. */
  lanesChanged(): void;
  /** The thread is about to block in a call of the program. */
  blocks(): void;

  /** A run failed on this rank. */
  runFailed(run: RunState, error: HeadraceError): void;
  /** All tasks of a run are over on this rank. The run is settled when all ranks agree. */
  runEnded(run: RunState): void;

  /** Rank that owns datum `d`. */
  ownerOf(d: DatumId): number;
  /** Totals so far. */
  report(): NetworkReport;
  /** A line for each thing besides tasks for which this rank waits. */
  waits(): string[];
}
