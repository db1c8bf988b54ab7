// The observer interface: the only way to watch the engine. Traces, the story of objects, and the checkers of the
// simulated machine are observers. Without an observer the engine computes nothing for them.
//
// Invariant: an observer changes no decision. The engine calls it in the middle of a pass, so an observer must not
// call the engine.

import type { HeadraceError } from '../../devices/errors.js';
import type { Column, DatumId, QueueId, SpaceId, TaskId } from '../../devices/handles.js';
import type { NetworkWay } from '../../devices/network/listener.js';
import type { StageWatcher } from '../../stages/context.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { PlayedPart } from '../plans/played-part.js';
import type { RunState } from './run-state.js';

/** The payload of a message between ranks. Times are nanoseconds of the runtime's clock; 0 as an end: now. */
export interface Payload {
  /** Row of the datum, and the task that moves it. */
  readonly d: DatumId;
  readonly task: TaskId;
  /** Space of this rank that the payload leaves or enters. */
  readonly space: SpaceId;
  /** The other rank, and its number for the message. */
  readonly peer: number;
  readonly message: number;
  readonly way: NetworkWay;
  readonly bytes: number;
  readonly start: number;
  readonly end: number;
}

/** Does nothing at every call; observers override the calls they want. Times are nanoseconds of the runtime's clock. */
export class EngineObserver implements StageWatcher {
  /** Whether the observer needs `entered` and `waits`. If not, a task that never waits costs nothing for them. */
  readonly watchesStages: boolean = false;

  // --- Passes and the window ----------------------------------------------------------------------------------------

  /** A pass begins. */
  passBegins(_now: number): void {}
  /** A pass is complete. */
  passEnds(_now: number): void {}
  /** Commands were published to the queues. */
  published(_now: number): void {}
  /** Live tasks have moved to other rows; the window has `rows` rows. */
  windowResized(_rows: number): void {}
  /** The program begins or stops waiting for room in the window. */
  throttled(_begins: boolean): void {}
  /** Nothing has moved for a long time. */
  watchdog(): void {}

  // --- Tasks --------------------------------------------------------------------------------------------------------

  /** A task is inserted: its flows are not ordered yet. `flows` is scratch memory of the caller. */
  inserted(
    _id: TaskId,
    _row: number,
    _cls: TaskClassRow,
    _run: RunState,
    _flows: Column<Int32Array, DatumId>,
    _after: readonly TaskId[] | undefined,
  ): void {}
  /** Task `successor` follows a live task by an explicit dependency. Other dependencies follow from the data. */
  dependency(_successor: TaskId, _predecessor: TaskId): void {}
  /** A task enters a stage, or waits in it for a reason. */
  entered(_row: number, _stage: number): void {}
  waits(_row: number, _reason: number): void {}
  /** The command of a task was given to a queue. */
  issued(_row: number): void {}
  /** The JavaScript body of a task, or the transfer of a movement, begins or has ended. */
  bodyStarted(_row: number): void {}
  bodyEnded(_row: number): void {}
  /** A task ended or failed; it has passed its last stage. */
  retired(_row: number, _status: number): void {}
  /** A task will not run: its run failed or was cancelled, or the task failed before it was issued. */
  dropped(_row: number): void {}
  /** Many tasks may retire between this call and `retirementsEnd`. Nothing else happens in between. */
  retirementsBegin(): void {}
  retirementsEnd(): void {}

  // --- Data and memory ----------------------------------------------------------------------------------------------

  /** Row `d` of the directory receives a new datum, or becomes free. */
  datumAdded(_d: DatumId, _bytes: number): void {}
  datumRemoved(_d: DatumId): void {}
  /** Transfer `t` ended with a status: record `seq` of a queue. */
  transferDone(_t: number, _queue: QueueId, _seq: number, _status: number): void {}
  /** An eviction removed the copy of datum `d` from space `s`; `spilled`: it was first written back. */
  evicted(_s: SpaceId, _d: DatumId): void {}
  spilled(_s: SpaceId, _d: DatumId): void {}

  // --- Runs ---------------------------------------------------------------------------------------------------------

  // A play of a plan is a run of its own: it opens, begins, may fail, ends and closes.

  runOpened(_run: RunState): void {}
  runFailed(_run: RunState, _error: HeadraceError): void {}
  runClosed(_run: RunState): void {}
  /** The program function of a run begins, or inserts no more tasks. */
  runBegan(_run: RunState): void {}
  insertionEnded(_run: RunState): void {}
  /** The engine makes the report of a run next. */
  runEnded(_run: RunState): void {}
  /** Iterations of a play are over. Only while times are recorded. */
  played(_part: PlayedPart): void {}

  // --- Other ranks --------------------------------------------------------------------------------------------------

  sent(_payload: Payload): void {}
  received(_payload: Payload): void {}
  /** One measurement of rank `peer`'s clock: at `time` it was ahead by `offset`, give or take `error`. */
  clock(_peer: number, _time: number, _offset: number, _error: number): void {}
}

type Call = Exclude<keyof EngineObserver, 'constructor' | 'watchesStages'>;

/** Several observers as one. Each receives every call, in the order in which they were added. */
export function observers(all: readonly EngineObserver[]): EngineObserver {
  const one = new EngineObserver();
  const calls = Object.getOwnPropertyNames(EngineObserver.prototype) as (Call | 'constructor')[];
  for (const call of calls) {
    if (call === 'constructor') continue;
    Object.defineProperty(one, call, {
      value: (...values: unknown[]): void => {
        for (const each of all) (each[call] as (...v: unknown[]) => void)(...values);
      },
    });
  }
  return one;
}
