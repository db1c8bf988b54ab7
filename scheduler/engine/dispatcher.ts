// Ready tasks. They wait here in program order within a priority until a queue of their device has room.
//
// Each device has one set of ready tasks, script workers have one, and the JavaScript bodies of the engine's thread have one. The dispatcher assigns a ready task to a
// queue when it starts the task. If that queue is full, the task joins the line of the queue, because its data were
// written there. A queue that runs dry takes tasks from the lines of other queues.
// Invariant: a task in stage `ready` is in one ready set or in one line, unless it is being started.

import { Fifo } from '../../devices/fifo.js';
import { guards } from '../../devices/guards.js';
import { HOST, type QueueId, type SpaceId, type TaskId } from '../../devices/handles.js';
import { distinctBytes } from '../../devices/memory/distinct-bytes.js';
import { advance } from '../../stages/pipeline.js';
import { TaskStage } from '../../stages/task-table.js';
import { TaskTime } from '../../trace/format.js';
import type { Dependencies } from './dependencies.js';
import type { DeviceChoice } from './device-choice.js';
import type { MemoryPressure } from './memory-pressure.js';
import type { Place, QueueChoice } from './queue-choice.js';
import { ReadyQueue } from './ready-queue.js';
import type { EngineState } from './state.js';

/** The device of a task, and the tasks on each device. */
type TaskDevice = Pick<DeviceChoice, 'device' | 'load'>;
/** The queue of a task, and whether there is room for it. */
type TaskQueue = Pick<
  QueueChoice,
  | 'queue'
  | 'onlyQueue'
  | 'placeOf'
  | 'spaceOf'
  | 'depth'
  | 'lines'
  | 'waiting'
  | 'execQueues'
  | 'hasRoom'
  | 'hasSlot'
  | 'victimFor'
>;
/** Whether memory allows another task to start. */
type StartPermit = Pick<MemoryPressure, 'short' | 'mayStart'>;

/** Limit for JavaScript bodies of the engine's thread between stage alloc and their end. */
const MAX_SCRIPTS = 64;
/**
 * Limit for tasks of a GPU that wait for memory. More of them would not run sooner. They would wait in the order in
 * which they became ready, but the ready queue keeps program order.
 */
const MEMORY_LINE = 4;
/**
 * Limit for tasks that a dry queue takes from another queue's line. The followers of these tasks move with their
 * data.
 */
const STOLEN = 8;

export class Dispatcher {
  /** Ready tasks per place (queue-choice.ts); the last one holds those with a JavaScript body on the engine's thread. */
  readonly ready: readonly ReadyQueue[];
  /** Keeps tasks from starting while a section is waiting or under way (exclusive.ts). */
  gate: { holds(row: number): boolean; isBehind(id: TaskId): boolean } | undefined;
  /** The order of tasks that commute. */
  commuting: Pick<Dependencies, 'takePlace'> | undefined;
  /** Tasks that commute and have no place among the others yet. */
  readonly placeless: Set<TaskId> = new Set();
  /** The dropped task in a row has no predecessors left. */
  droppedReleased: (row: number) => void = () => {};
  private readonly state: EngineState;
  private readonly deviceChoice: TaskDevice;
  private readonly queueChoice: TaskQueue;
  private readonly pressure: StartPermit;
  private readonly scriptLane: number;
  private readonly released: Fifo = new Fifo(1024);
  private scripts = 0;
  private draining = false;

  constructor(
    state: EngineState,
    deviceChoice: TaskDevice,
    queueChoice: TaskQueue,
    pressure: StartPermit,
  ) {
    this.state = state;
    this.deviceChoice = deviceChoice;
    this.queueChoice = queueChoice;
    this.pressure = pressure;
    const lanes = queueChoice.execQueues.length + 1;
    this.scriptLane = lanes - 1;
    this.ready = Array.from(
      { length: lanes },
      () => new ReadyQueue(state.tasks.window, queueChoice.waiting),
    );
  }

  /** Live tasks have moved to other rows; the window has `rows` rows. */
  moveRows(rowNow: (row: number) => number, rows: number): void {
    this.released.replace(rowNow);
    for (const queue of this.ready) queue.resize(rows);
    for (const line of this.queueChoice.lines) line.resize(rows);
  }

