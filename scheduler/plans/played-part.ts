// The iterations of a play that are over, for observers.
import type { TaskId } from '../../devices/handles.js';
import type { PlannedProgram } from './planned-program.js';

/** Some iterations of a play, one after the other. Records are counted from the first of these iterations on. */
export interface PlayedPart {
  readonly program: PlannedProgram;
  /** Tasks of the same iteration that must be over before a task, by number of insertion, besides those of its data. */
  readonly after: ReadonlyMap<number, readonly number[]>;
  /** The last task that was inserted before the play. */
  readonly before: TaskId;
  /** Number of the first of the iterations in the play. */
  readonly iteration: number;
  /** Values of the open parameters: those of all slots, iteration by iteration. */
  readonly parameters: Float64Array;
  /** Nanoseconds on the runtime's clock. */
  readonly began: number;
  readonly ended: number;
  /** Times per list, as in `NativePlay.recordTimes`. */
  readonly times: readonly Float64Array[];
  /** Number of records that succeeded and status of the one behind them, per list. */
  readonly succeeded: readonly number[];
  readonly failed: readonly number[];
  /** Status of a record that has times. */
  readonly status: (list: number, record: number) => number;
}
