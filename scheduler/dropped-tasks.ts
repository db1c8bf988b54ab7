// Tasks that will not run: their run was cancelled or failed, or they failed before they were issued. Such a task hands its
// place in the order on. Whoever is ordered after it counts on everything that it had to follow itself: a later writer
// of a datum knows of the dropped writer only, not of the readers and writers before that one.
//
// Invariant: for every datum, every pair of tasks with at least one writer is ordered by an edge or by an event, also when
// the tasks between the two are dropped; and so is every task after those that it follows by `after`, directly or not.
//
// - A dropped task holds no data, memory or pins, and its run does not wait for it.
// - It stays in the window, in stage `dropped`, until its predecessors have released it: they were issued, have ended, or
//   were dropped and have gone the same way. Tasks that are inserted meanwhile are ordered after it as after any other.
// - Then its outputs are poisoned: not before, because tasks inserted before it may read the older value until then.
//   Its successors are released, with the events of what was issued and has not happened.
// - Until those events have happened it is `outlived`: a task inserted `after` it takes the events over. Of its data the
//   directory knows them anyway.
import { NO_QUEUE, Status } from '../devices/backend.js';
import { guards } from '../devices/guards.js';
import { poisonOutputs } from '../stages/poison.js';
import { AccessMode, TaskStage } from '../stages/task-table.js';
import { type Engine, INTERNAL_RUN } from './engine.js';

export class DroppedTasks {
  /** Ids of tasks in stage `outlived`. */
  private readonly outlived: number[] = [];
  private readonly engine: Engine;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /** The task in `row`, which was not issued, will not run. It holds nothing any more. */
  drop(row: number): void {
    const { tasks } = this.engine;
    tasks.stage[row] = TaskStage.dropped;
    tasks.waiting[row] = 0;
    // The slot may be that of another run before this task is done.
    tasks.run[row] = INTERNAL_RUN;
    if (tasks.pending[row] <= 0 || !guards.dropKeepsOrder) this.released(row);
  }

  /** Nothing keeps the dropped task in `row` back any more: its successors may go. */
  released(row: number): void {
    const { tasks, x, dependencies, starter } = this.engine;
    // Whoever released it may have left the time in the row.
    tasks.stamped[row] = 0;
    poisonOutputs(x, row, Status.cancelled);
    if (guards.dropKeepsOrder) this.collectEvents(row);
    const { edges } = dependencies;
    for (let n = tasks.successors[row]; n >= 0; ) {
      const successor = edges.value[n] >> 1;
      this.handEvents(row, successor);
      starter.releaseOne(successor, row);
      n = edges.free(n);
    }
    tasks.successors[row] = -1;
    tasks.stage[row] = TaskStage.outlived;
    if (!this.isOver(row)) this.outlived.push(tasks.idOf(row));
  }

  /** Task `successor`, being inserted or dropped itself, follows what the dropped task in `row` had to follow. */
  handEvents(row: number, successor: number): void {
    const { tasks, x } = this.engine;
    const nodes = x.eventNodes;
    for (let n = tasks.controlEvents[row]; n >= 0; n = nodes.next[n])
      this.follow(successor, nodes.value[n], nodes.extra[n]);
  }

  /** Gives back the rows of dropped tasks whose predecessors are all over. Once a pass. */
  look(): void {
    const { outlived } = this;
    const { tasks } = this.engine;
    for (let i = outlived.length - 1; i >= 0; i--) {
      if (!this.isOver(outlived[i] & tasks.mask)) continue;
      outlived[i] = outlived[outlived.length - 1];
      outlived.pop();
    }
  }

  /**
   * Nothing is under way, and nothing can be any more: what dropped tasks wait for will not come. Releases all there are;
   * false when there is none.
   */
  giveUp(): boolean {
    const { tasks } = this.engine;
    let found = false;
    for (let id = tasks.head; id !== tasks.next; id = (id + 1) | 0) {
      const row = id & tasks.mask;
      if (tasks.stage[row] !== TaskStage.dropped) continue;
      this.released(row);
      found = true;
    }
    return found;
  }

  /** The task is done when no event of its predecessors is still to come. */
  private isOver(row: number): boolean {
    const { tasks, x, submission } = this.engine;
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

  /** The events that its data ask for, as if it were issued now on any device. */
  private collectEvents(row: number): void {
    const { tasks, x, directory: dir } = this.engine;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      const d = tasks.flowDatum[first + i];
      for (let s = 0; s < dir.spaces; s++) {
        const c = d * dir.spaces + s;
        this.follow(row, dir.writeQueue[c], dir.writeSeq[c]);
        if (modes[i] === AccessMode.read) continue;
        this.follow(row, dir.readerQueue[c], dir.readerSeq[c]);
        for (let n = dir.readersHead[c]; n >= 0; n = dir.readers.next[n])
          this.follow(row, dir.readers.value[n], dir.readers.extra[n]);
      }
    }
  }

  /** The task in `row` follows an event; of a queue the last one is enough. */
  private follow(row: number, queue: number, seq: number): void {
    const { tasks, x, submission } = this.engine;
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
