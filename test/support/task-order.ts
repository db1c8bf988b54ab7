// Plays the engine for dependency inference: inserts tasks, issues them, ends and drops them, and keeps a plain record
// of each beside the task table. Tests compare the edges with that record.

import type { DatumId } from '../../devices/handles.js';
import { Dependencies } from '../../scheduler/engine/dependencies.js';
import type { EngineObserver } from '../../scheduler/engine/observer.js';
import { AccessMode, Execution, TaskStage, TaskTable } from '../../stages/task-table.js';
import { datumId, queueId, taskId } from './handles.js';

/** One use of a datum by a task. */
export interface Use {
  readonly datum: DatumId;
  readonly mode: number;
  /** Tasks that commute on the datum in a row may run in any order, one at a time. */
  readonly commutes?: boolean;
}

/** The life of a task in plain words. Later tasks are ordered by events, not by edges, from `issued` on. */
export type Life = 'waits' | 'body' | 'dropped' | 'issued' | 'outlived' | 'done';

/** A task as the program inserted it. */
export interface Told {
  readonly id: number;
  readonly uses: readonly Use[];
  /** Indices of its control predecessors. */
  readonly after: readonly number[];
  life: Life;
}

/** An edge of the graph; both ends are indices of tasks. */
export interface Edge {
  readonly from: number;
  readonly to: number;
  readonly isControl: boolean;
}

/** Whether the order of two tasks matters: they share a datum that one of them writes. */
export function conflict(a: Told, b: Told): boolean {
  return a.uses.some((x) =>
    b.uses.some(
      (y) => x.datum === y.datum && (x.mode !== AccessMode.read || y.mode !== AccessMode.read),
    ),
  );
}

export class TaskOrder {
  readonly tasks: TaskTable;
  readonly dependencies: Dependencies;
  /** All tasks in program order. */
  readonly told: Told[] = [];
  /** Control predecessors whose events the task must follow, as pairs [successor, predecessor]. */
  readonly eventsNeeded: [number, number][] = [];
  /** Tasks that commute, in the order in which they took their places. */
  readonly placed: number[] = [];
  /** Who is told of control predecessors. */
  readonly watched: { observer: Pick<EngineObserver, 'dependency'> | undefined } = {
    observer: undefined,
  };
  private readonly start: number;

  constructor(window: number, data: number, start = 1) {
    this.start = start;
    this.tasks = new TaskTable(window);
    this.tasks.head = taskId(start);
    this.tasks.next = taskId(start);
    this.dependencies = new Dependencies(this.tasks, this.watched);
    for (let d = 0; d < data; d++) this.dependencies.addDatum(datumId(d));
  }

  /** Inserts a task. What `atOnce` says happens during the insertion, if nothing holds the task back. */
  insert(uses: readonly Use[], after: readonly number[] = [], atOnce: Life = 'waits'): number {
    const { tasks, dependencies } = this;
    if (!tasks.hasRoom(uses.length, 0)) this.extend(uses.length);
    const index = this.told.length;
    const id = tasks.take(uses.length, 0);
    const row = id & tasks.mask;
    tasks.stage[row] = TaskStage.pending;
    tasks.execution[row] = Execution.none;
    tasks.pending[row] = 1;
    this.told.push({ id, uses, after, life: 'waits' });
    for (const { datum, mode, commutes } of uses)
      dependencies.order(id, row, datum, mode, commutes);
    for (const p of after) {
      if (dependencies.control(taskId(this.told[p].id), id, row))
        this.eventsNeeded.push([index, p]);
    }
    if (--tasks.pending[row] === 0 && this.takesPlace(index)) this.live(index, atOnce);
    else if (atOnce === 'dropped') this.drop(index);
    for (const { datum, mode, commutes } of uses) {
      if (commutes === true) dependencies.commute(id, datum);
      else if (this.told[index].life !== 'issued') dependencies.register(id, datum, mode);
      else if (mode !== AccessMode.read) dependencies.forget(datum);
    }
    return index;
  }

  /** Nothing holds the task back. */
  isFree(index: number): boolean {
    return this.tasks.pending[this.rowOf(index)] === 0;
  }

