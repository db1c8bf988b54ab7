// Control flows, where a rank inserts its own tasks only. Both of their ends are tasks of one rank: another rank does not see the
// task that it would have to signal for.
//
// A task that others follow leaves its handle, with the number of these others. Each of them takes it before it is inserted.
// Invariant: a handle is kept from the insertion of its task to that of the last one that follows it, so the memory is in proportion to
// the control flows between inserted tasks and tasks to come.

import type { TaskHandle } from '../../devices/handles.js';
import type { ControlEnd, Controls, Indices } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { eachControl } from './graph-task.js';
import type { LocalChecks } from './local-checks.js';
import {
  againstOrder,
  controlElsewhere,
  nameOf,
  unfollowed,
  unsentInput,
} from './local-mistakes.js';
import { positionOf } from './local-tasks.js';
import { keyOf, type TaskKey } from './task-key.js';

/** A task that others follow. */
interface Followed {
  readonly handle: TaskHandle;
  readonly indices: Indices;
  /** Those that have not taken the handle. */
  left: number;
}

/** @internal */
export class LocalControls {
  private readonly rank: number;
  private readonly checks: LocalChecks | undefined;
  private readonly classes: readonly GraphClass[];
  /** By class and control flow. */
  private readonly followed: readonly (readonly Map<TaskKey, Followed>[])[];

  constructor(classes: readonly GraphClass[], rank: number, checks: LocalChecks | undefined) {
    this.classes = classes;
    this.rank = rank;
    this.checks = checks;
    this.followed = classes.map(({ controlNames }) => controlNames.map(() => new Map()));
  }

  /**
   * The tasks that the task at `position` follows.
   * @throws HeadraceError `ERR_AFTER_ELSEWHERE`, `ERR_GRAPH_EDGE`, `ERR_GRAPH_ORDER`
   */
  before(cls: GraphClass, indices: Indices, position: number): TaskHandle[] {
    const after: TaskHandle[] = [];
    for (let c = 0; c < cls.controlFrom.length; c++) {
      const from: Controls = cls.controlFrom[c]?.(indices);
      eachControl(from, (end) => {
        this.checkRank(cls, indices, end);
        this.checks?.follows(cls, indices, c, end);
        after.push(this.take(cls, indices, position, c, end));
      });
    }
    return after;
  }

  private take(
    cls: GraphClass,
    indices: Indices,
    position: number,
    control: number,
    end: ControlEnd,
  ): TaskHandle {
    const sender = end.cls as GraphClass;
    const known = this.followed[sender.number][end.control];
    const key = keyOf(sender.indexNames, end.indices);
    const one = known.get(key);
    if (one === undefined) {
      const name = nameOf(cls, indices);
      const other = positionOf(sender, end.indices);
      if (other >= position) throw againstOrder(name, position, end, other);
      throw unsentInput(name, cls.controlNames[control], end);
    }
    if (--one.left === 0) known.delete(key);
    return one.handle;
  }

  /** A task was inserted. @throws HeadraceError `ERR_AFTER_ELSEWHERE`, `ERR_GRAPH_RANGE`, `ERR_GRAPH_EDGE` */
  inserted(cls: GraphClass, indices: Indices, handle: TaskHandle): void {
    for (let c = 0; c < cls.controlTo.length; c++) {
      let left = 0;
      eachControl(cls.controlTo[c]?.(indices), (end) => {
        this.checkRank(cls, indices, end);
        this.checks?.leads(cls, indices, c, end);
        left++;
      });
      if (left === 0) continue;
      const key = keyOf(cls.indexNames, indices);
      this.followed[cls.number][c].set(key, { handle, indices, left });
    }
  }

  /** All tasks were inserted. @throws HeadraceError `ERR_GRAPH_EDGE` for a control flow that no task expects */
  ended(): void {
    for (const cls of this.classes)
      for (const [c, known] of this.followed[cls.number].entries())
        for (const { indices } of known.values())
          throw unfollowed(nameOf(cls, indices), cls.controlNames[c]);
  }

  private checkRank(cls: GraphClass, indices: Indices, end: ControlEnd): void {
    const rank = (end.cls as GraphClass).rankOf(end.indices);
    if (rank !== this.rank) throw controlElsewhere(nameOf(cls, indices), this.rank, end, rank);
  }
}