  /** One predecessor, the task in row `by`, has released the task. */
  releaseOne(successor: number, by: number): void {
    const { tasks, x } = this.state;
    if (--tasks.pending[successor] === 0) {
      tasks.releasedBy[successor] = tasks.idOf(by);
      if (x.tracing) tasks.stamp(successor, TaskTime.ready, x.now);
      this.released.push(successor);
    }
  }

  /** The pending task in `row` has no predecessors left. */
  release(row: number): void {
    if (this.gate?.holds(row) === true) return;
    const { deviceChoice } = this;
    const { tasks, x, spaces } = this.state;
    if (tasks.stage[row] !== TaskStage.pending) {
      this.releaseDropped(row);
      return;
    }
    const cls = x.classes[tasks.classOf[row]];
    if (cls.network !== undefined) {
      this.releaseMovement(row);
      return;
    }
    if (cls.commutes !== undefined && this.waitsForTurn(row, cls.commutes)) return;
    let s: SpaceId = HOST;
    if (spaces.length > 1) {
      s = deviceChoice.device(row, cls, this.bytesOf(row));
      tasks.device[row] = s;
    } else tasks.device[row] = HOST;
    deviceChoice.load[s]++;
    tasks.stage[row] = TaskStage.ready;
    const isBody = s === 0 && cls.kernels[0] < 0;
    const lane = isBody ? this.scriptLane : this.queueChoice.placeOf(row, cls);
    const queue = this.ready[lane];
    if (queue.length === 0 && this.hasSlot(lane)) this.start(row, lane);
    else queue.push(tasks.idOf(row), tasks.priority[row]);
  }

  /** Whether the task in `row` follows others that commute. It has its place among them from now on. */
  private waitsForTurn(row: number, commutes: Uint8Array): boolean {
    const { tasks } = this.state;
    const id = tasks.idOf(row);
    if (!this.placeless.delete(id) || !guards.commuteInTurn) return false;
    const first = tasks.flowStart[row];
    for (let i = 0; i < commutes.length; i++)
      if (commutes[i] === 1) this.commuting?.takePlace(id, row, tasks.flowDatum[first + i]);
    return tasks.pending[row] > 0;
  }

  private releaseDropped(row: number): void {
    if (this.placeless.size > 0) this.placeless.delete(this.state.tasks.idOf(row));
    if (this.state.tasks.stage[row] === TaskStage.dropped) this.droppedReleased(row);
  }

  /**
   * A send or receive starts when its datum is there. It needs no room in a queue. Until then it counts on the host.
   */
  private releaseMovement(row: number): void {
    const { tasks, remote } = this.state;
    tasks.device[row] = HOST;
    this.deviceChoice.load[0]++;
    tasks.stage[row] = TaskStage.ready;
    remote?.tasks.released(row);
  }

  /** Bytes a task touches, each datum once. */
  bytesOf(row: number): number {
    const { tasks, directory, x } = this.state;
    const first = tasks.flowStart[row];
    const end = first + x.classes[tasks.classOf[row]].modes.length;
    return distinctBytes(directory, tasks.flowDatum, first, end);
  }

  private hasSlot(lane: number): boolean {
    if (lane === this.scriptLane) return this.scripts < MAX_SCRIPTS;
    return this.queueChoice.hasSlot(lane) && this.mayUseMemory(this.queueChoice.spaceOf(lane));
  }

  /**
   * Whether a task that may need memory of space `s` may start. The host accepts every task, because tasks that wait
   * there may wait for memory that a ready task will give back.
   */
  private mayUseMemory(s: SpaceId): boolean {
    const { pressure } = this;
    const { spaces } = this.state;
    if (s === 0) return true;
    if (spaces[s].waiters.length >= MEMORY_LINE) return false;
    return pressure.short[s] === 0 || pressure.mayStart(s);
  }

