// The tasks of movements, as the engine runs them: each step of such a task goes to the part that moves its version,
// that is, to the sends, to the receives, or to the lanes.
//
// Invariant: a movement's task ends exactly once, and with it every pin and credit that the movement held.

import type { HeadraceError } from '../../devices/errors.js';
import { NO_QUEUE } from '../../devices/handles.js';
import { NetworkRole } from '../../stages/task-table.js';
import type { RemoteTasks } from '../engine/remote.js';
import type { RunState } from '../engine/run-state.js';
import type { RankData } from './data.js';
import type { RankHost } from './host.js';
import type { LaneMovements } from './lane-movements.js';
import type { RankLoss } from './loss.js';
import type { Movements } from './movements.js';
import type { RankPulls } from './pull-admission.js';
import type { Receives } from './receives.js';
import type { Refusals } from './refusals.js';
import type { Sends } from './sends.js';

/** The parts to which the steps go. */
interface TaskParts {
  readonly engine: RankHost;
  readonly movements: Movements;
  readonly data: Pick<RankData, 'closeSend'>;
  readonly sends: Sends;
  readonly receives: Receives;
  readonly lanes: LaneMovements;
  readonly refusals: Refusals;
  readonly loss: Pick<RankLoss, 'error'>;
  readonly pulls: Pick<RankPulls, 'waitLists'>;
}

export class MovementTasks implements RemoteTasks {
  private readonly engine: RankHost;
  private readonly movements: Movements;
  private readonly data: Pick<RankData, 'closeSend'>;
  private readonly sends: Sends;
  private readonly receives: Receives;
  private readonly lanes: LaneMovements;
  private readonly refusals: Refusals;
  private readonly loss: Pick<RankLoss, 'error'>;
  private readonly pulls: Pick<RankPulls, 'waitLists'>;

  constructor(parts: TaskParts) {
    this.engine = parts.engine;
    this.movements = parts.movements;
    this.data = parts.data;
    this.sends = parts.sends;
    this.receives = parts.receives;
    this.lanes = parts.lanes;
    this.refusals = parts.refusals;
    this.loss = parts.loss;
    this.pulls = parts.pulls;
  }

  /** A movement's task has no predecessors left; the engine counted it on the host. */
  released(row: number): void {
    const { engine } = this;
    const { tasks } = engine;
    const movement = this.movements.ofTask(tasks, row);
    movement.task = tasks.idOf(row);
    tasks.target[row] = NO_QUEUE;
    const refusal = this.loss.error ?? this.refusals.of(movement);
    if (refusal !== undefined) {
      engine.fail(row, refusal);
      return;
    }
    const run = engine.runs[movement.run] as RunState;
    if (run.error !== undefined) {
      // It failed between planning and insertion: no rank takes its offer, and no rank sends to its receive.
      engine.dropTask(row, run);
      return;
    }
    if (movement.role === NetworkRole.receive) this.receives.released(row, movement);
    else if (movement.role === NetworkRole.forward) this.sends.forward(row, movement);
    else this.sends.begin(row, movement);
  }

  /** The exec stage of the send of a version for a `read`: the writer is over. */
  start(row: number): number {
    return this.sends.command(row, this.movements.ofTask(this.engine.tasks, row));
  }

  commanded(row: number): void {
    this.lanes.commanded(row);
  }

  markLanes(wakes: Uint8Array): void {
    this.lanes.markLanes(wakes);
  }

  commandHeld(): boolean {
    return this.lanes.commandHeld();
  }

  waitLists(row: number): number {
    return (
      this.lanes.waitLists(row) +
      this.pulls.waitLists(this.movements.ofTask(this.engine.tasks, row))
    );
  }

  /** The task of a movement fails. Ranks that wait for its datum get a message; local readers find the datum poisoned. */
  failing(row: number, error: HeadraceError): void {
    const movement = this.movements.ofTask(this.engine.tasks, row);
    if (movement.role === NetworkRole.receive) this.receives.failing(row, movement, error);
    else this.sends.failing(movement, error);
  }

  failure(row: number, status: number): HeadraceError | undefined {
    return this.lanes.failure(row, status);
  }

  /** The task of a movement is over with `status`, or was dropped. */
  ended(row: number, status: number): void {
    const movement = this.movements.ofTask(this.engine.tasks, row);
    if (movement === undefined) return;
    this.lanes.ended(row, movement, status);
    this.data.closeSend(movement.d, movement.index);
    this.movements.remove(movement);
  }
}
