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
import { MemorySpace } from '../devices/memory-space.js';
import { Submission } from '../devices/submission.js';
import { Transfers } from '../devices/transfers.js';
import { StageContext, type StageHooks } from '../stages/context.js';
import { releasePins } from '../stages/finalize.js';
import { poisonOutputs } from '../stages/poison.js';
import { Outcome } from '../stages/stage.js';
import { type TaskClassRow, TaskStage, TaskTable } from '../stages/task-table.js';
import { AccessMode } from '../trace/format.js';
import { Completions } from './completions.js';
import { Dependencies } from './dependencies.js';
import { DepthControl } from './depth-control.js';
import { DroppedTasks } from './dropped-tasks.js';
import type { EngineTracer } from './engine-tracer.js';
import { explainAll } from './explain.js';
import { computedFromFailure, describeFailure } from './failure.js';
import { FailureEffects } from './failure-effects.js';
import { IdleControl } from './idle.js';
import { memoryText } from './memory-report.js';
import { Placement } from './placement.js';
import type { Ranks } from './ranks.js';
import { RunState } from './run-state.js';
import { BODY_RUNNING, ScriptBodies } from './script-bodies.js';
import { Shortage } from './shortage.js';
import { Starter } from './starter.js';
import { WindowRoom } from './window.js';

export interface EngineOptions {
  /** Live tasks at most; a power of two. */
  readonly window: number;
  /** Commands queued ahead per executor, at most. */
  readonly runAhead: number;
  /** Tasks that bodies may have inserted beyond the window. */
  readonly overflow: number;
  /** Nanoseconds without progress after which the watchdog reports; 0: never. */
  readonly watchdog: number;
  /** Poison freed blocks with 0xA5 and check invariants after each pass. */
  readonly checked: boolean;
}

/** Run slot of the runtime's own tasks (reads, releases); never cancelled. */
export const INTERNAL_RUN = 0;
const RUN_SLOTS = 64;
/** Insertions between two passes: few while executors may have little to do, more when they are known to have enough. */
const INSERTS_PER_PASS = 32;
const INSERTS_PER_PASS_WHEN_BUSY = 128;
/** In the column of queues: the task was not issued. */
export const NOT_ISSUED = -1;

export class Engine implements StageHooks {
  readonly backend: Backend;
  readonly tasks: TaskTable;
  readonly directory: Directory;
  readonly spaces: readonly MemorySpace[];
  readonly submission: Submission;
  readonly transfers: Transfers;
  readonly dependencies: Dependencies;
  readonly shortage: Shortage;
  readonly placement: Placement;
  readonly x: StageContext;
  readonly runs: (RunState | undefined)[] = new Array<RunState | undefined>(RUN_SLOTS);
  readonly starter: Starter;
  readonly bodies: ScriptBodies;
  readonly room: WindowRoom;
  readonly idle: IdleControl;
  readonly dropped: DroppedTasks;
  readonly checked: boolean;
  /** What a pass has done so far. */
  progressed = 0;
  /** When a pass moved a task last: its time. Messages between ranks alone are no progress. */
  movedAt = 0;
  tracer: EngineTracer | undefined;
  /** Set where the program runs on several ranks. */
  ranks: Ranks | undefined;
  /** Told when a task of the runtime's own failed. */
  onInternalFailure: ((row: number, error: HeadraceError) => void) | undefined;

  readonly depthControl: DepthControl;
  private readonly completions: Completions;
  private readonly overRuns: RunState[] = [];
  readonly failures: FailureEffects;
  private insertsSincePass = 0;
  private passAfter = INSERTS_PER_PASS;
  /** No slot above this one has an open run. */
  private openRuns = 0;
  private pumping = false;
  /** Of `progressed`, looks that found messages of other ranks. */
  private messages = 0;

