// The engine: owns all scheduling state, takes insertions and completions in, gives commands out. It has no clock,
// no thread and no I/O of its own; all three are behind the backend port, so the same code runs on real threads
// and in virtual time.
//
// One pass (`pump`): take completions -> retire tasks, free pins -> look again at those that waited for what became
// free -> start ready tasks while their queues have room -> publish.
// Invariants (checked by validateState): a task is retired exactly once; a waiting task is on exactly one wake
// list; nothing is issued before everything it must follow was issued or is over.
import type { Backend } from '../devices/backend.js';
import { Status } from '../devices/backend.js';
import { type DatumInfo, Directory } from '../devices/directory.js';
import { HeadraceError } from '../devices/errors.js';
import { Fifo } from '../devices/fifo.js';
import { guards } from '../devices/guards.js';
import { MemorySpace, NO_TASK } from '../devices/memory-space.js';
import { Submission } from '../devices/submission.js';
import { Transfers } from '../devices/transfers.js';
import { roundedBytes } from '../devices/zone.js';
import { StageContext, type StageHooks } from '../stages/context.js';
import { releasePins } from '../stages/finalize.js';
import { advance, complete } from '../stages/pipeline.js';
import { cureOutputs, poisonOutputs } from '../stages/poison.js';
import { Outcome, WaitReason } from '../stages/stage.js';
import { type TaskClassRow, TaskStage, TaskTable } from '../stages/task-table.js';
import { AccessMode, TaskTime } from '../trace/format.js';
import { Dependencies } from './dependencies.js';
import { DepthControl } from './depth-control.js';
import type { EngineTracer } from './engine-tracer.js';
import { explainAll } from './explain.js';
import { computedFromFailure, describeFailure } from './failure.js';
import { IdleControl } from './idle.js';
import { memoryText } from './memory-report.js';
import { Placement } from './placement.js';
import type { Ranks } from './ranks.js';
import { ReadyQueue } from './ready-queue.js';
import { RunState } from './run-state.js';

export interface EngineOptions {
  /** Live tasks at most; a power of two. */
  readonly window: number;
  /** Commands queued ahead per executor, at most. */
  readonly runAhead: number;
  /** Poison freed blocks with 0xA5 and check invariants after each pass. */
  readonly checked: boolean;
}

/** Run slot of the runtime's own tasks (reads, releases); never cancelled. */
export const INTERNAL_RUN = 0;
const RUN_SLOTS = 64;
/** JavaScript bodies between alloc and their end, at most. */
const MAX_SCRIPTS = 64;
/**
 * Tasks of a GPU that may wait for memory. More would not run any sooner, and would stand in the order in which they
 * became ready, where the ready queue has program order.
 */
const MEMORY_LINE = 4;
/** Insertions between two passes: few while executors may have little to do, more when they are known to have enough. */
const INSERTS_PER_PASS = 32;
const INSERTS_PER_PASS_WHEN_BUSY = 128;
/** Tasks that a queue which ran dry takes from another's line, at most: what they write takes their followers along. */
const STOLEN = 8;
/** A JavaScript body of this row has begun: it cannot be dropped any more. */
const BODY_RUNNING = -2;
const NOT_ISSUED = -1;
const NO_RUN = -1;
/** A JavaScript body of this row is about to begin: its outputs count as written, but it can still be dropped. */
const BODY_QUEUED = -3;

export class Engine implements StageHooks {
  readonly backend: Backend;
  readonly tasks: TaskTable;
  readonly directory: Directory;
  readonly spaces: readonly MemorySpace[];
  readonly submission: Submission;
  readonly transfers: Transfers;
  readonly dependencies: Dependencies;
  readonly placement: Placement;
  readonly x: StageContext;
  readonly runs: (RunState | undefined)[] = new Array<RunState | undefined>(RUN_SLOTS);
  /** Ready tasks per space; the last one holds those with a JavaScript body. */
  readonly ready: readonly ReadyQueue[];
  readonly checked: boolean;
  tracer: EngineTracer | undefined;
  /** Set where the program runs on several ranks. */
  ranks: Ranks | undefined;
  /** Told when a task of the runtime's own failed. */
  onInternalFailure: ((row: number, error: HeadraceError) => void) | undefined;

  readonly depthControl: DepthControl;
  private readonly idle: IdleControl;
  private readonly released: Fifo = new Fifo(1024);
  private readonly bodies: Fifo = new Fifo();
  private readonly overRuns: RunState[] = [];
  private readonly isCopyQueue: Uint8Array;
  /** Failed records handled per queue. */
  private readonly failuresSeen: Int32Array;
  /** Issued tasks whose inputs, directly or not, come from a failed transfer: their results are garbage. */
  private readonly tainted: Set<number> = new Set();
  /** Data to forget once their transfers are over. */
  private readonly leaving: Fifo = new Fifo();
  private readonly scriptLane: number;
  private scripts = 0;
  private asyncBodies = 0;
  private insertsSincePass = 0;
  private passAfter = INSERTS_PER_PASS;
  /** No slot above this one has an open run. */
  private openRuns = 0;
  private pumping = false;
  private draining = false;
  private bodyDepth = 0;
  private progressed = 0;

