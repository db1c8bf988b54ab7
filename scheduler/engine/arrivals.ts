// Receives that were commanded before their version came. When a task may wait for one in a queue.
//
// A lane completes a receive without the engine (scheduler/ranks/rank-lanes.ts), so a task that reads the version can
// be issued before it comes, and its queue waits. But whatever is issued behind that task waits, too, and whoever needs its
// memory. So the rule:
//
//   The event of a receive may be waited for only if every task that was inserted before the receive is issued or over.
//
// Until then the receive is *closed*: the tasks that follow it wait in the engine, as they wait for any task that is not
// issued, and the end of the receive releases them. A receive for a `read` stays closed: it belongs to no run, so its failure
// could not cancel the tasks behind it.
//
// Why no ranks wait for each other in a circle. All ranks insert in one program order. Let t be the first task of that order
// that never ends, over all ranks. All tasks before it end. (1) If t is issued, it waits behind commands of its queue, for
// events of its predecessors, which end, or both. Follow the commands behind which it waits, and those whose events
// these wait for: each was issued before t. If one of them waits for the arrival of a receive r, then r was open when that
// command was issued, so every task before r was issued by then, and t was not: r comes before t, so it ends. So all of them
// end, as in one process. (2) If t is not issued, it waits for memory, a lane, or a slot. The holders were issued before; by
// the same argument each of them ends, except receives that are closed and come after t. These hold at most what
// rank-lanes.ts and stages/comm-in.ts grant ahead, which leaves room and a lane for t. A receive that waits for a lane has its memory, and t, if it
// is a receive that waits for memory, has not the last lane. (3) If t is a receive, its send comes before it, and has
// announced a long version as soon as it is issued and the writer is over.
//
// The send of a long version ends when its last receiver has the bytes. That receiver may come after t, and if it is pulled, it
// asks when other inputs of its task are there, which may depend on t. But no queue waits for the end of such a send: later
// writers of the copy wait in the engine, and they come after all its receivers. What it holds on the host is the only copy of
// a datum on this rank, whose memory does not return with the send either; on a device the network's credits leave room for
// the largest task. So it counts as issued when the version is announced to all ranks that get it from here; until then it may
// wait for room in its lane. What passes a version on waits for its receive
// only, which comes before it.
//
// A pulled receive is commanded when its version has been announced and it has its memory (scheduler/ranks/pull-admission.ts).
// Then all that it waits for has happened or was issued before it, so it ends by (1), also when it comes after t and has the
// last lane. The group that t waits for is in a line behind groups whose tasks lack nothing else: they end, too.
//
// Invariant: no command names the event of a closed receive.
import { Fifo } from '../../devices/fifo.js';
import { guards } from '../../devices/guards.js';
import { HOST, type TaskId } from '../../devices/handles.js';
import { Execution, isCommand, TaskStage } from '../../stages/task-table.js';
import { INTERNAL_RUN } from './run-state.js';
import type { EngineState } from './state.js';

export class Arrivals {
  private readonly state: EngineState;
  private readonly release: (row: number) => void;
  /** Closed receives, in program order. */
  private readonly closed: TaskId[] = [];
  /** Receives that stay closed. */
  private readonly ofReads: Set<TaskId> = new Set();
  /** Every task before it is issued or over. */
  private issuedTo: TaskId;
  /** Tasks with JavaScript bodies, in program order; those before the first that is not over are left out. */
  private readonly bodies: Fifo<TaskId> = new Fifo();

  /** `release`: the successors of the issued task in a row may follow its event. */
  constructor(state: EngineState, release: (row: number) => void) {
    this.state = state;
    this.release = release;
    this.issuedTo = state.tasks.head;
  }

  /** The receive in `row` is issued. */
  commanded(row: number): void {
    const { tasks } = this.state;
    const id = tasks.idOf(row);
    if (tasks.run[row] === INTERNAL_RUN) {
      for (const old of this.ofReads) if (!this.isClosed(old)) this.ofReads.delete(old);
      this.ofReads.add(id);
      return;
    }
    if (this.isReached(id)) {
      this.open(row);
      return;
    }
    let i = this.closed.length;
    while (i > 0 && ((this.closed[i - 1] - id) | 0) > 0) i--;
    this.closed.splice(i, 0, id);
  }