  /** Starts a ready task, for which its lane has a slot. If its queue is full, the task joins the queue's line. */
  private start(row: number, lane: number): void {
    if (lane === this.scriptLane) {
      this.scripts++;
      advance(this.state.x, row);
      return;
    }
    const { queueChoice } = this;
    const only = queueChoice.onlyQueue[lane];
    if (only >= 0) {
      this.startOn(row, only);
      return;
    }
    const { tasks, x } = this.state;
    const q = queueChoice.queue(row, x.classes[tasks.classOf[row]], lane);
    if (queueChoice.hasRoom(q)) this.startOn(row, q);
    else queueChoice.lines[q].push(tasks.idOf(row), tasks.priority[row]);
  }

  private startOn(row: number, queue: QueueId): void {
    const { tasks, x } = this.state;
    tasks.target[row] = queue;
    advance(x, row);
  }

  /** Releases the tasks that have no predecessors left. */
  drainReleased(): void {
    if (this.draining) return;
    this.draining = true;
    while (this.released.length > 0) this.release(this.released.shift());
    this.draining = false;
  }

  /** Starts ready tasks while their queues have room. */
  startReady(): void {
    const { tasks } = this.state;
    if (this.queueChoice.waiting.count === 0) return;
    for (let lane = 0; lane < this.ready.length; lane++) {
      const scripts = lane === this.scriptLane;
      if (!scripts) this.serveLines(lane);
      const queue = this.ready[lane];
      while (queue.length > 0 && this.hasSlot(lane)) {
        const id = queue.pop();
        const row = id & tasks.mask;
        if (!tasks.contains(id) || tasks.stage[row] !== TaskStage.ready) continue;
        this.start(row, lane);
        if (this.released.length > 0) this.drainReleased();
      }
      if (!scripts) this.steal(lane);
    }
  }

  /** Starts tasks from the lines of the queues of a place while the queues have room. */
  private serveLines(place: Place): void {
    const { queueChoice } = this;
    const s = queueChoice.spaceOf(place);
    for (const q of queueChoice.execQueues[place]) {
      const line = queueChoice.lines[q];
      while (line.length > 0 && queueChoice.hasRoom(q) && this.mayUseMemory(s)) {
        this.startFrom(q, q);
      }
    }
  }

  /** A queue that has run dry takes tasks from the longest line of its place. */
  private steal(place: Place): void {
    const { queueChoice, pressure } = this;
    const { submission } = this.state;
    const s = queueChoice.spaceOf(place);
    const queues = queueChoice.execQueues[place];
    if (queues.length <= 1 || pressure.short[s] !== 0) return;
    for (const q of queues) {
      const depth = queueChoice.depth[q];
      if (submission.outstanding[q] > depth >> 6) continue;
      const most = Math.max(1, Math.min(STOLEN, depth >> 2));
      for (
        let victim = queueChoice.victimFor(q);
        victim >= 0 && submission.outstanding[q] < most && this.mayUseMemory(s);
        victim = queueChoice.victimFor(q)
      ) {
        this.startFrom(victim, q);
      }
    }
  }

  private startFrom(line: QueueId, queue: QueueId): void {
    const { queueChoice } = this;
    const { tasks } = this.state;
    const id = queueChoice.lines[line].pop();
    const row = id & tasks.mask;
    if (!tasks.contains(id) || tasks.stage[row] !== TaskStage.ready) return;
    this.startOn(row, queue);
    if (this.released.length > 0) this.drainReleased();
  }

  /** Allows that many more asynchronous bodies, which await tasks. The awaited tasks need slots of their own. */
  parentWaits(more: number): void {
    this.scripts -= more;
  }

  /** A JavaScript body runs that, as far as known, does not await tasks. */
  get hasScripts(): boolean {
    return this.scripts > 0;
  }

  /** The limit of JavaScript bodies is reached, and others are ready. */
  get scriptsAreFull(): boolean {
    return this.scripts >= MAX_SCRIPTS && this.ready[this.scriptLane].length > 0;
  }

  /** A started task is over with `status`: one more JavaScript body or movement may start. */
  leaveLane(row: number, status: number): void {
    const { tasks, x, remote } = this.state;
    const cls = x.classes[tasks.classOf[row]];
    if (cls.kernels[tasks.device[row]] >= 0) return;
    if (cls.network !== undefined) remote?.tasks.ended(row, status);
    else this.scripts--;
  }
}