  constructor(backend: Backend, options: EngineOptions) {
    this.backend = backend;
    this.checked = options.checked;
    const n = backend.spaces.length;
    this.tasks = new TaskTable(options.window);
    this.directory = new Directory(n);
    this.spaces = backend.spaces.map((s, i) => new MemorySpace(i, s.bytes, this.directory));
    this.submission = new Submission(backend);
    this.transfers = new Transfers(this.directory, this.spaces, this.submission);
    this.dependencies = new Dependencies(this.tasks);
    const capacity = Float64Array.from(this.spaces, (s) => s.zone.capacity);
    this.shortage = new Shortage(this.spaces, this.submission);
    this.placement = new Placement(
      this.tasks,
      this.directory,
      this.submission,
      capacity,
      options.runAhead,
      this.shortage.short,
    );
    this.x = new StageContext(
      this.tasks,
      this.directory,
      this.spaces,
      this.submission,
      this.transfers,
      this,
    );
    this.starter = new Starter(this, options.window);
    this.bodies = new ScriptBodies(this);
    this.room = new WindowRoom(this, options.overflow);
    this.dropped = new DroppedTasks(this);
    this.completions = new Completions(this);
    this.failures = new FailureEffects(this);
    this.depthControl = new DepthControl(this.submission, this.placement, options.runAhead);
    this.idle = new IdleControl(this, options.watchdog);
    this.runs[INTERNAL_RUN] = new RunState(INTERNAL_RUN);
    this.transfers.observer = {
      transferDone: (t, queue, seq, status) => this.failures.transferDone(t, queue, seq, status),
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
        this.completions.leaving.push(d);
        return;
      }
    }
    for (let s = 0; s < dir.spaces; s++) this.spaces[s].giveUp(d);
    dir.remove(d);
  }

  /** Blocks until some transfer is over; false when none is under way. `since`: when the wait began. */
  waitForTransfers(since: number): boolean {
    if (this.transfers.live === 0) return false;
    if (this.pump()) return true;
    this.idle.block();
    this.idle.reportBlocked(
      since,
      'a new datum: waits for host memory that transfers will give back',
    );
    return true;
  }

  /** Resolves when no task is live and no command is under way. */
  quiet(): Promise<void> {
    return this.idle.quiet();
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
    if (this.tracer !== undefined) this.tracer.tasks.inserted(id);

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
    if (this.bodies.waiting > 0) this.bodies.inserted();

    if (--tasks.pending[row] === 0) this.starter.release(row);
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
   * Waits until a task of that class fits the window, or extends it. Bodies may run and insert meanwhile, so callers that
   * keep arguments in scratch memory call this before they fill it.
   * @throws HeadraceError `ERR_WINDOW_FULL`
   */
  reserveRow(cls: TaskClassRow): void {
    this.room.reserve(cls);
  }

  private follow(id: number, row: number, after: readonly number[]): void {
    const { tasks, x } = this;
    for (const predecessor of after) {
      if (!this.dependencies.control(predecessor, id, row)) continue;
      const p = predecessor & tasks.mask;
      if (tasks.stage[p] === TaskStage.outlived) this.dropped.handEvents(p, row);
      else
        tasks.controlEvents[row] = x.eventNodes.push(
          tasks.controlEvents[row],
          tasks.queue[p],
          tasks.seq[p],
        );
    }
  }

  // --- Release and start --------------------------------------------------------------------------------------

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
    this.forget(row);
  }

  // --- The pass -----------------------------------------------------------------------------------------------

  /** One pass. Returns true when anything was completed, started or run. */
  pump(): boolean {
    if (this.pumping) return false;
    this.pumping = true;
    this.insertsSincePass = 0;
    this.progressed = 0;
    this.messages = 0;
    const { x } = this;
    x.now = this.backend.now();
    this.tracer?.begins(x.now);
    try {
      this.round();
      if (this.bodies.depth === 0 && this.bodies.queued.length > 0) {
        // A body may insert, and insertion may need a pass.
        this.pumping = false;
        this.bodies.run();
        this.pumping = true;
        // What the bodies released, freed or inserted must be on its way before anyone goes to sleep.
        this.round();
      }
      // Movements with their bytes at hand end in the middle of a round and give memory back behind those who wait.
      while (this.completions.memoryCameBack()) this.round();
      this.tasks.retireHead();
      this.room.passed();
      if (this.submission.sweepDue) this.completions.forgetOldEvents();
      this.tracer?.passed(x.now);
      if (this.checked) this.validateState();
    } finally {
      this.pumping = false;
    }
    if (this.progressed > this.messages) this.movedAt = this.x.now;
    if (this.progressed > 0) this.reportProgress();
    this.reportOverRuns();
    return this.progressed > 0;
  }

  private round(): void {
    this.completions.take();
    this.dropped.look();
    if (this.ranks?.poll() === true) {
      this.progressed++;
      this.messages++;
    }
    this.starter.drainReleased();
    this.completions.wakeWaiters();
    this.shortage.look();
    this.starter.startReady();
    this.backend.publish();
    this.tracer?.tasks.issued(this.x.now);
    this.ranks?.publish();
    this.passAfter = this.placement.allBusy() ? INSERTS_PER_PASS_WHEN_BUSY : INSERTS_PER_PASS;
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
      this.starter.releaseOne(successor, row);
      n = edges.free(n);
    }
  }

  startBody(row: number): number {
    if (this.ranks !== undefined && this.isMovement(row)) return this.ranks.start(row);
    this.bodies.queue(row);
    return Outcome.running;
  }

  fail(row: number, error: HeadraceError): void {
    const { tasks, x } = this;
    const ran = tasks.queue[row] === BODY_RUNNING;
    if (tasks.stage[row] > TaskStage.alloc && tasks.stage[row] < TaskStage.stageOut) {
      releasePins(x, row);
    }
    if (ran) poisonOutputs(x, row, Status.badArguments);
    const run = this.runs[tasks.run[row]] as RunState;
    if (this.ranks !== undefined && this.isMovement(row)) this.ranks.failing(row, error);
    else if (run.slot === INTERNAL_RUN) this.onInternalFailure?.(row, error);
    // First the reason, then the end: the last task of a run ends it, and it must not count as a good one. What is done
    // is not dropped.
    tasks.stage[row] = TaskStage.done;
    if (run.slot !== INTERNAL_RUN) this.failRun(run, error);
    this.finish(row, run, ran ? Status.badArguments : Status.cancelled);
    if (ran) this.forget(row);
    else this.dropped.drop(row);
  }

  retired(row: number, status: number): void {
    const { tasks, x } = this;
    const run = this.runs[tasks.run[row]] as RunState;
    if (this.failures.tainted.size > 0 && this.failures.tainted.delete(tasks.idOf(row))) {
      poisonOutputs(x, row, Status.driver);
      if (run.slot !== INTERNAL_RUN) this.failRun(run, computedFromFailure(x.describe(row)));
    }
    if (status !== Status.ok) {
      poisonOutputs(x, row, status);
      if (status === Status.cancelled) run.cancelledTasks++;
      else this.failures.taskFailed(run, row, describeFailure(this, row, status));
    }
    this.finish(row, run, status);
    this.forget(row);
  }

  /** The task's end is counted; its row and its successors are the caller's. */
  private finish(row: number, run: RunState, status: number): void {
    const { tasks } = this;
    if (this.tracer !== undefined) this.tracer.tasks.retired(row, status);
    this.placement.load[tasks.device[row]]--;
    this.starter.leaveLane(row);
    run.retired++;
    this.progressed++;
    if (run.sealed && run.live === 0) this.runIsOver(run);
  }

  isMovement(row: number): boolean {
    return this.x.classes[this.tasks.classOf[row]].network !== undefined;
  }

  /** The row's last step: successors that were not released at issue go now. */
  forget(row: number): void {
    const { tasks, x } = this;
    const edges = this.dependencies.edges;
    tasks.stage[row] = TaskStage.done;
    tasks.waiting[row] = 0;
    for (let n = tasks.successors[row]; n >= 0; ) {
      this.starter.releaseOne(edges.value[n] >> 1, row);
      n = edges.free(n);
    }
    tasks.successors[row] = -1;
    if (tasks.controlEvents[row] >= 0) {
      tasks.controlEvents[row] = x.eventNodes.freeList(tasks.controlEvents[row]);
    }
  }

  /** First failure of a run: what was not issued is dropped, what is under way ends, then the run rejects. */
  failRun(run: RunState, error: HeadraceError): void {
    this.failures.failRun(run, error);
  }

  /** A task of a failed run that was not issued is over. */
  dropTask(row: number, run: RunState): void {
    this.failures.dropTask(row, run);
  }

  spaceName(s: number): string {
    return this.backend.spaces[s]?.name ?? `space ${s}`;
  }

  // --- End of runs, waking ------------------------------------------------------------------------------------

  runIsOver(run: RunState): void {
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
    return this.bodies.queued.length + this.bodies.waiting;
  }

  get queuedBodies(): number {
    return this.bodies.queued.length;
  }

  /** The caller is a JavaScript body, also after an `await`. */
  get inBody(): boolean {
    return this.bodies.isRunning;
  }

  /** The caller is called back from a pass. */
  get inPass(): boolean {
    return this.pumping;
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
