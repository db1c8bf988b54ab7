// Tasks that will not run: their run was cancelled or failed, or they failed before they were issued. Such a task
// passes its place in the order on. Its successors rely on the order after all its predecessors: a later writer of a
// datum knows only the dropped writer, not the readers and writers before it.
//
// Invariant: for every datum, every pair of tasks with at least one writer is ordered by an edge or by an event, also
// when the tasks between them are dropped. The same holds for every pair of tasks that `after` orders, directly or
// not.
//
// - A dropped task holds no data, memory or pins, and its run does not wait for it.
// - It stays in the window, in stage `dropped`, until its predecessors have released it: each was issued, has ended,
//   or was dropped and released in the same way. Tasks that are inserted meanwhile are ordered after it as after any
//   other task. Behind a play it waits for the end of the play as well: the play uses its data before it.
// - Then its outputs are poisoned. This is not done earlier, because tasks inserted before it may read the older
//   value until then. Its successors are released with the events of issued predecessors that have not happened.
// - Until those events have happened the task is `outlived`: a task inserted `after` it takes over its events. The
//   directory knows the events of its data.

import { Status } from '../../devices/backend.js';
import { guards } from '../../devices/guards.js';
import { HOST, NO_QUEUE, type QueueId, type TaskId } from '../../devices/handles.js';
import { AccessMode, TaskStage } from '../../stages/task-table.js';
import type { Dependencies } from '../engine/dependencies.js';
import type { Dispatcher } from '../engine/dispatcher.js';
import { INTERNAL_RUN } from '../engine/run-state.js';
import type { EngineState } from '../engine/state.js';
import { poisonOutputs } from './poison.js';

export class DroppedTasks {
  /** Ids of tasks in stage `outlived`. */
  private readonly outlived: number[] = [];
  private readonly state: EngineState;
  private readonly dependencies: Pick<Dependencies, 'edges'>;
  private readonly dispatcher: Pick<Dispatcher, 'releaseOne' | 'gate'>;

  constructor(
    state: EngineState,
    dependencies: Pick<Dependencies, 'edges'>,
    dispatcher: Pick<Dispatcher, 'releaseOne' | 'gate'>,
  ) {
    this.state = state;
    this.dependencies = dependencies;
    this.dispatcher = dispatcher;
  }

  /** The task in `row` was not issued and will not run. It holds no resources any more. */
  drop(row: number): void {
    const { tasks, observer } = this.state;
    observer?.dropped(row);
    tasks.stage[row] = TaskStage.dropped;
    tasks.waiting[row] = 0;
    // Another run may get the slot before this task is done.
    tasks.run[row] = INTERNAL_RUN;
    // The end of a play releases the tasks behind it, also those that were dropped meanwhile.
    const waits = this.dispatcher.gate?.isBehind(tasks.idOf(row)) === true && guards.planDropped;
    if ((tasks.pending[row] <= 0 && !waits) || !guards.dropKeepsOrder) this.released(row);
  }

  /** The dropped task in `row` has no predecessors left; its successors may be released. */
  released(row: number): void {
    const { dependencies, dispatcher } = this;
    const { tasks, x } = this.state;
    // The code that released the task may have left the time in its row.
    tasks.stamped[row] = 0;
    poisonOutputs(x, row, Status.cancelled);
    if (guards.dropKeepsOrder) this.collectEvents(row);
    const { edges } = dependencies;
    for (let n = tasks.successors[row]; n >= 0; ) {
      const successor = edges.value[n] >> 1;
      this.handEvents(row, successor);
      dispatcher.releaseOne(successor, row);
      n = edges.free(n);
    }
    tasks.successors[row] = -1;
    tasks.stage[row] = TaskStage.outlived;
    if (!this.isOver(row)) this.outlived.push(tasks.idOf(row));
  }

  /** Task `successor` is being inserted or dropped. It follows all predecessors of the dropped task in `row`. */
  handEvents(row: number, successor: number): void {
    const { tasks, x } = this.state;
    const nodes = x.eventNodes;
    for (let n = tasks.controlEvents[row]; n >= 0; n = nodes.next[n])
      this.follow(successor, nodes.value[n], nodes.extra[n]);
  }

  /** Gives back the rows of dropped tasks whose predecessors are all over. Once a pass. */
  look(): void {
    const { outlived } = this;
    const { tasks } = this.state;
    for (let i = outlived.length - 1; i >= 0; i--) {
      if (!this.isOver(outlived[i] & tasks.mask)) continue;
      outlived[i] = outlived[outlived.length - 1];
      outlived.pop();
    }
  }

  /**
   * No command is under way, and none can be issued: dropped tasks wait for events that will not come. Releases all
   * of them; returns false when there is none.
   */
  giveUp(): boolean {
    const { tasks } = this.state;
    let found = false;
    for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      const row = id & tasks.mask;
      if (tasks.stage[row] !== TaskStage.dropped) continue;
      this.released(row);
      found = true;
    }
    return found;
  }

  /** The task is done when all events of its predecessors have happened. */
  private isOver(row: number): boolean {
    const { tasks, x, submission } = this.state;
    const nodes = x.eventNodes;
    let kept = -1;
    for (let n = tasks.controlEvents[row]; n >= 0; n = nodes.free(n)) {
      const [queue, seq] = [nodes.value[n], nodes.extra[n]];
      if (!submission.happened(queue, seq)) kept = nodes.push(kept, queue, seq);
    }
    tasks.controlEvents[row] = kept;
    if (kept >= 0) return false;
    tasks.stage[row] = TaskStage.done;
    return true;
  }

  /** The events that its data require, as if the task were issued now on any device. */
  private collectEvents(row: number): void {
    const { tasks, x, directory: dir } = this.state;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      const d = tasks.flowDatum[first + i];
      for (let s = HOST; s < dir.spaces; s++) {
        const c = d * dir.spaces + s;
        this.follow(row, dir.writeQueue[c], dir.writeSeq[c]);
        if (modes[i] === AccessMode.read) continue;
        this.follow(row, dir.readerQueue[c], dir.readerSeq[c]);
        for (let n = dir.readersHead[c]; n >= 0; n = dir.readers.next[n])
          this.follow(row, dir.readers.value[n], dir.readers.extra[n]);
      }
    }
  }

  /** The task in `row` follows an event; one queue contributes only its last event. */
  private follow(row: number, queue: QueueId, seq: number): void {
    const { tasks, x, submission } = this.state;
    if (queue === NO_QUEUE || submission.happened(queue, seq)) return;
    const nodes = x.eventNodes;
    for (let n = tasks.controlEvents[row]; n >= 0; n = nodes.next[n]) {
      if (nodes.value[n] !== queue) continue;
      if (((seq - nodes.extra[n]) | 0) > 0) nodes.extra[n] = seq;
      return;
    }
    tasks.controlEvents[row] = nodes.push(tasks.controlEvents[row], queue, seq);
  }
}