  constructor(backend: Backend, options: EngineOptions) {
    this.backend = backend;
    this.checked = options.checked;
    this.failuresSeen = Int32Array.from(backend.failures);
    this.isCopyQueue = Uint8Array.from(backend.queues, (q) =>
      q.kind === 'worker' || q.kind === 'compute' ? 0 : 1,
    );
    const n = backend.spaces.length;
    this.tasks = new TaskTable(options.window);
    this.directory = new Directory(n);
    this.spaces = backend.spaces.map((s, i) => new MemorySpace(i, s.bytes, this.directory));
    this.submission = new Submission(backend);
    this.transfers = new Transfers(this.directory, this.spaces, this.submission);
    this.dependencies = new Dependencies(this.tasks);
    const capacity = Float64Array.from(this.spaces, (s) => s.zone.capacity);
    this.placement = new Placement(
      this.tasks,
      this.directory,
      this.submission,
      capacity,
      options.runAhead,
    );
    this.x = new StageContext(
      this.tasks,
      this.directory,
      this.spaces,
      this.submission,
      this.transfers,
      this,
    );
    this.scriptLane = n;
    this.ready = Array.from({ length: n + 1 }, () => new ReadyQueue(options.window));
    this.depthControl = new DepthControl(this.submission, this.placement, options.runAhead);
    this.idle = new IdleControl(this);
    this.runs[INTERNAL_RUN] = new RunState(INTERNAL_RUN);
    this.transfers.observer = {
      transferDone: (t, queue, seq, status) => this.transferDone(t, queue, seq, status),
    };
    if (options.checked) this.poisonFreedBlocks();
  }

  // --- Runs ---------------------------------------------------------------------------------------------------

  openRun(): RunState {
    for (let slot = 1; slot < RUN_SLOTS; slot++) {
      if (this.runs[slot] === undefined) {
        const run = new RunState(slot);
        this.runs[slot] = run;
        this.openRuns = Math.max(this.openRuns, slot);
        this.backend.setCancelled(slot, false);
        return run;
      }
    }
    throw new HeadraceError('ERR_TOO_MANY_RUNS', `more than ${RUN_SLOTS - 1} runs are open`, {
      limit: RUN_SLOTS - 1,
      remedy: 'await earlier runs first',
    });
  }

  /** No more insertions; `onOver` is called when the last task is retired. */
  seal(run: RunState): void {
    run.sealed = true;
    if (run.live === 0) this.runIsOver(run);
    this.reportOverRuns();
  }

  closeRun(run: RunState): void {
    this.backend.setCancelled(run.slot, false);
    this.runs[run.slot] = undefined;
    while (this.openRuns > 0 && this.runs[this.openRuns] === undefined) this.openRuns--;
  }

  // --- Data ---------------------------------------------------------------------------------------------------

  addDatum(bytes: number, info: DatumInfo): number {
    const d = this.directory.add(bytes, info);
    this.dependencies.addDatum(d);
    return d;
  }

  /** Frees all copies of a datum that no live task uses, as soon as no transfer uses them either. */
  forgetDatum(d: number): void {
    const { directory: dir } = this;
    for (let s = 0; s < dir.spaces; s++) {
      if (dir.pins[d * dir.spaces + s] > 0) {
        this.leaving.push(d);
        return;
      }
    }
    for (let s = 0; s < dir.spaces; s++) this.spaces[s].giveUp(d);
    dir.remove(d);
  }

  /** Blocks until some transfer is over; false when none is under way. */
  waitForTransfers(): boolean {
    if (this.transfers.live === 0) return false;
    if (!this.pump()) this.idle.block();
    return true;
  }

