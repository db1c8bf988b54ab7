// Ready tasks: they wait here, in program order within a priority, until a queue of their device has room for them.
//
// A lane per device, and one for JavaScript bodies. A task that is ready is given to a queue when it starts; if that
// one is full it stands in the queue's line, because what it continues lies there. Queues that run dry take from the
// lines of others.
// Invariant: a task in stage `ready` is in its lane or in one line, unless it is being started.
import { Fifo } from '../devices/fifo.js';
import { roundedBytes } from '../devices/zone.js';
import { advance } from '../stages/pipeline.js';
import { TaskStage } from '../stages/task-table.js';
import { TaskTime } from '../trace/format.js';
import type { Engine } from './engine.js';
import { ReadyQueue } from './ready-queue.js';

/** JavaScript bodies between alloc and their end, at most. */
const MAX_SCRIPTS = 64;
/**
 * Tasks of a GPU that may wait for memory. More would not run any sooner, and would stand in the order in which they
 * became ready, where the ready queue has program order.
 */
const MEMORY_LINE = 4;
/** Tasks that a queue which ran dry takes from another's line, at most: what they write takes their followers along. */
const STOLEN = 8;

export class Starter {
  /** Ready tasks per space; the last one holds those with a JavaScript body. */
  readonly ready: readonly ReadyQueue[];
  private readonly engine: Engine;
  private readonly scriptLane: number;
  private readonly released: Fifo = new Fifo(1024);
  private scripts = 0;
  private draining = false;

  constructor(engine: Engine, window: number) {
    this.engine = engine;
    const lanes = engine.spaces.length + 1;
    this.scriptLane = lanes - 1;
    this.ready = Array.from({ length: lanes }, () => new ReadyQueue(window));
  }

  /** Live tasks have other rows now, of `rows` in all. */
  moveRows(rowNow: (row: number) => number, rows: number): void {
    this.released.replace(rowNow);
    for (const queue of this.ready) queue.resize(rows);
    for (const line of this.engine.placement.lines) line.resize(rows);
  }

  /** One predecessor less, the task in row `by`. */
  releaseOne(successor: number, by: number): void {
    const { tasks, x } = this.engine;
    if (--tasks.pending[successor] === 0) {
      tasks.releasedBy[successor] = tasks.idOf(by);
      if (x.tracing) tasks.stamp(successor, TaskTime.ready, x.now);
      this.released.push(successor);
    }
  }

  /** Nothing keeps the pending task in `row` back any more. */
  release(row: number): void {
    const { tasks, x, placement, spaces } = this.engine;
    if (tasks.stage[row] !== TaskStage.pending) {
      if (tasks.stage[row] === TaskStage.dropped) this.engine.dropped.released(row);
      return;
    }
    const cls = x.classes[tasks.classOf[row]];
    if (cls.network !== undefined) {
      this.releaseMovement(row);
      return;
    }
    let s = 0;
    if (spaces.length > 1) {
      s = placement.device(row, cls, this.bytesOf(row));
      tasks.device[row] = s;
    } else tasks.device[row] = 0;
    placement.load[s]++;
    tasks.stage[row] = TaskStage.ready;
    const lane = s === 0 && cls.kernels[0] < 0 ? this.scriptLane : s;
    const queue = this.ready[lane];
    if (queue.length === 0 && this.hasSlot(lane)) this.start(row, lane);
    else queue.push(tasks.idOf(row), tasks.priority[row]);
  }

  /** A send or receive starts when its datum is there, not when a queue has room; until then it counts on the host. */
  private releaseMovement(row: number): void {
    const { tasks, placement, ranks } = this.engine;
    tasks.device[row] = 0;
    placement.load[0]++;
    tasks.stage[row] = TaskStage.ready;
    ranks?.released(row);
  }

  /** Bytes a task touches, each datum once. */
  bytesOf(row: number): number {
    const { tasks, directory, x } = this.engine;
    const first = tasks.flowStart[row];
    const end = first + x.classes[tasks.classOf[row]].modes.length;
    let bytes = 0;
    for (let i = first; i < end; i++) {
      const d = tasks.flowDatum[i];
      let again = false;
      for (let j = first; j < i; j++) if (tasks.flowDatum[j] === d) again = true;
      if (!again) bytes += roundedBytes(directory.bytes[d]);
    }
    return bytes;
  }

