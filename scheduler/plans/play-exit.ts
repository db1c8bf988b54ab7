// What a play leaves: the values of the data that it writes.
//
// A play that fails leaves them as a failed run does: those whose last writer of the last iteration has run keep their value;
// the others are poisoned (scheduler/failure/poison.ts).
import { Status } from '../../devices/backend.js';
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, type SpaceId, type TaskId } from '../../devices/handles.js';
import { CopyEvent } from '../../devices/memory/coherency.js';
import { Poison } from '../../devices/memory/directory.js';
import { writeHere } from '../../stages/exec.js';
import type { EngineState } from '../engine/state.js';
import { markUnwritten } from '../failure/poison.js';
import {
  type PlannedExit,
  type PlannedProgram,
  type PlannedResult,
  recordsIn,
} from './planned-program.js';
import { type Failure, taintedData } from './taint.js';

/** A command that has failed. The insertion of a copy is negative. */
export interface PlayFailure extends Failure {
  readonly list: number;
  readonly status: number;
}

export class PlayExit {
  private readonly state: EngineState;
  private readonly program: PlannedProgram;
  private readonly before: TaskId;
  private readonly has: (d: DatumId) => boolean;
  private readonly times: () => number;
  /** The number of records that ended well per list, over all parts, and the status of the next one. */
  private readonly succeeded: Float64Array;
  private readonly status: Int32Array;

  /**
   * `before`: the last task inserted before the play; `has`: whether the row of a datum is still its own; `times`: its iterations, of
   * which more may come.
   */
  constructor(
    state: EngineState,
    program: PlannedProgram,
    before: TaskId,
    has: (d: DatumId) => boolean,
    times: () => number,
  ) {
    this.state = state;
    this.program = program;
    this.before = before;
    this.has = has;
    this.times = times;
    this.succeeded = new Float64Array(program.queues.length);
    this.status = new Int32Array(program.queues.length);
  }

  /** A part is over, after `iterations` in the parts before it. `outcome`: see NativeCore.playOutcome. */
  partEnded(iterations: number, outcome: readonly number[]): void {
    this.program.queues.forEach((list, i) => {
      this.succeeded[i] = iterations * recordsIn(list) + outcome[2 * i];
      this.status[i] = outcome[2 * i + 1];
    });
  }

  /** All data that the plan writes have their values. */
  succeed(): void {
    for (const { datum, copies } of this.program.results) this.hasValue(datum, copies);
  }

  /** `hasEntered`: the data were where the plan needs them. */
  fail(hasEntered: boolean): void {
    const { state, program } = this;
    const failed = this.failures();
    const hasBegun = hasEntered && this.succeeded.some((n) => n > 0);
    // The copies behind a copy that has failed have carried anything.
    const trustsCopies = failed.every(({ insertion }) => insertion >= 0);
    const tainted = trustsCopies ? taintedData(program, failed, this.times()) : undefined;
    for (const result of program.results) {
      if (!this.has(result.datum)) continue;
      if (hasBegun || failed.length > 0) this.settle(result, tainted);
      else if (guards.poisonOutputs) {
        state.directory.written[result.datum] = 1;
        markUnwritten(state.directory, result.datum, this.before);
      }
    }
  }

  /** The datum has the value of its last writer in these copies; the first is the owner's. */
  private hasValue(d: DatumId, [first, ...others]: readonly PlannedExit[]): void {
    const { x, directory: dir, backend } = this.state;
    const { regions, queues } = this.program;
    const owner = regions[first.region].space;
    writeHere(x, d, owner);
    dir.setPoison(d, Poison.none);
    dir.poisonedBy[d] = this.before;
    dir.written[d] = 1;
    // The event is over. It says which queue wrote the datum, so that later tasks stay on that queue.
    const { queue } = queues[first.list];
    dir.setWriter(d * dir.spaces + owner, queue, backend.issued[queue]);
    for (const { region } of others) {
      dir.apply(d, regions[region].space, CopyEvent.fetch);
      dir.apply(d, regions[region].space, CopyEvent.arrived);
    }
  }

  /** Whether a command of the last iteration has run. */
  private hasRun({ list, record }: { readonly list: number; readonly record: number }): boolean {
    const length = recordsIn(this.program.queues[list]);
    return this.succeeded[list] > (this.times() - 1) * length + record;
  }

  /**
   * After a failure: the datum keeps its value where the last iteration has brought it, if its last writer has run on good
   * inputs; else it has none. `tainted`: the data computed from a failed task; undefined if that is not known.
   */
  private settle(result: PlannedResult, tainted: ReadonlySet<DatumId> | undefined): void {
    const { state } = this;
    const { directory: dir, spaces } = state;
    const isGood = tainted?.has(result.datum) === false && this.hasRun(result);
    const written = isGood ? result.copies.filter((copy) => this.hasRun(copy)) : [];
    if (written.length > 0) {
      this.hasValue(result.datum, written);
      return;
    }
    const d = result.datum;
    dir.written[d] = 1;
    if (!guards.poisonOutputs) return;
    const hasFailed = tainted?.has(d) !== false;
    dir.version[d] = (dir.version[d] + 1) | 0;
    for (let s = HOST; s < dir.spaces; s = (s + 1) as SpaceId) {
      if (((dir.validMask[d] >> s) & 1) === 0) continue;
      dir.apply(d, s, CopyEvent.fail);
      spaces[s].settle(d);
    }
    dir.setPoison(d, hasFailed ? Poison.writerFailed : Poison.writerCancelled);
    dir.poisonedBy[d] = this.before;
  }

  /** The failures of all queues, the first in program order first. The insertion of a copy is negative. */
  failures(): PlayFailure[] {
    const { program } = this;
    const found = program.queues.flatMap((planned, list) => {
      const status = this.status[list];
      if (status === Status.ok || status === Status.cancelled) return [];
      const length = recordsIn(planned);
      const at = this.succeeded[list];
      return [
        {
          iteration: Math.floor(at / length),
          insertion: planned.insertion[at % length],
          list,
          status,
        },
      ];
    });
    return found.sort((x, y) => x.iteration - y.iteration || x.insertion - y.insertion);
  }
}