  issue(index: number): void {
    this.enter(index, 'issued', TaskStage.exec, Execution.command);
    this.tasks.queue[this.rowOf(index)] = queueId(index % 5);
    this.releaseSuccessors(index);
  }

  /** A JavaScript body starts. Its successors are released at its end. */
  startBody(index: number): void {
    this.enter(index, 'body', TaskStage.exec, Execution.body);
  }

  end(index: number): void {
    const row = this.rowOf(index);
    this.enter(index, 'done', TaskStage.done, this.tasks.execution[row]);
    this.releaseSuccessors(index);
    this.tasks.retireHead();
  }

  drop(index: number): void {
    this.enter(index, 'dropped', TaskStage.dropped, Execution.none);
    if (this.isFree(index)) this.outlive(index);
  }

  /** Rows move to a table of another size. */
  extend(flows = 0): void {
    const before = this.tasks.mask;
    if (this.tasks.extend(flows, 0)) this.moved(before);
  }

  shrink(): void {
    const before = this.tasks.mask;
    if (this.tasks.isExtended && this.tasks.shrink()) this.moved(before);
  }

  /** All edges there are, read from the lists of the live tasks. */
  edges(): Edge[] {
    const { tasks, dependencies } = this;
    const { value, next } = dependencies.edges;
    const found: Edge[] = [];
    for (let id = tasks.head; id !== tasks.next; id = taskId((id + 1) | 0)) {
      for (let n = tasks.successors[id & tasks.mask]; n >= 0; n = next[n]) {
        const to = tasks.idOf(value[n] >> 1);
        found.push({
          from: this.indexOf(id),
          to: this.indexOf(to),
          isControl: (value[n] & 1) === 1,
        });
      }
    }
    return found;
  }

  /** Edges into a live task that were not released yet. */
  pending(index: number): number {
    return this.tasks.pending[this.rowOf(index)];
  }

  /** Indices of the tasks that have a given life, in program order. */
  those(...lives: readonly Life[]): number[] {
    return this.told.flatMap((task, i) => (lives.includes(task.life) ? [i] : []));
  }

  indexOf(id: number): number {
    return (id - this.start) | 0;
  }

  private live(index: number, how: Life): void {
    if (how === 'issued') this.issue(index);
    else if (how === 'body') this.startBody(index);
    else if (how === 'dropped') this.drop(index);
  }

  private rowOf(index: number): number {
    return this.told[index].id & this.tasks.mask;
  }

  private enter(index: number, life: Life, stage: number, execution: number): void {
    const row = this.rowOf(index);
    this.told[index].life = life;
    this.tasks.stage[row] = stage;
    this.tasks.execution[row] = execution;
  }

  private outlive(index: number): void {
    this.enter(index, 'outlived', TaskStage.outlived, Execution.none);
    this.releaseSuccessors(index);
  }

  private releaseSuccessors(index: number): void {
    const { tasks, dependencies } = this;
    const { edges } = dependencies;
    const row = this.rowOf(index);
    let n = tasks.successors[row];
    tasks.successors[row] = -1;
    for (; n >= 0; n = edges.free(n)) {
      const successor = edges.value[n] >> 1;
      const at = this.indexOf(tasks.idOf(successor));
      if (--tasks.pending[successor] > 0) continue;
      if (this.told[at].life === 'dropped') this.outlive(at);
      else this.takesPlace(at);
    }
  }

  /** A task that is ready but for others that commute takes its place among these; true if it is ready then. */
  private takesPlace(index: number): boolean {
    const { id, uses } = this.told[index];
    const row = this.rowOf(index);
    const shared = uses.filter(({ commutes }) => commutes === true);
    if (shared.length > 0 && !this.placed.includes(index)) {
      this.placed.push(index);
      for (const { datum } of shared) this.dependencies.takePlace(taskId(id), row, datum);
    }
    return this.tasks.pending[row] === 0;
  }

  private moved(oldMask: number): void {
    const { head, mask } = this.tasks;
    if (mask === oldMask) return;
    this.dependencies.moveRows((row) => (head + ((row - head) & oldMask)) & mask);
  }
}