  private hasSlot(lane: number): boolean {
    if (lane === this.scriptLane) return this.scripts < MAX_SCRIPTS;
    return this.engine.placement.hasSlot(lane) && this.mayUseMemory(lane);
  }

  /**
   * Whether a task that may need memory of space `s` may start. The host's line is open to all: who waits there may wait
   * for what a ready task will give back.
   */
  private mayUseMemory(s: number): boolean {
    const { spaces, shortage } = this.engine;
    if (s === 0) return true;
    if (spaces[s].waiters.length >= MEMORY_LINE) return false;
    return shortage.short[s] === 0 || shortage.mayStart(s);
  }

  /** Starts a ready task, or puts it in the line of the queue that should run it and is full. */
  private start(row: number, lane: number): void {
    if (lane === this.scriptLane) {
      this.scripts++;
      advance(this.engine.x, row);
      return;
    }
    const { tasks, placement, x } = this.engine;
    const q = placement.queue(row, x.classes[tasks.classOf[row]].modes);
    if (placement.hasRoom(q)) this.startOn(row, q);
    else placement.lines[q].push(tasks.idOf(row), tasks.priority[row]);
  }

  private startOn(row: number, queue: number): void {
    const { tasks, x } = this.engine;
    tasks.target[row] = queue;
    advance(x, row);
  }

  /** Releases what was found to be free of predecessors. */
  drainReleased(): void {
    if (this.draining) return;
    this.draining = true;
    while (this.released.length > 0) this.release(this.released.shift());
    this.draining = false;
  }

  /** Starts ready tasks while their queues have room. */
  startReady(): void {
    const { tasks } = this.engine;
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

  /** Starts tasks from the lines of the queues of space `s` while the queues have room. */
  private serveLines(s: number): void {
    const { placement } = this.engine;
    for (const q of placement.execQueues[s]) {
      const line = placement.lines[q];
      while (line.length > 0 && placement.hasRoom(q) && this.mayUseMemory(s)) {
        this.startFrom(q, q);
      }
    }
  }

  /** A queue that has run dry takes tasks from the longest line of its space: it has nothing better to wait for. */
  private steal(s: number): void {
    const { placement, submission, shortage } = this.engine;
    const queues = placement.execQueues[s];
    if (queues.length === 1 || shortage.short[s] !== 0) return;
    for (const q of queues) {
      const depth = placement.depth[q];
      if (submission.outstanding[q] > depth >> 6) continue;
      const most = Math.max(1, Math.min(STOLEN, depth >> 2));
      for (
        let victim = placement.victimFor(q);
        victim >= 0 && submission.outstanding[q] < most && this.mayUseMemory(s);
        victim = placement.victimFor(q)
      ) {
        this.startFrom(victim, q);
      }
    }
  }

  private startFrom(line: number, queue: number): void {
    const { tasks, placement } = this.engine;
    const id = placement.lines[line].pop();
    const row = id & tasks.mask;
    if (!tasks.contains(id) || tasks.stage[row] !== TaskStage.ready) return;
    this.startOn(row, queue);
    if (this.released.length > 0) this.drainReleased();
  }

  /** That many more asynchronous bodies may await tasks: these need slots of their own to start. */
  parentWaits(more: number): void {
    this.scripts -= more;
  }

  /** A JavaScript body is under way that does not wait for tasks, as far as is known. */
  get hasScripts(): boolean {
    return this.scripts > 0;
  }

  /** As many JavaScript bodies are under way as may be, and others are ready. */
  get scriptsAreFull(): boolean {
    return this.scripts >= MAX_SCRIPTS && this.ready[this.scriptLane].length > 0;
  }

  /** A task that was started is over: one more JavaScript body or movement may start. */
  leaveLane(row: number): void {
    const { tasks, x, ranks } = this.engine;
    const cls = x.classes[tasks.classOf[row]];
    if (cls.kernels[tasks.device[row]] >= 0) return;
    if (cls.network !== undefined) ranks?.ended(row);
    else this.scripts--;
  }
}