  /** Resolves when no task is live and no command is under way. */
  quiet(): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        this.pump();
        if (this.tasks.live === 0 && !this.idle.somethingIsUnderWay()) resolve();
        else setTimeout(look, 1);
      };
      look();
    });
  }

  // --- Insertion ----------------------------------------------------------------------------------------------

  /**
   * Inserts a task. `flows` holds datum rows, `params` numbers; both are copied. `device` is a space or
   * ANY_DEVICE. Returns the task's id. The caller has reserved the row (`reserveRow`).
   */
  insert(
    cls: TaskClassRow,
    run: RunState,
    flows: Int32Array,
    params: Float64Array,
    priority: number,
    device: number,
    after: readonly number[] | undefined,
  ): number {
    const { tasks, directory, dependencies } = this;
    const nFlows = cls.modes.length;
    const nParams = cls.paramNames.length;
    if (this.insertsSincePass === 0) {
      // The program may have done anything since the last pass, and may await something after this insertion, which
      // must not keep waiting what was inserted so far.
      this.x.now = this.backend.now();
      this.wake();
    }
    const id = tasks.take(nFlows, nParams);
    const row = id & tasks.mask;
    tasks.stage[row] = TaskStage.pending;
    tasks.classOf[row] = cls.id;
    tasks.run[row] = run.slot;
    tasks.priority[row] = priority;
    tasks.device[row] = device;
    tasks.hinted[row] = device >= 0 ? 1 : 0;
    tasks.queue[row] = NOT_ISSUED;
    tasks.waiting[row] = 0;
    tasks.releasedBy[row] = -1;
    tasks.pending[row] = 1;
    tasks.since[row] = this.x.now;
    run.inserted++;
    if (this.tracer !== undefined) this.tracer.inserted(row);

    const flowStart = tasks.flowStart[row];
    const modes = cls.modes;
    for (let i = 0; i < nFlows; i++) {
      const d = flows[i];
      const mode = modes[i];
      tasks.flowDatum[flowStart + i] = d;
      dependencies.order(id, row, d, mode);
      if (mode !== AccessMode.read) directory.written[d] = 1;
    }
    const paramStart = tasks.paramStart[row];
    for (let i = 0; i < nParams; i++) tasks.params[paramStart + i] = params[i];
    if (after !== undefined) this.follow(id, row, after);

    if (--tasks.pending[row] === 0) this.release(row);
    // Issued already: its events order later tasks against it, the graph need not.
    const known = tasks.queue[row] >= 0;
    for (let i = 0; i < nFlows; i++) {
      if (!known) dependencies.register(id, flows[i], modes[i]);
      else if (modes[i] !== AccessMode.read) dependencies.forget(flows[i]);
    }
    if (++this.insertsSincePass >= this.passAfter) this.pump();
    return id;
  }

  /**
   * Waits until a task with that many flows and parameters fits the window. Bodies may run and insert meanwhile, so
   * callers that keep arguments in scratch memory call this before they fill it.
   */
  reserveRow(flows: number, params: number): void {
    if (this.tasks.hasRoom(flows, params)) return;
    this.tracer?.throttle(true);
    try {
      while (!this.tasks.hasRoom(flows, params)) this.makeWindowRoom();
    } finally {
      this.tracer?.throttle(false);
    }
  }

  private follow(id: number, row: number, after: readonly number[]): void {
    const { tasks, x } = this;
    for (const predecessor of after) {
      if (this.dependencies.control(predecessor, id, row)) {
        const p = predecessor & tasks.mask;
        tasks.controlEvents[row] = x.eventNodes.push(
          tasks.controlEvents[row],
          tasks.queue[p],
          tasks.seq[p],
        );
      }
    }
  }

  /** Pumps until the window has room again. Called from a plain loop over `insert`, so it may block the thread. */
  private makeWindowRoom(): void {
    const { tasks } = this;
    const head = tasks.head;
    const progressed = this.pump();
    // Room for a good part of the window, not for one task: a pass per finished task would keep a core busy with
    // looking, and the executors need that core.
    if (tasks.live <= tasks.window - Math.max(1, tasks.window >> 3)) return;
    if (this.bodies.length > 0) {
      // Inside a body that inserts more than the window holds: other bodies must run for it to go on.
      this.runBodies();
      this.pump();
      if (tasks.head !== head) return;
    }
    if (!this.idle.somethingIsUnderWay()) {
      if (progressed || tasks.head !== head) return;
      if (this.asyncBodies > 0) {
        throw new HeadraceError(
          'ERR_WINDOW_FULL',
          `all ${tasks.window} rows of the task window wait for asynchronous bodies, which cannot end while the program inserts without awaiting`,
          { limit: tasks.window, remedy: 'await graph.space() between insertions' },
        );
      }
      throw new HeadraceError('ERR_STALLED', 'the engine cannot make progress', {
        report: this.explain(),
      });
    }
    this.idle.block();
  }

  // --- Release and start --------------------------------------------------------------------------------------

  private release(row: number): void {
    const { tasks, x } = this;
    if (tasks.stage[row] !== TaskStage.pending) return;
    const cls = x.classes[tasks.classOf[row]];
    if (cls.network !== undefined) {
      this.releaseMovement(row);
      return;
    }
    let s = 0;
    if (this.spaces.length > 1) {
      s = this.placement.device(row, cls, this.bytesOf(row));
      tasks.device[row] = s;
    } else tasks.device[row] = 0;
    this.placement.load[s]++;
    tasks.stage[row] = TaskStage.ready;
    if (x.tracing) tasks.times[row * TaskTime.count + TaskTime.ready] = x.now;
    const lane = s === 0 && cls.kernels[0] < 0 ? this.scriptLane : s;
    const queue = this.ready[lane];
    if (queue.length === 0 && this.hasSlot(lane)) this.start(row, lane);
    else queue.push(tasks.idOf(row), tasks.priority[row]);
  }

  /** A send or receive starts when its datum is there, not when a queue has room; until then it counts on the host. */
  private releaseMovement(row: number): void {
    const { tasks, x } = this;
    tasks.device[row] = 0;
    this.placement.load[0]++;
    tasks.stage[row] = TaskStage.ready;
    if (x.tracing) tasks.times[row * TaskTime.count + TaskTime.ready] = x.now;
    this.ranks?.released(row);
  }

  /** The task in `row`, which holds nothing yet, uses space `s`. */
  moveTo(row: number, s: number): void {
    const { tasks, placement } = this;
    placement.load[tasks.device[row]]--;
    placement.load[s]++;
    tasks.device[row] = s;
  }

  /** The task in `row`, which holds nothing yet, has nothing to do. */
  skip(row: number): void {
    this.finish(row, this.runs[this.tasks.run[row]] as RunState, Status.ok);
  }

  private hasSlot(lane: number): boolean {
    if (lane === this.scriptLane) return this.scripts < MAX_SCRIPTS;
    return this.placement.hasSlot(lane) && this.mayWaitForMemory(lane);
  }

  /** The host's line is open to all: who waits there may wait for what a ready task will give back. */
  private mayWaitForMemory(s: number): boolean {
    return s === 0 || this.spaces[s].waiters.length < MEMORY_LINE;
  }

  /** Starts a ready task, or puts it in the line of the queue that should run it and is full. */
  private start(row: number, lane: number): void {
    if (lane === this.scriptLane) {
      this.scripts++;
      advance(this.x, row);
      return;
    }
    const { tasks, placement } = this;
    const q = placement.queue(row, this.x.classes[tasks.classOf[row]].modes);
    if (placement.hasRoom(q)) this.startOn(row, q);
    else placement.lines[q].push(tasks.idOf(row), tasks.priority[row]);
  }

  private startOn(row: number, queue: number): void {
    this.tasks.target[row] = queue;
    advance(this.x, row);
  }

  /** Bytes a task touches, each datum once. */
  bytesOf(row: number): number {
    const { tasks, directory } = this;
    const first = tasks.flowStart[row];
    const end = first + this.x.classes[tasks.classOf[row]].modes.length;
    let bytes = 0;
    for (let i = first; i < end; i++) {
      const d = tasks.flowDatum[i];
      let again = false;
      for (let j = first; j < i; j++) if (tasks.flowDatum[j] === d) again = true;
      if (!again) bytes += roundedBytes(directory.bytes[d]);
    }
    return bytes;
  }

  private drainReleased(): void {
    if (this.draining) return;
    this.draining = true;
    while (this.released.length > 0) this.release(this.released.shift());
    this.draining = false;
  }

  private startReady(): void {
    const { tasks } = this;
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
    const { placement } = this;
    for (const q of placement.execQueues[s]) {
      const line = placement.lines[q];
      while (line.length > 0 && placement.hasRoom(q) && this.mayWaitForMemory(s)) {
        this.startFrom(q, q);
      }
    }
  }

  /** A queue that has run dry takes tasks from the longest line of its space: it has nothing better to wait for. */
  private steal(s: number): void {
    const { placement, submission } = this;
    const queues = placement.execQueues[s];
    if (queues.length === 1) return;
    for (const q of queues) {
      const depth = placement.depth[q];
      if (submission.outstanding[q] > depth >> 6) continue;
      const most = Math.max(1, Math.min(STOLEN, depth >> 2));
      for (
        let victim = placement.victimFor(q);
        victim >= 0 && submission.outstanding[q] < most && this.mayWaitForMemory(s);
        victim = placement.victimFor(q)
      ) {
        this.startFrom(victim, q);
      }
    }
  }

  private startFrom(line: number, queue: number): void {
    const { tasks } = this;
    const id = this.placement.lines[line].pop();
    const row = id & tasks.mask;
    if (!tasks.contains(id) || tasks.stage[row] !== TaskStage.ready) return;
    this.startOn(row, queue);
    if (this.released.length > 0) this.drainReleased();
  }

  // --- The pass -----------------------------------------------------------------------------------------------

  /** One pass. Returns true when anything was completed, started or run. */
  pump(): boolean {
    if (this.pumping) return false;
    this.pumping = true;
    this.insertsSincePass = 0;
    this.progressed = 0;
    const { x } = this;
    x.now = this.backend.now();
    try {
      this.round();
      if (this.bodyDepth === 0 && this.bodies.length > 0) {
        this.runBodies();
        // What the bodies released, freed or inserted must be on its way before anyone goes to sleep.
        this.round();
      }
      // Movements with their bytes at hand end in the middle of a round and give memory back behind those who wait.
      while (this.memoryCameBack()) this.round();
      this.tasks.retireHead();
      if (this.submission.sweepDue) this.forgetOldEvents();
      this.tracer?.passed(x.now);
      if (this.checked) this.validateState();
    } finally {
      this.pumping = false;
    }
    if (this.progressed > 0) this.reportProgress();
    this.reportOverRuns();
    return this.progressed > 0;
  }

  private round(): void {
    this.takeCompletions();
    if (this.ranks?.poll() === true) this.progressed++;
    this.drainReleased();
    this.wakeWaiters();
    this.startReady();
    this.backend.publish();
    this.ranks?.publish();
    this.passAfter = this.placement.allBusy() ? INSERTS_PER_PASS_WHEN_BUSY : INSERTS_PER_PASS;
  }

  private takeCompletions(): void {
    const { submission, backend } = this;
    if (!backend.poll()) return;
    this.placement.lookAgain();
    const queues = backend.queues.length;
    // Failures first, of copies before those of kernels: what ran behind a failure must not be taken for good, and
    // what was cancelled behind a failed copy not for unchanged, before the failure is known.
    for (let q = queues - 1; q >= 0; q--) {
      if (backend.failures[q] !== this.failuresSeen[q] && this.isCopyQueue[q] === 1)
        this.takeFinished(q, true);
    }
    for (let q = 0; q < queues; q++) {
      if (backend.failures[q] !== this.failuresSeen[q]) this.takeFinished(q, true);
    }
    for (let q = 0; q < queues; q++) {
      if (submission.seen[q] !== backend.completed[q]) this.takeFinished(q, false);
    }
    for (let n = this.leaving.length; n > 0; n--) this.forgetDatum(this.leaving.shift());
  }

  private takeFinished(q: number, failing: boolean): void {
    const { submission, backend, x } = this;
    let n = 0;
    for (let token = submission.takeFinished(q); token !== 0; token = submission.takeFinished(q)) {
      const seq = submission.seen[q];
      let status = 0;
      if (failing) {
        // The count may run ahead of what is complete: it is met when that many were seen to fail.
        status = backend.status(q, seq);
        if (status !== Status.ok) this.failuresSeen[q]++;
      }
      if (token > 0) complete(x, token - 1, status);
      else this.transfers.finish(-token - 1, q, seq, status);
      n++;
    }
    this.depthControl.completed(q, n, x.now);
    this.progressed += n;
    if (x.eventWaiters[q] >= 0) this.wakeEventWaiters(q);
    this.wakeSlotWaiters(q);
  }

  /** Sequence numbers wrap: events of long ago must not look like events to come. */
  private forgetOldEvents(): void {
    const { submission } = this;
    this.directory.forgetHappened((queue, seq) => submission.happened(queue, seq));
    submission.refresh();
  }

  private wakeEventWaiters(q: number): void {
    const { x, submission } = this;
    const nodes = x.eventNodes;
    let kept = -1;
    for (let n = x.eventWaiters[q]; n >= 0; ) {
      const id = nodes.value[n];
      const seq = nodes.extra[n];
      n = nodes.free(n);
      if (submission.happened(q, seq) && guards.eventWake) x.woken.push(id);
      else kept = nodes.push(kept, id, seq);
    }
    x.eventWaiters[q] = kept;
  }

  private wakeSlotWaiters(q: number): void {
    const { x } = this;
    const line = x.slotWaiters[q];
    if (!guards.slotWake) return;
    for (let n = line.length; n > 0; n--) x.woken.push(line.shift());
  }

  /** Looks again at every task whose named reason may be over. */
  private wakeWaiters(): void {
    const { x, tasks } = this;
    while (x.woken.length > 0) {
      const id = x.woken.shift();
      const row = id & tasks.mask;
      const reason = tasks.waiting[row];
      if (!tasks.contains(id) || (reason !== WaitReason.slot && reason !== WaitReason.copy))
        continue;
      this.progressed++;
      advance(x, row);
    }
    for (let s = 0; s < this.spaces.length; s++) {
      if (this.spaces[s].freed && guards.memoryWake) this.serveMemoryLine(s);
    }
    this.drainReleased();
  }

  private memoryCameBack(): boolean {
    if (this.ranks === undefined || !guards.memoryWake || !guards.movementWake) return false;
    for (const space of this.spaces) if (space.freed && space.waiters.length > 0) return true;
    return false;
  }

  private serveMemoryLine(s: number): void {
    const { x, tasks } = this;
    const space = this.spaces[s];
    space.freed = false;
    while (space.waiters.length > 0) {
      const id = space.waiters.peek();
      const row = id & tasks.mask;
      if (tasks.contains(id) && tasks.waiting[row] === WaitReason.memory) {
        const outcome = advance(x, row);
        // It may wait for memory elsewhere by now: on the host, for a copy that takes the way round.
        const where = tasks.stage[row] === TaskStage.alloc ? tasks.device[row] : 0;
        if (outcome === Outcome.wait && tasks.waiting[row] === WaitReason.memory && where === s)
          return;
      }
      space.waiters.shift();
      this.progressed++;
    }
    // Room on the host may be what a write-back from a device waited for.
    if (s === 0) for (let g = 1; g < this.spaces.length; g++) this.spaces[g].freed = true;
  }

  // --- Hooks of the stages ------------------------------------------------------------------------------------

  issued(row: number): void {
    const { tasks, x } = this;
    this.progressed++;
    let n = tasks.successors[row];
    if (n < 0) return;
    tasks.successors[row] = -1;
    const edges = this.dependencies.edges;
    while (n >= 0) {
      const value = edges.value[n];
      const successor = value >> 1;
      if (value & 1) {
        tasks.controlEvents[successor] = x.eventNodes.push(
          tasks.controlEvents[successor],
          tasks.queue[row],
          tasks.seq[row],
        );
      }
      this.releaseOne(successor, row);
      n = edges.free(n);
    }
  }

  startBody(row: number): number {
    if (this.ranks !== undefined && this.isMovement(row)) return this.ranks.start(row);
    this.tasks.queue[row] = BODY_QUEUED;
    this.bodies.push(this.tasks.idOf(row));
    return Outcome.running;
  }

  fail(row: number, error: HeadraceError): void {
    const { tasks, x } = this;
    const ran = tasks.queue[row] === BODY_RUNNING;
    if (tasks.stage[row] > TaskStage.alloc && tasks.stage[row] < TaskStage.stageOut) {
      releasePins(x, row);
    }
    poisonOutputs(x, row, ran ? Status.badArguments : Status.cancelled);
    const run = this.runs[tasks.run[row]] as RunState;
    if (this.ranks !== undefined && this.isMovement(row)) this.ranks.failing(row, error);
    else if (run.slot === INTERNAL_RUN) this.onInternalFailure?.(row, error);
    this.finish(row, run, ran ? Status.badArguments : Status.cancelled);
    if (run.slot !== INTERNAL_RUN) this.failRun(run, error);
  }

  retired(row: number, status: number): void {
    const { tasks, x } = this;
    const run = this.runs[tasks.run[row]] as RunState;
    if (this.tainted.size > 0 && this.tainted.delete(tasks.idOf(row))) {
      poisonOutputs(x, row, Status.driver);
      if (run.slot !== INTERNAL_RUN) this.failRun(run, computedFromFailure(x.describe(row)));
    } else if (status === Status.ok) cureOutputs(x, row);
    if (status !== Status.ok) {
      poisonOutputs(x, row, status);
      this.taintFollowers(row);
      if (status === Status.cancelled) run.cancelledTasks++;
      else this.taskFailed(run, row, describeFailure(this, row, status));
    }
    this.finish(row, run, status);
  }

  /**
   * Of the failures seen in one pass the first in program order counts: on a GPU, tasks behind a failed one may have run on
   * what it left before its run was cancelled, and failed of it.
   */
  private taskFailed(run: RunState, row: number, error: HeadraceError): void {
    const id = this.tasks.idOf(row);
    if (run.error === undefined) this.failRun(run, error);
    else if (run.failedAt === this.x.now && ((id - run.failedTask) | 0) < 0) run.error = error;
    else return;
    run.failedTask = id;
    run.failedAt = this.x.now;
  }

  private finish(row: number, run: RunState, status: number): void {
    const { tasks } = this;
    if (this.tracer !== undefined) this.tracer.retired(row, status);
    this.placement.load[tasks.device[row]]--;
    this.leaveLane(row);
    this.forget(row);
    run.retired++;
    this.progressed++;
    if (run.sealed && run.live === 0) this.runIsOver(run);
  }

  private isMovement(row: number): boolean {
    return this.x.classes[this.tasks.classOf[row]].network !== undefined;
  }

  /** A task that was started is over: one more JavaScript body or movement may start. */
  private leaveLane(row: number): void {
    const { tasks } = this;
    const cls = this.x.classes[tasks.classOf[row]];
    if (cls.kernels[tasks.device[row]] >= 0) return;
    if (cls.network !== undefined) this.ranks?.ended(row);
    else this.scripts--;
  }

  /** The row's last step: successors that were not released at issue go now. */
  private forget(row: number): void {
    const { tasks, x } = this;
    const edges = this.dependencies.edges;
    tasks.stage[row] = TaskStage.done;
    tasks.waiting[row] = 0;
    for (let n = tasks.successors[row]; n >= 0; ) {
      this.releaseOne(edges.value[n] >> 1, row);
      n = edges.free(n);
    }
    tasks.successors[row] = -1;
    if (tasks.controlEvents[row] >= 0) {
      tasks.controlEvents[row] = x.eventNodes.freeList(tasks.controlEvents[row]);
    }
  }

  private releaseOne(successor: number, by: number): void {
    const { tasks } = this;
    if (--tasks.pending[successor] === 0) {
      tasks.releasedBy[successor] = tasks.idOf(by);
      this.released.push(successor);
    }
  }

  // --- JavaScript bodies --------------------------------------------------------------------------------------

  private runBodies(): void {
    const { tasks, x } = this;
    this.bodyDepth++;
    const wasPumping = this.pumping;
    // A body may insert, and insertion may need a pass.
    this.pumping = false;
    for (let n = this.bodies.length; n > 0; n--) {
      const id = this.bodies.shift();
      const row = id & tasks.mask;
      if (!tasks.contains(id) || tasks.stage[row] !== TaskStage.exec) continue;
      tasks.queue[row] = BODY_RUNNING;
      this.progressed++;
      this.tracer?.bodyStarted(row);
      const body = x.classes[tasks.classOf[row]].body as (task: number, row: number) => unknown;
      let result: unknown;
      try {
        result = body(id, row);
      } catch (cause) {
        this.bodyEnded(id, cause ?? new Error('the body threw nothing'));
        continue;
      }
      if (result !== null && typeof result === 'object' && 'then' in result) {
        this.asyncBodies++;
        (result as PromiseLike<unknown>).then(
          () => this.asyncBodyEnded(id, undefined),
          (cause: unknown) => this.asyncBodyEnded(id, cause ?? new Error('the body rejected')),
        );
      } else this.bodyEnded(id, undefined);
    }
    this.pumping = wasPumping;
    this.bodyDepth--;
  }

  private asyncBodyEnded(id: number, cause: unknown): void {
    this.asyncBodies--;
    this.bodyEnded(id, cause);
    this.wake();
  }

  private bodyEnded(id: number, cause: unknown): void {
    const row = id & this.tasks.mask;
    this.progressed++;
    this.tracer?.bodyEnded(row);
    if (cause === undefined) {
      complete(this.x, row, Status.ok);
      return;
    }
    const task = this.x.describe(row);
    const text = cause instanceof Error ? cause.message : String(cause);
    const inner =
      cause instanceof HeadraceError && cause.details.task === undefined ? cause : undefined;
    this.fail(
      row,
      new HeadraceError(inner?.code ?? 'ERR_TASK_FAILED', `task ${task} failed: ${text}`, {
        ...inner?.details,
        task,
        stage: 'exec',
        cause,
      }),
    );
  }

  // --- Failure ------------------------------------------------------------------------------------------------

  /** First failure of a run: what was not issued is dropped, what is under way ends, then the run rejects. */
  failRun(run: RunState, error: HeadraceError): void {
    if (run.error !== undefined) return;
    run.error = error;
    if (guards.cancelQueued) this.backend.setCancelled(run.slot, true);
    this.ranks?.runFailed(run, error);
    this.tracer?.runFailed(error, this.backend.now());
    const { tasks } = this;
    for (let id = tasks.head; id !== tasks.next; id = (id + 1) | 0) {
      const row = id & tasks.mask;
      const stage = tasks.stage[row];
      if (tasks.run[row] !== run.slot || stage === TaskStage.done || stage === TaskStage.free)
        continue;
      const canDrop = tasks.queue[row] === NOT_ISSUED || tasks.queue[row] === BODY_QUEUED;
      if (!canDrop || stage >= TaskStage.stageOut) continue;
      if (guards.dropUnissued) this.dropTask(row, run);
    }
    // Tickets of dropped tasks pass on.
    for (const space of this.spaces) space.freed = true;
    this.wake();
  }

  private dropTask(row: number, run: RunState): void {
    const { tasks, x } = this;
    const stage = tasks.stage[row];
    if (stage > TaskStage.alloc && guards.dropReleasesPins) releasePins(x, row);
    if (stage >= TaskStage.ready) this.placement.load[tasks.device[row]]--;
    if (stage > TaskStage.ready || this.isMovement(row)) this.leaveLane(row);
    for (const space of this.spaces) {
      if (space.compactingFor === tasks.idOf(row)) space.compactingFor = NO_TASK;
    }
    poisonOutputs(x, row, Status.cancelled);
    this.forget(row);
    run.retired++;
    run.cancelledTasks++;
    this.progressed++;
    if (run.sealed && run.live === 0) this.runIsOver(run);
  }

  private transferDone(t: number, queue: number, seq: number, status: number): void {
    this.tracer?.transferDone(t, queue, seq);
    if (status === Status.ok) return;
    const d = this.transfers.datum[t];
    this.taintReaders(d, this.transfers.version[t]);
    const datum = this.directory.info[d]?.name ?? `#${d}`;
    const error = new HeadraceError(
      status === Status.deviceLost ? 'ERR_DEVICE_LOST' : 'ERR_TRANSFER_FAILED',
      `copying datum '${datum}' from ${this.spaceName(this.transfers.source[t])} to ` +
        `${this.spaceName(this.transfers.destination[t])} failed: ${this.backend.lastError(queue) || `status ${status}`}`,
      { datum, stage: 'stage-in', device: this.spaceName(this.transfers.destination[t]) },
    );
    for (const run of this.runs) {
      if (run !== undefined && run.slot !== INTERNAL_RUN && !run.over) this.failRun(run, error);
    }
  }

  /**
   * Marks the issued tasks that read version `version` of datum `d`, whose copy did not arrive, and all that read
   * what those write.
   */
  private taintReaders(d: number, version: number): void {
    if (!guards.poisonBehindTransfer) return;
    const { tasks } = this;
    // The first task inserted after the one that wrote this version.
    let writers = (this.directory.version[d] - version) | 0;
    let from = tasks.next;
    while (from !== tasks.head) {
      const before = (from - 1) | 0;
      if (this.writes(before & tasks.mask, d) && --writers < 0) break;
      from = before;
    }
    this.taintFrom(from, new Set([d]), NO_RUN);
  }

  /**
   * Marks the issued tasks behind one that failed or was cancelled that read, directly or not, what it should have
   * written. Those of its own run are cancelled with it; those of other runs have computed from nothing.
   */
  private taintFollowers(row: number): void {
    const { tasks, x } = this;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    const bad = new Set<number>();
    for (let i = 0; i < modes.length; i++)
      if (modes[i] !== AccessMode.read) bad.add(tasks.flowDatum[first + i]);
    if (bad.size > 0) this.taintFrom((tasks.idOf(row) + 1) | 0, bad, tasks.run[row]);
  }

  /** Marks the issued tasks from `from` on, but for those of run `except`, that read data of `bad` or what those write. */
  private taintFrom(from: number, bad: Set<number>, except: number): void {
    const { tasks, x } = this;
    for (let id = from; id !== tasks.next; id = (id + 1) | 0) {
      const row = id & tasks.mask;
      if (tasks.queue[row] === NOT_ISSUED) continue;
      const { modes } = x.classes[tasks.classOf[row]];
      const start = tasks.flowStart[row];
      let reads = false;
      for (let i = 0; i < modes.length; i++) {
        if (modes[i] !== AccessMode.write && bad.has(tasks.flowDatum[start + i])) reads = true;
      }
      if (reads && tasks.stage[row] < TaskStage.finalize && tasks.run[row] !== except)
        this.tainted.add(id);
      for (let i = 0; i < modes.length; i++) {
        if (modes[i] === AccessMode.read) continue;
        if (reads) bad.add(tasks.flowDatum[start + i]);
        else bad.delete(tasks.flowDatum[start + i]);
      }
    }
  }

  /** Whether the task of a row was issued and writes datum `d`. */
  private writes(row: number, d: number): boolean {
    const { tasks, x } = this;
    if (tasks.queue[row] === NOT_ISSUED) return false;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) {
      if (modes[i] !== AccessMode.read && tasks.flowDatum[first + i] === d) return true;
    }
    return false;
  }

  spaceName(s: number): string {
    return this.backend.spaces[s]?.name ?? `space ${s}`;
  }

  // --- End of runs, waking ------------------------------------------------------------------------------------

  private runIsOver(run: RunState): void {
    if (run.over || run.slot === INTERNAL_RUN) return;
    run.over = true;
    if (this.ranks !== undefined) this.ranks.runs.ended(run);
    else this.overRuns.push(run);
  }

  /** All ranks agree that a run is over. */
  runIsSettled(run: RunState): void {
    this.overRuns.push(run);
    this.wake();
  }

  private reportOverRuns(): void {
    while (this.overRuns.length > 0) this.overRuns.shift()?.onOver?.();
  }

  private reportProgress(): void {
    for (let slot = 1; slot <= this.openRuns; slot++) this.runs[slot]?.onProgress?.();
  }

  /** Makes the engine go on from the event loop: there is something to do, or soon will be. */
  wake(): void {
    this.idle.schedule();
  }

  /** What every live task waits for, and who holds the memory. */
  explain(): string {
    return explainAll(this);
  }

  memoryText(): string {
    return memoryText(this);
  }

  get liveScripts(): number {
    return this.bodies.length + this.asyncBodies;
  }

  get queuedBodies(): number {
    return this.bodies.length;
  }

  /** A JavaScript body runs now. */
  get inBody(): boolean {
    return this.bodyDepth > 0;
  }

  private poisonFreedBlocks(): void {
    const { queues } = this.backend;
    this.spaces.forEach((space, s) => {
      const queue = queues.findIndex(
        (q) => q.space === s && q.kind === (s === 0 ? 'worker' : 'd2h'),
      );
      if (queue < 0) return;
      space.onDrop = (_d, offset, bytes) => {
        if (this.submission.room(queue) < 2) return false;
        this.transfers.poison(s, queue, offset, bytes);
        return true;
      };
    });
  }

  /** Throws when an invariant does not hold; run after every pass in checked mode. */
  validateState(): void {
    this.directory.validate();
    for (const space of this.spaces) space.validate();
  }
}
