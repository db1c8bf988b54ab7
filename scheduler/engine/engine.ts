// The engine takes insertions and completions in and gives commands out. It has no clock, no thread and no I/O of its
// own. All three are behind the backend port, so the same code runs on real threads and in virtual time.
//
// It consists of the shared state, the parts that decide, and the pass (`pump`) that calls them in order: take
// completions; retire tasks and free pins; check the tasks that wait for freed resources; start ready tasks while
// their queues have room; publish.
// Invariants (validate.ts checks them after every pass of a checked run): a task ends exactly once; a task is issued only
// after all its predecessors were issued or are over; a waiting task is on exactly one wake list, and its reason is still
// true; a ready task is in one place; the directory, the memory of every space and the copies in it agree.

import type { Backend } from '../../devices/backend.js';
import type { HeadraceError } from '../../devices/errors.js';
import type { DatumId, SpaceId, TaskId } from '../../devices/handles.js';
import type { DatumInfo } from '../../devices/memory/directory.js';
import type { StageHooks } from '../../stages/context.js';
import { Outcome } from '../../stages/stage.js';
import { Execution, type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import { DroppedTasks } from '../failure/dropped-tasks.js';
import { FailureEffects } from '../failure/effects.js';
import { explainAll } from '../reports/explain.js';
import { memoryText } from '../reports/memory.js';
import { Story } from '../reports/story.js';
import { Arrivals } from './arrivals.js';
import { Completions } from './completions.js';
import { DeferredCalls } from './deferred-calls.js';
import { Dependencies } from './dependencies.js';
import { DepthControl } from './depth.js';
import { DeviceChoice } from './device-choice.js';
import { Dispatcher } from './dispatcher.js';
import { ExclusiveSections } from './exclusive.js';
import type { HeldInsertions } from './held-insertions.js';
import { IdleControl } from './idle.js';
import { Joins } from './joins.js';
import { KernelTimes } from './kernel-times.js';
import { LeavingData } from './leaving-data.js';
import { MemoryPressure } from './memory-pressure.js';
import type { Pass } from './pass.js';
import { poisonFreedBlocks } from './poison-freed-blocks.js';
import { QueueChoice } from './queue-choice.js';
import type { Remote } from './remote.js';
import { Retirement } from './retirement.js';
import { INTERNAL_RUN, type RunState } from './run-state.js';
import { Runs } from './runs.js';
import { ScriptBodies } from './script-bodies.js';
import { EngineState } from './state.js';
import type { TaskInsertion } from './task-insertion.js';
import { validate } from './validate.js';
import { WindowRoom } from './window.js';

interface EngineOptions {
  /** Limit for live tasks; a power of two. */
  readonly window: number;
  /** Limit for commands queued ahead per queue. */
  readonly runAhead: number;
  /** Limit for tasks that bodies insert beyond the window. */
  readonly overflow: number;
  /** Nanoseconds without progress after which the watchdog reports; 0: it never reports. */
  readonly watchdog: number;
  /** Poison freed blocks with 0xA5 and check invariants after each pass. */
  readonly checked: boolean;
}

/** Insertions between two passes: few while queues may have little work, more when they surely have enough. */
const INSERTS_PER_PASS = 32;
const INSERTS_PER_PASS_WHEN_BUSY = 128;
/** Tasks that a pass issues between two times that it publishes them: queues and other ranks may wait for the first of them. */
const ISSUES_PER_PUBLISH = 16;

/** The closes of data that are tasks. */
interface Closes {
  isAny(): boolean;
  /** Whether one waits for no task. */
  isReleased(): boolean;
}

const NO_CLOSES: Closes = { isAny: () => false, isReleased: () => false };

export class Engine extends EngineState implements StageHooks, Pass {
  readonly dependencies: Dependencies;
  readonly deviceChoice: DeviceChoice;
  readonly queueChoice: QueueChoice;
  readonly dispatcher: Dispatcher;
  readonly bodies: ScriptBodies;
  readonly room: WindowRoom;
  readonly idle: IdleControl;
  readonly failures: FailureEffects;
  readonly retirement: Retirement;
  /** Open runs, and how they end. */
  readonly openRuns: Runs;
  readonly checked: boolean;
  /** The last stimuli, in checked runs and in simulated machines that do not only predict. */
  readonly story: Story | undefined;
  /** The receives for whose events queues may wait. */
  readonly arrivals: Arrivals;
  /** Sections in which no task runs. */
  readonly sections: ExclusiveSections;
  /** Tasks that wait for those that they have spawned. */
  readonly joins: Joins;
  /** Closes of data that wait for a row of the window. */
  readonly deferred: DeferredCalls;
  /** The closes of data that are not over. */
  closes: Closes = NO_CLOSES;
  readonly completions: Completions;
  readonly kernelTimes: KernelTimes;
  /** Insertions that are held back, if runs are recognised. */
  held: HeldInsertions | undefined;
  /** Passes tell programs of progress and of the ends of runs, which may call anything. */
  tellsRuns = true;
  protected readonly pressure: MemoryPressure;
  private readonly dropped: DroppedTasks;
  private readonly leaving: LeavingData;
  private insertsSincePass = 0;
  private passAfter = INSERTS_PER_PASS;
  private pumping = false;
  /** Tasks issued since commands were last published. */
  private unpublished = 0;
  /** The part of `progressed` in which a look found messages of other ranks. */
  private messages = 0;

  constructor(backend: Backend, options: EngineOptions) {
    super(backend, options.window);
    this.checked = options.checked;
    this.x.hooks = this;
    this.dependencies = new Dependencies(this.tasks, this);
    const capacity = Float64Array.from(this.spaces, (s) => s.zone.capacity);
    this.pressure = new MemoryPressure(this.spaces, this.allSpaces, this.submission);
    this.arrivals = new Arrivals(this, (row) => this.releaseSuccessors(row));
    const { tasks, directory, submission, pressure } = this;
    this.deviceChoice = new DeviceChoice(tasks, directory, capacity);
    const { runAhead } = options;
    this.queueChoice = new QueueChoice(tasks, directory, submission, runAhead, pressure);
    const depth = new DepthControl(submission, this.queueChoice, runAhead);
    this.dispatcher = new Dispatcher(this, this.deviceChoice, this.queueChoice, pressure);
    this.openRuns = new Runs(this);
    this.leaving = new LeavingData(this);
    this.dropped = new DroppedTasks(this, this.dependencies, this.dispatcher);
    this.dispatcher.commuting = this.dependencies;
    this.dispatcher.droppedReleased = (row) => this.dropped.released(row);
    const { dependencies, deviceChoice, queueChoice, dispatcher, dropped, leaving } = this;
    const runs = this.openRuns;
    const joinsOf = (): Joins => this.joins;
    this.failures = new FailureEffects(this, {
      dependencies,
      deviceChoice,
      dispatcher,
      dropped,
      runs,
      joinsOf,
    });
    const { failures } = this;
    this.deferred = new DeferredCalls(this, this.tasks.window + options.overflow);
    this.joins = new Joins(this, dependencies, dispatcher, this.deferred, (row, isLost) =>
      this.retirement.joined(row, isLost),
    );
    const { joins } = this;
    const ends = { dependencies, dispatcher, deviceChoice, dropped, failures, joins, runs };
    this.retirement = new Retirement(this, ends);
    const { retirement } = this;
    this.kernelTimes = new KernelTimes(backend);
    const { kernelTimes } = this;
    const seen = { queueChoice, depth, dispatcher, failures, retirement, leaving, kernelTimes };
    this.completions = new Completions(this, seen);
    this.bodies = new ScriptBodies(this, dispatcher, retirement);
    const { bodies } = this;
    const underWay = (): boolean => this.idle.commandsAreUnderWay() || this.transfers.live > 0;
    this.sections = new ExclusiveSections(this, dispatcher, underWay);
    const { sections } = this;
    this.dependencies.behindBodies = () => sections.waiting();
    const asked = {
      pass: this,
      queueChoice,
      dispatcher,
      depth,
      bodies,
      dropped,
      failures,
      arrivals: this.arrivals,
      sections,
      joins: this.joins,
      deferred: this.deferred,
      explain: (): string => this.explainStandstill(),
    };
    this.idle = new IdleControl(this, asked, options.watchdog);
    const { idle, deferred } = this;
    const moving = { pass: this, deferred, dependencies, dispatcher, bodies, idle };
    this.room = new WindowRoom(this, moving, options.overflow);
    this.transfers.observer = {
      transferDone: (t, queue, seq, status) => this.failures.transferDone(t, queue, seq, status),
    };
    if (options.checked) poisonFreedBlocks(this);
    if (options.checked || backend.keepsStory) {
      this.story = new Story(this);
      this.observe(this.story);
    }
  }

  // --- Runs ---------------------------------------------------------------------------------------------------

  /** @throws HeadraceError `ERR_TOO_MANY_RUNS` */
  openRun(): RunState {
    return this.openRuns.open();
  }

  /** The run inserts no more tasks; `onOver` is called when its last task is retired. */
  seal(run: RunState): void {
    this.openRuns.seal(run);
  }

  closeRun(run: RunState): void {
    this.openRuns.close(run);
  }

  /**
   * First failure of a run: tasks that were not issued are dropped, commands under way end, and then the run rejects.
   */
  failRun(run: RunState, error: HeadraceError): void {
    this.failures.failRun(run, error);
  }

  /** All ranks agree that a run is over. */
  runIsSettled(run: RunState): void {
    this.openRuns.isSettled(run);
  }

  /** A task class whose tasks come next. Its id is its place among the classes. */
  addClass(cls: TaskClassRow): void {
    this.x.classes.push(cls);
    this.kernelTimes.open(cls);
  }

  // --- Data ---------------------------------------------------------------------------------------------------

  addDatum(bytes: number, info: DatumInfo): DatumId {
    const d = this.directory.add(bytes, info);
    this.dependencies.addDatum(d);
    this.observer?.datumAdded(d, bytes);
    return d;
  }

  /** Frees all copies of a datum that no live task uses, as soon as no transfer uses them. */
  forgetDatum(d: DatumId): void {
    this.leaving.forget(d);
  }

  /** Gives back the row of a datum that no task has used. */
  removeDatum(d: DatumId): void {
    this.leaving.remove(d);
  }

  /**
   * Blocks until something has moved that may give back host memory; returns false when nothing will: no transfer is under way, and no
   * command behind which data are closed. `since`: the time at which the wait began.
   */
  waitForHostMemory(since: number): boolean {
    if (this.pump()) return true;
    if (this.bodies.depth === 0 && this.deferred.make()) return true;
    const areClosed = this.closes.isAny() || this.leaving.isAny;
    const mayClose = areClosed && this.idle.commandsAreUnderWay();
    const { poisoning } = this.spaces[0];
    if (this.transfers.live === 0 && poisoning === 0 && !mayClose) return false;
    this.idle.block();
    this.idle.reportBlocked(
      since,
      'a new datum: waits for host memory that transfers, or closes of data, will give back',
    );
    return true;
  }

  /** @internal For the stages. */
  closesAreReleased(): boolean {
    return this.closes.isReleased();
  }

  /** Resolves when no task is live, no command is under way, and no close of a datum waits for a row. */
  quiet(): Promise<void> {
    return this.idle.quiet();
  }

  // --- Insertion ----------------------------------------------------------------------------------------------

  /**
   * Inserts a task; copies the record. Returns the task's id. The caller has reserved the row (`reserveRow`).
   */
  insert(insertion: TaskInsertion): TaskId {
    const { cls, run, flows, params, priority, device, after, parent } = insertion;
    const { tasks, directory, dependencies, joins } = this;
    const nFlows = cls.modes.length;
    const nParams = cls.paramNames.length;
    if (this.insertsSincePass === 0) {
      // The program may have done anything since the last pass. It may await something after this insertion, and the
      // tasks inserted so far must not wait for that.
      this.x.now = this.backend.now();
      this.wake();
    }
    const id = tasks.take(nFlows, nParams);
    if (this.sections.isClosed && parent === undefined) {
      if (this.bodies.isRunning) this.sections.follows(id, this.predecessors(insertion));
      else this.sections.inserted(id);
    }
    const row = id & tasks.mask;
    tasks.stage[row] = TaskStage.pending;
    tasks.classOf[row] = cls.id;
    tasks.run[row] = run.slot;
    tasks.priority[row] = priority;
    tasks.device[row] = device;
    tasks.hinted[row] = device >= 0 ? 1 : 0;
    tasks.execution[row] = Execution.none;
    tasks.waiting[row] = 0;
    tasks.releasedBy[row] = -1;
    tasks.pending[row] = 1;
    tasks.since[row] = this.x.now;
    run.inserted++;
    if (this.observer !== undefined) this.observer.inserted(id, row, cls, run, flows, after);

    const flowStart = tasks.flowStart[row];
    const modes = cls.modes;
    // Spawned tasks have an order of their own.
    const commutes =
      cls.commutes !== undefined && parent === undefined && this.mayCommute
        ? cls.commutes
        : undefined;
    if (commutes !== undefined) this.dispatcher.placeless.add(id);
    const isPlain = commutes === undefined && parent === undefined;
    if (cls.body !== undefined && cls.network === undefined && this.remote !== undefined)
      this.arrivals.bodyInserted(id);
    for (let i = 0; i < nFlows; i++) {
      const d = flows[i];
      const mode = modes[i];
      tasks.flowDatum[flowStart + i] = d;
      if (isPlain) dependencies.order(id, row, d, mode);
      else if (parent === undefined) dependencies.order(id, row, d, mode, commutes?.[i] === 1);
      else joins.order(parent, row, d, mode);
      if (mode !== AccessMode.read) directory.written[d] = 1;
    }
    const paramStart = tasks.paramStart[row];
    for (let i = 0; i < nParams; i++) tasks.params[paramStart + i] = params[i];
    if (after !== undefined) this.follow(id, row, after);
    if (this.bodies.waiting > 0) this.bodies.inserted();
    if (parent !== undefined) joins.hold(parent, row);

    if (--tasks.pending[row] === 0) this.dispatcher.release(row);
    // The task is already issued. Its events order later tasks after it, so the graph needs no edge.
    const known = tasks.execution[row] === Execution.command;
    for (let i = 0; i < nFlows; i++) {
      if (!isPlain && commutes?.[i] === 1) dependencies.commute(id, flows[i]);
      else if (!isPlain && parent !== undefined) joins.register(parent, id, flows[i], modes[i]);
      else if (!known) dependencies.register(id, flows[i], modes[i]);
      else if (modes[i] !== AccessMode.read) dependencies.forget(flows[i]);
    }
    if (++this.insertsSincePass >= this.passAfter) this.pump();
    return id;
  }

  /** Whether tasks that commute may run in any order. All ranks, and all plays of a plan, must find the same one. */
  protected get mayCommute(): boolean {
    return this.remote === undefined;
  }

  /**
   * Waits until a task of that class fits the window, or extends the window. Bodies may run and insert meanwhile, so
   * callers that keep arguments in scratch memory call this before they fill it. `call`: what the program has called in place of
   * `insert`, for the message.
   * @throws HeadraceError `ERR_WINDOW_FULL`
   */
  reserveRow(cls: TaskClassRow, call?: string): void {
    this.room.reserve(cls, call);
  }

  /** Live tasks that a task inserted now would follow. */
  private predecessors({ cls: { modes }, flows, after = [] }: TaskInsertion): TaskId[] {
    const { dependencies } = this;
    return modes.reduce<TaskId[]>(
      (all, mode, i) => {
        const d = flows[i];
        return all.concat(
          mode === AccessMode.read ? dependencies.writers(d) : dependencies.users(d),
        );
      },
      [...after],
    );
  }

  private follow(id: TaskId, row: number, after: readonly TaskId[]): void {
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

  // --- Movements ----------------------------------------------------------------------------------------------

  /** The task in `row` holds no resources yet and uses space `s`. */
  moveTo(row: number, s: SpaceId): void {
    const { tasks, deviceChoice } = this;
    deviceChoice.load[tasks.device[row]]--;
    deviceChoice.load[s]++;
    tasks.device[row] = s;
  }

  /** The task in `row` holds no resources yet and has no work to do. */
  skip(row: number): void {
    this.retirement.skip(row);
  }

  /** The movement in `row` has ended with `status`. */
  ended(row: number, status: number): void {
    this.retirement.retired(row, status);
  }

  /** The task in `row` of a failed run goes on as one of the runtime's own: the run does not wait for it. */
  outlives(row: number, run: RunState): void {
    const own = this.runs[INTERNAL_RUN] as RunState;
    own.inserted++;
    this.tasks.run[row] = INTERNAL_RUN;
    run.cancelledTasks++;
    this.openRuns.taskIsOver(run);
  }

  /** A task of a failed run that was not issued is over. */
  dropTask(row: number, run: RunState): void {
    this.failures.dropTask(row, run);
  }

  // --- The pass -----------------------------------------------------------------------------------------------

  pump(): boolean {
    if (this.pumping) return false;
    this.pumping = true;
    this.insertsSincePass = 0;
    this.progressed = 0;
    this.messages = 0;
    const { x } = this;
    x.now = this.backend.now();
    try {
      this.observer?.passBegins(x.now);
      this.round();
      if (this.bodies.depth === 0 && this.bodies.queued.length > 0) {
        // A body may insert, and insertion may need a pass.
        this.pumping = false;
        this.bodies.run();
        this.pumping = true;
        // Everything that the bodies released, freed or inserted must be published before the engine sleeps.
        this.round();
      }
      // Movements whose bytes are at hand end in the middle of a round. The memory that they free may serve tasks
      // that were already checked in this round.
      while (this.completions.memoryCameBack()) this.round();
      // A message of another rank may have ended the last task before a section, after the round looked at the sections.
      while (this.sections.isClosed && this.sections.look()) {
        this.progressed++;
        this.round();
      }
      this.tasks.retireHead();
      this.room.passed();
      this.completions.forgetOldEvents();
      if (this.checked) this.validateState();
    } finally {
      this.pumping = false;
    }
    if (this.progressed > this.messages) this.movedAt = this.x.now;
    this.observer?.passEnds(this.x.now);
    if (this.tellsRuns) {
      if (this.progressed > 0) this.openRuns.reportProgress();
      this.held?.passed();
      this.openRuns.reportOver();
    }
    return this.progressed > 0;
  }

  get isUnderWay(): boolean {
    return this.pumping;
  }

  private round(): void {
    const { remote } = this;
    this.completions.take();
    if (this.sections.isClosed && this.sections.look()) this.progressed++;
    this.dropped.look();
    if (remote?.poll() === true) {
      this.progressed++;
      this.messages++;
    }
    this.dispatcher.drainReleased();
    while (this.joins.isWaiting && this.joins.look()) {
      this.progressed++;
      // A task behind a parent that is over may have been dropped, and be the last that another parent waits for.
      this.dispatcher.drainReleased();
    }
    this.completions.wakeWaiters();
    this.pressure.look();
    this.dispatcher.startReady();
    while (remote !== undefined && (this.arrivals.look() || remote.tasks.commandHeld())) {
      this.dispatcher.drainReleased();
      this.dispatcher.startReady();
    }
    this.publish();
    this.passAfter = this.queueChoice.allBusy() ? INSERTS_PER_PASS_WHEN_BUSY : INSERTS_PER_PASS;
  }

  private publish(): void {
    this.unpublished = 0;
    this.backend.publish();
    this.observer?.published(this.x.now);
    this.remote?.publish();
  }

  // --- Hooks of the stages ------------------------------------------------------------------------------------

  issued(row: number): void {
    this.progressed++;
    if (this.observer !== undefined) this.observer.issued(row);
    if (this.remote !== undefined && this.isMovement(row)) this.movementIssued(row, this.remote);
    else this.releaseSuccessors(row);
    // Now the network knows of the command as well.
    if (++this.unpublished >= ISSUES_PER_PUBLISH && this.pumping) this.publish();
  }

  private movementIssued(row: number, remote: Remote): void {
    remote.tasks.commanded(row);
    const execution = this.tasks.execution[row];
    if (execution === Execution.arrival) this.arrivals.commanded(row);
    else if (execution !== Execution.movement) this.releaseSuccessors(row);
  }

  /** The successors of the issued task in `row` may follow its event. */
  private releaseSuccessors(row: number): void {
    const { tasks, x } = this;
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
      this.dispatcher.releaseOne(successor, row);
      n = edges.free(n);
    }
  }

  receivesBehind(id: TaskId): number {
    return this.arrivals.behind(this.joins.rootOf(id));
  }

  startBody(row: number): number {
    if (this.remote !== undefined && this.isMovement(row)) return this.remote.tasks.start(row);
    this.bodies.queue(row);
    return Outcome.running;
  }

  fail(row: number, error: HeadraceError): void {
    this.retirement.fail(row, error);
  }

  memoryText(): string {
    return memoryText(this);
  }

  // --- Questions ----------------------------------------------------------------------------------------------

  /** The reason why each live task waits, and the holders of the memory. */
  explain(): string {
    return explainAll(this);
  }

  /** The same text, with the stories of tasks that stand still, where the engine keeps them. */
  private explainStandstill(): string {
    const stories = this.story?.ofStandstill() ?? '';
    return stories === '' ? this.explain() : `${this.explain()}\n${stories}`;
  }

  /** The caller is a JavaScript body, also after an `await`. */
  get inBody(): boolean {
    return this.bodies.isRunning;
  }

  /** Throws when an invariant does not hold. Checked runs call it after every pass. */
  validateState(): void {
    const { dependencies, dispatcher, joins, queueChoice } = this;
    validate(this, { dependencies, joins, ready: [...dispatcher.ready, ...queueChoice.lines] });
  }
}