  /** Task `id` with a JavaScript body is inserted. */
  bodyInserted(id: TaskId): void {
    this.forgetBodies();
    this.bodies.push(id);
  }

  /** Whether a JavaScript body before task `id` is not over: it may insert tasks that other ranks wait for. */
  isBehindBody(id: TaskId): boolean {
    const { bodies } = this;
    this.forgetBodies();
    return bodies.length > 0 && ((bodies.peek() - id) | 0) < 0;
  }

  private forgetBodies(): void {
    const { bodies } = this;
    while (bodies.length > 0 && this.isOver(bodies.peek())) bodies.shift();
  }

  private isOver(id: TaskId): boolean {
    const { tasks } = this.state;
    const stage = tasks.stage[id & tasks.mask];
    return !tasks.contains(id) || stage === TaskStage.done || stage === TaskStage.free;
  }

  /** Whether every task before `id` is issued or over. */
  isReached(id: TaskId): boolean {
    if (!guards.arrivalsInOrder) return true;
    this.moveOn();
    return ((this.issuedTo - id) | 0) >= 0;
  }

  /** Closed receives into host memory, after task `id`, that are under way. */
  behind(id: TaskId): number {
    const { tasks } = this.state;
    const isBehind = (receive: TaskId): boolean =>
      ((receive - id) | 0) > 0 &&
      this.isClosed(receive) &&
      tasks.device[receive & tasks.mask] === HOST;
    let n = 0;
    for (const list of [this.closed, this.ofReads])
      for (const receive of list) if (isBehind(receive)) n++;
    return n;
  }

  /** Marks the lanes of closed receives, by queue: tasks wait in the engine for their end. */
  markLanes(wakes: Uint8Array): void {
    const { tasks } = this.state;
    for (const list of [this.closed, this.ofReads])
      for (const id of list) if (this.isClosed(id)) wakes[tasks.target[id & tasks.mask]] = 1;
  }

  /** Opens the receives that may be waited for now; true when there were any. */
  look(): boolean {
    const { closed } = this;
    if (closed.length === 0) return false;
    this.moveOn();
    const { tasks } = this.state;
    let opened = false;
    while (closed.length > 0 && ((this.issuedTo - closed[0]) | 0) >= 0) {
      const id = closed.shift() as TaskId;
      const row = id & tasks.mask;
      if (!tasks.contains(id) || tasks.execution[row] !== Execution.arrival) continue;
      this.open(row);
      opened = true;
    }
    return opened;
  }

  /** Whether a task of the list is under way. */
  private isClosed(id: TaskId): boolean {
    const { tasks } = this.state;
    const row = id & tasks.mask;
    const isArrival = tasks.contains(id) && tasks.execution[row] === Execution.arrival;
    return isArrival && tasks.stage[row] === TaskStage.exec;
  }

  private open(row: number): void {
    this.state.tasks.execution[row] = Execution.command;
    this.release(row);
  }

  private moveOn(): void {
    const { tasks } = this.state;
    if (((this.issuedTo - tasks.head) | 0) < 0) this.issuedTo = tasks.head;
    while (this.issuedTo !== tasks.next && this.isPast(this.issuedTo & tasks.mask))
      this.issuedTo = ((this.issuedTo + 1) | 0) as TaskId;
  }

  /**
   * A JavaScript body counts when it is over: it may wait for others. A send counts when it has announced its version to all
   * ranks, and a receive when it has asked for the bytes.
   */
  private isPast(row: number): boolean {
    const { tasks } = this.state;
    const how = tasks.execution[row];
    if (isCommand(how)) return true;
    // Some of its commands may be written, and others wait.
    const isWhole = tasks.waiting[row] === 0 || !guards.offerWhole;
    if (how === Execution.movement && isWhole) return true;
    const stage = tasks.stage[row];
    return stage === TaskStage.done || stage === TaskStage.free;
  }
}
