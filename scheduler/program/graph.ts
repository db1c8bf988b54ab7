// Insertion: turns a task in the user's words (class, data and parameters by name) into a row of the engine, after it
// has checked every possible mistake of a user. `insert` throws the error and leaves the graph unchanged.

import { HeadraceError } from '../../devices/errors.js';
import type { Column, DatumId, TaskHandle, TaskId } from '../../devices/handles.js';
import { ANY_DEVICE, type TaskClassRow } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import { isInstance, reading, shown } from '../checks.js';
import type { Engine } from '../engine/engine.js';
import type { RunState } from '../engine/run-state.js';
import type { ProgramInsertion, TaskInsertion } from '../engine/task-insertion.js';
import { isElsewhere } from '../ranks/cross-rank-order.js';
import { ANY_RANK, checkSpawned, insertOnRanks } from '../ranks/insertion.js';
import { checkArgumentNames } from './argument-names.js';
import type { TaskArguments, TaskGraph, TaskOptions } from './body-types.js';
import type { BoundClass } from './bound-class.js';
import { hasDataParameters, plainTask } from './class-shapes.js';
import { Datum } from './datum.js';
import type { ElementType } from './element-type.js';
import type { PendingTask } from './reductions.js';
import { type GraphRuntime, type Repetition, RunView } from './run-view.js';
import { checkSpawn } from './spawning.js';
import {
  badArguments,
  badDatum,
  badParameter,
  checkAfter,
  checkPriority,
  checkRank,
  checkTaskOptions,
  duplicateDatum,
  neverWritten,
  reentered,
  unreadable,
  unreadableOptions,
} from './task-arguments.js';
import {
  type Flows,
  isTaskClass,
  ParameterKind,
  type Parameters,
  type TaskClass,
} from './task-class.js';
import { checkSize, deviceHint } from './task-memory.js';

export type { ParameterArgument, TaskArguments, TaskGraph, TaskOptions } from './body-types.js';
export type { GivenTask, GraphRuntime, InsertionWatch, Repetition } from './run-view.js';

/** Arguments for which the record of a graph has room at first. Runs may be short, and each has a graph. */
const FEW_ARGUMENTS = 16;

const NO_OPTIONS: TaskOptions = {};

/** Holds the place of the class in a record of which no task was made yet. */
const NO_CLASS: TaskClassRow = {
  id: -1,
  name: '',
  flowNames: [],
  paramNames: [],
  modes: [],
  kernels: new Int32Array(0),
  body: undefined,
  explain: undefined,
  failureCode: undefined,
};

/** Inserts tasks into a run, in program order. */
export class Graph extends RunView implements TaskGraph {
  private flows: Column<Int32Array, DatumId>;
  private params: Float64Array;
  private readonly insertion: ProgramInsertion;
  /** Changes with every insertion. */
  private turn = 0;
  /** The task whose body spawns the task that is being inserted. */
  private spawner: TaskId | undefined;
  private lastClass: unknown = NO_CLASS;
  private lastBound: BoundClass | undefined;

  /** @internal */
  constructor(runtime: GraphRuntime, engine: Engine, run: RunState) {
    super(runtime, engine, run);
    this.flows = new Int32Array(FEW_ARGUMENTS) as Column<Int32Array, DatumId>;
    this.params = new Float64Array(FEW_ARGUMENTS);
    const { flows, params } = this;
    const cls = NO_CLASS;
    this.insertion = {
      cls,
      run,
      flows,
      params,
      priority: 0,
      device: ANY_DEVICE,
      after: undefined,
      parent: undefined,
    };
    run.graph = this;
  }

  /**
   * Inserts a task after all tasks inserted before it: it sees their writes, and they do not see its writes. Returns at
   * once unless the task window is full; then it waits until earlier tasks have run.
   *
   * @throws HeadraceError `ERR_MISSING_ARGUMENT`, `ERR_UNKNOWN_ARGUMENT`, `ERR_ARGUMENT_TYPE`, `ERR_FOREIGN_DATUM`, `ERR_DATUM_CLOSED`,
   *   `ERR_NEVER_WRITTEN`, `ERR_DUPLICATE_DATUM`, `ERR_TASK_TOO_LARGE`, `ERR_UNKNOWN_KERNEL`, `ERR_KERNEL_SOURCE`,
   *   `ERR_NO_DEVICE`, `ERR_RUN_OVER`; or the run's own error if the run has failed or was aborted.
   */
  insert<F extends Flows, P extends Parameters>(
    cls: TaskClass<F, P>,
    args: TaskArguments<F, P>,
    options?: TaskOptions,
  ): TaskHandle {
    // Small, so that V8 compiles what a recognised run compares into the loop of the program.
    const { engine, run, spawner, watch } = this;
    this.spawner = undefined;
    if (engine.callbacks.isUnderWay) engine.callbacks.check('graph.insert()');
    if (run.error !== undefined) throw run.error;
    if (run.over) this.throwOver();
    if (watch?.accepts(cls, args, options) === true) return watch.handle;
    return this.insertTask(cls, args, options, spawner);
  }

  /** As `insert`, for a task that does not come again where it is expected. */
  private insertTask<F extends Flows, P extends Parameters>(
    cls: TaskClass<F, P>,
    args: TaskArguments<F, P>,
    options: TaskOptions | undefined,
    spawner: TaskId | undefined,
  ): TaskHandle {
    const { engine, run, watch } = this;
    if (watch !== undefined && !watch.isQuiet) {
      if (watch.takes({ cls, args, options, inOrder: undefined })) return watch.handle;
      // What was held back is inserted first, and may fail.
      if (run.error !== undefined) throw run.error;
    }
    if (this.lastClass !== cls) {
      if (isTaskClass(cls) && cls.lists !== undefined)
        return this.insertShape(cls as TaskClass, args, options, spawner);
      this.bind(cls as unknown as TaskClass);
    }
    const bound = this.lastBound as BoundClass;
    const { row } = bound;
    const { flowNames, paramNames } = row;
    if (args === null || typeof args !== 'object') throw badArguments(bound, args);
    const { tasks } = engine;
    if (!tasks.hasRoom(flowNames.length, paramNames.length)) {
      engine.reserveRow(bound.row);
      if (run.error !== undefined) throw run.error;
    }
    // Arguments and options may have getters, which may run any code.
    const turn = ++this.turn;
    const { next } = tasks;
    const named = args as unknown as Record<string, unknown>;
    let isPlain: boolean;
    try {
      this.readData(bound, named, spawner);
      isPlain = paramNames.length === 0 || this.readParameters(bound, named);
      if (isPlain && bound.uncheckedArguments > 0) {
        bound.uncheckedArguments--;
        checkArgumentNames(row, named);
      }
    } catch (error) {
      throw unreadable(bound, named, this.runtime.programData, error);
    }
    if (!isPlain) return this.insertShape(bound.cls, args, options, spawner);
    return this.insertRecord(bound, options, spawner, turn, next);
  }

  /**
   * @internal Inserts a task as `insert` does, with its data in the order of the flows (the array may be longer) and, of a class with
   * parameters, an object that has them. It spares the parameterised graphs an object and a search for names per task. What it does not do at once, and
   * every mistake, it leaves to `insert`.
   */
  insertInOrder(
    cls: TaskClass,
    data: readonly Datum[],
    params: Readonly<Record<string, unknown>> | undefined,
    options: TaskOptions | undefined,
  ): TaskHandle {
    const { engine, run, watch } = this;
    const { parts } = this.runtime;
    // The order of these tasks is that of the graph's edges, which do not say what parts have in common.
    if (parts.isUsed) parts.refuseAll(cls.name, data);
    if (engine.callbacks.isUnderWay || run.error !== undefined || run.over)
      return this.insertNamed(cls, data, params, options);
    if (watch?.accepts(cls, params, options, data) === true) return watch.handle;
    if (watch !== undefined && !watch.isQuiet) {
      if (watch.takes({ cls, args: params, options, inOrder: data })) return watch.handle;
      if (run.error !== undefined) throw run.error;
    }
    if (this.lastClass !== cls) this.bind(cls);
    const bound = this.lastBound as BoundClass;
    if (bound.uncheckedArguments > 0) return this.insertNamed(cls, data, params, options);
    const { flowNames, paramNames } = bound.row;
    const { tasks } = engine;
    if (!tasks.hasRoom(flowNames.length, paramNames.length)) {
      engine.reserveRow(bound.row);
      if (run.error !== undefined) throw run.error;
    }
    const turn = ++this.turn;
    const { next } = tasks;
    if (!this.readDataInOrder(bound, data)) return this.insertNamed(cls, data, params, options);
    if (
      paramNames.length > 0 &&
      !this.readParameters(bound, params as Readonly<Record<string, unknown>>)
    )
      return this.insertNamed(cls, data, params, options);
    return this.insertRecord(bound, options, undefined, turn, next);
  }

  /** @internal Whether `untilStretch` may be known. */
  get mayComeAgain(): boolean {
    return this.watch?.isInStretches === true;
  }

  /** @internal Insertions before the next stretch of those that the run repeats; undefined if it is not known to repeat one. */
  get untilStretch(): number | undefined {
    return this.watch?.untilStretch;
  }

  /**
   * @internal Where a stretch begins: the last insertions come again, in the same order and with the same parameters. Returns how many of
   * those that are ahead are as good as inserted now, and must not be inserted any more. The run may fail meanwhile.
   */
  again(of: Repetition): number {
    return this.watch?.again(of) ?? 0;
  }

  /** As `insertInOrder`, by `insert`. */
  protected insertNamed(
    cls: TaskClass,
    data: readonly Datum[],
    params: Readonly<Record<string, unknown>> | undefined,
    options: TaskOptions | undefined,
  ): TaskHandle {
    const of = `the parameters of task class '${cls.name}'`;
    const args: Record<string, unknown> = reading('ERR_ARGUMENT_TYPE', of, () => ({ ...params }));
    for (let i = 0; i < cls.flowNames.length; i++) args[cls.flowNames[i]] = data[i];
    return this.insert(cls, args as TaskArguments<Flows, Parameters>, options);
  }

  private bind(cls: TaskClass): void {
    this.lastBound = this.runtime.classes.bind(cls);
    this.lastClass = cls;
    this.makeRoom(this.lastBound.row);
  }

  /** Inserts the task whose data and parameters have been read into the record since the turn `turn`, when task `next` came next. */
  private insertRecord(
    bound: BoundClass,
    options: TaskOptions | undefined,
    spawner: TaskId | undefined,
    turn: number,
    next: TaskId,
  ): TaskHandle {
    const { engine, run, insertion } = this;
    const { row, cls } = bound;
    const { directory, tasks } = engine;
    const count = row.flowNames.length;
    insertion.priority = 0;
    insertion.device = ANY_DEVICE;
    insertion.after = undefined;
    const rank = options === undefined ? ANY_RANK : this.readOptions(bound, options);
    if (turn !== this.turn || next !== tasks.next) throw reentered(bound);
    if (run.error !== undefined) throw run.error;
    const mayBeLarge = directory.largest * count > bound.safeBytes;
    const { device } = insertion;
    if (device >= 0 || (mayBeLarge && this.sumOfBytes(count) > bound.safeBytes))
      checkSize(engine, bound, insertion.flows, device);
    insertion.cls = row;
    const { watch } = this;
    if (
      watch !== undefined &&
      watch.glance?.passes(insertion.flows, count - 1, watch.place) !== true
    )
      watch.notes(insertion, cls, rank);
    insertion.parent = spawner;
    const { parts } = this.runtime;
    if (spawner !== undefined) return this.insertSpawned(bound, spawner, rank);
    const hasParts = parts.isUsed && parts.concerns(row, insertion.flows);
    if (hasParts) this.admitParts(bound);
    if (hasParts || cls.reductions !== undefined || this.runtime.reductions.isOpen)
      return this.placeAfterOthers(bound, rank);
    return this.place(insertion, rank);
  }

  /** Inserts the task in the record, which the body of task `spawner` spawns. */
  private insertSpawned(bound: BoundClass, spawner: TaskId, rank: number): TaskHandle {
    const { engine, run, insertion } = this;
    const { parts, bodyParts, reductions, peers } = this.runtime;
    const own = parts.isUsed ? bodyParts?.usedBy(spawner, bound, insertion.flows) : undefined;
    if (peers !== undefined) checkSpawned(engine, peers, insertion, rank);
    checkSpawn(engine, spawner, insertion, {
      isReducedInto: (d) => reductions.isInto(d),
      wholeOf: (d) => own?.wholeOf(d) ?? d,
    });
    // Its reducing flows change the datum itself, one task after the other.
    if (own === undefined) return this.place(insertion, rank);
    const { row } = bound;
    own.checkOverlaps(row, insertion.flows);
    if (own.isReady(bound, insertion.flows)) {
      own.comes(bound, insertion.flows, rank);
      return this.place(insertion, rank);
    }
    // Tasks of an asynchronous body may come first, with bodies that fill the record anew.
    const [flows, params] = [insertion.flows.slice(), insertion.params.slice()];
    const task = { ...insertion, flows: flows as never, params };
    const data = this.dataOf(row, flows);
    do {
      own.prepare(bound, task, rank);
      engine.reserveRow(row);
      if (run.error !== undefined) throw run.error;
      this.checkOpen(bound, data, spawner);
    } while (!own.isReady(bound, task.flows));
    own.comes(bound, task.flows, rank);
    return this.place(task, rank);
  }

  /** Makes the record large enough for tasks of a class. */
  private makeRoom({ flowNames, paramNames }: TaskClassRow): void {
    const most = Math.max(flowNames.length, paramNames.length);
    if (most <= this.flows.length) return;
    this.flows = new Int32Array(most) as Column<Int32Array, DatumId>;
    this.params = new Float64Array(most);
    this.insertion.flows = this.flows;
    this.insertion.params = this.params;
  }

  /**
   * Places the task in the record. It belongs to reductions, ends some, uses parts, or has nothing to do with those that are open. Its data
   * may get their first parts while it waits for room.
   */
  private placeAfterOthers(bound: BoundClass, wanted: number): TaskHandle {
    const { engine, run, insertion } = this;
    const { reductions, parts } = this.runtime;
    const reduces = bound.cls.reductions !== undefined && wanted === ANY_RANK;
    const rank = reduces ? reductions.rankOf(bound, insertion.flows) : wanted;
    let task: PendingTask = { bound, insertion, graph: this, rank };
    const lacksParts = (): boolean => parts.isUsed && !parts.isReady(bound, task.insertion.flows);
    const isBroken = parts.isUsed && parts.isBroken(bound, insertion.flows);
    if (isBroken || lacksParts() || !reductions.isReady(task)) {
      // The tasks that come first, and bodies that run meanwhile, fill the record anew.
      const [flows, params] = [insertion.flows.slice(), insertion.params.slice()];
      task = { ...task, insertion: { ...insertion, flows: flows as never, params } };
      const data = this.dataOf(bound.row, flows);
      if (isBroken) parts.settle(bound, task.insertion.flows);
      do {
        if (!reductions.isReady(task)) reductions.prepare(task, data);
        this.checkOpen(bound, data);
        if (parts.isUsed) parts.prepare(bound, task.insertion, rank);
        engine.reserveRow(bound.row);
        if (run.error !== undefined) throw run.error;
        this.checkOpen(bound, data);
      } while (lacksParts() || !reductions.isReady(task));
    }
    if (parts.isUsed) parts.comes(bound, task.insertion.flows, rank);
    reductions.replace(task);
    try {
      const handle = this.place(task.insertion, rank);
      reductions.placed();
      return handle;
    } catch (error) {
      reductions.failed();
      throw error;
    }
  }

  /** The data in a record. */
  private dataOf({ modes }: TaskClassRow, flows: Int32Array): Datum[] {
    const { info } = this.engine.directory;
    return modes.map((_, i) => info[flows[i]] as Datum);
  }

  /**
   * While a task waits for room, bodies may close its data, and other data may get their rows.
   * @throws HeadraceError `ERR_DATUM_CLOSED`
   */
  private checkOpen(bound: BoundClass, data: readonly Datum[], spawner?: TaskId): void {
    for (const [i, datum] of data.entries())
      if (datum.closed && !this.isOfParent(datum, datum.element, spawner))
        throw badDatum(bound, i, datum, data, this.runtime.programData);
  }

  /** The task in the record uses parts, or data that have parts. */
  private admitParts(bound: BoundClass): void {
    const { parts, bodyParts } = this.runtime;
    bodyParts?.toProgram(bound.row, this.insertion.flows, (of, region) => parts.part(of, region));
    parts.check(bound, this.insertion);
    this.watch?.asks('its tasks use parts of data');
  }

  /**
   * @internal The body of task `parent` inserts a task that belongs to it (body-context.ts).
   * @throws HeadraceError `ERR_SPAWN_ORDER`, `ERR_INSERT_ALONE`, and the errors of `insert`
   */
  spawn(
    parent: TaskId,
    cls: TaskClass,
    args: TaskArguments<Flows, Parameters>,
    options?: TaskOptions,
  ): TaskHandle {
    this.spawner = parent;
    try {
      return this.insert(cls, args, options);
    } finally {
      this.spawner = undefined;
    }
  }

  /** @internal Inserts a record whose values are checked, for rank `rank` or, if that is ANY_RANK, where its data belong. */
  protected place(insertion: ProgramInsertion, rank: number): TaskHandle {
    const ranks = this.runtime.peers;
    // Without other ranks all predecessors are tasks of this one, and so are those of a spawned task.
    return ranks === undefined || insertion.parent !== undefined
      ? this.engine.insert(insertion as TaskInsertion)
      : insertOnRanks(this.engine, ranks, insertion, rank);
  }

  /** @internal Whether a number is the handle of a task that was inserted. */
  protected isHandle(handle: number): boolean {
    const { engine, ranks } = this;
    if (engine.tasks.wasTaken(handle) || isElsewhere(handle, ranks)) return true;
    return engine.held?.isHandle(handle) === true;
  }

  /** Inserts a task with lists, or with parameters that are data, as one of its shape (class-shapes.ts). */
  private insertShape(
    cls: TaskClass,
    args: object,
    options: TaskOptions | undefined,
    spawner: TaskId | undefined,
  ): TaskHandle {
    if (args === null || typeof args !== 'object')
      throw badArguments(this.runtime.classes.bind(cls), args);
    const plain = plainTask(cls, args as Record<string, unknown>);
    this.spawner = spawner;
    return this.insert(plain.cls, plain.args as TaskArguments<Flows, Parameters>, options);
  }

  /** Checks the data and resolves them to rows in scratch memory. */
  private readData(
    bound: BoundClass,
    named: Record<string, unknown>,
    spawner: TaskId | undefined,
  ): void {
    const { flows } = this;
    const { directory } = this.engine;
    const { tokens } = bound;
    const { flowNames, modes } = bound.row;
    for (let i = 0; i < flowNames.length; i++) {
      const datum = named[flowNames[i]] as Datum | null | undefined;
      // Only open data of this runtime with the flow's element type have this token. All other values fail here.
      if (
        datum === undefined ||
        datum === null ||
        ((datum.token !== tokens[i] || directory.info[datum.row] !== datum) &&
          !this.isOfParent(datum, bound.cls.elements[i], spawner))
      )
        throw badDatum(bound, i, datum, named, this.runtime.programData);
      const d = datum.row;
      flows[i] = d;
      if (modes[i] !== AccessMode.write && directory.written[d] === 0 && !this.isHidden(d))
        throw neverWritten(bound, i, datum);
    }
    if (bound.written.length > 0) this.checkDuplicates(bound);
  }

  /**
   * Whether a datum was closed behind the task whose body spawns one on it. The memory of a datum goes after its last task, and what the
   * body spawns belongs to that task.
   */
  private isOfParent(datum: unknown, element: ElementType, spawner: TaskId | undefined): boolean {
    const { directory, joins } = this.engine;
    if (spawner === undefined || !isInstance(datum, Datum) || !datum.closed) return false;
    const isHere = directory.info[datum.row] === datum && datum.element === element;
    return isHere && joins.uses(spawner, datum.row);
  }

  /** As `readData`, for data in the order of the flows. False: one of them is not what the flow needs. */
  private readDataInOrder(bound: BoundClass, data: readonly Datum[]): boolean {
    const { flows } = this;
    const { directory } = this.engine;
    const { tokens } = bound;
    const { modes } = bound.row;
    for (let i = 0; i < modes.length; i++) {
      const datum = data[i];
      const d = datum.row;
      if (datum.token !== tokens[i] || directory.info[d] !== datum) return false;
      flows[i] = d;
      if (modes[i] !== AccessMode.write && directory.written[d] === 0) return false;
    }
    if (bound.written.length > 0) this.checkDuplicates(bound);
    return true;
  }

  /** Checks the parameters and resolves them to numbers in scratch memory. False: one of them is a datum. */
  private readParameters(bound: BoundClass, named: Readonly<Record<string, unknown>>): boolean {
    const { params } = this;
    const { kinds } = bound;
    const { paramNames } = bound.row;
    for (let i = 0; i < paramNames.length; i++) {
      const value = named[paramNames[i]];
      const kind = kinds[i];
      if (typeof value === 'number' && kind !== ParameterKind.bool) {
        if (kind === ParameterKind.i32 && (value | 0) !== value)
          throw badParameter(bound, i, value, named);
        params[i] = value;
      } else if (typeof value === 'boolean' && kind === ParameterKind.bool) {
        params[i] = value ? 1 : 0;
      } else if (hasDataParameters(bound.cls, named)) return false;
      else throw badParameter(bound, i, value, named);
    }
    return true;
  }

  /** Checks the options and puts them into the record of the insertion. Returns the rank. */
  private readOptions(bound: BoundClass, options: TaskOptions): number {
    const { insertion } = this;
    let { priority, device, rank, after }: TaskOptions = NO_OPTIONS;
    try {
      ({ priority, device, rank, after } = options);
    } catch (error) {
      throw unreadableOptions(bound, options, error);
    }
    if (priority !== undefined) insertion.priority = checkPriority(bound, priority);
    if (device !== undefined) insertion.device = deviceHint(this.engine, bound, device);
    const on = rank === undefined ? ANY_RANK : checkRank(bound, rank, this.ranks);
    if (after !== undefined) {
      const handles = checkAfter(bound, after, (handle) => this.isHandle(handle));
      insertion.after = this.engine.held?.tasksOf(handles) ?? handles;
    }
    const isEmpty = (priority ?? device ?? rank ?? after) === undefined;
    if (isEmpty || bound.unchecked > 0) {
      checkTaskOptions(bound, options);
      bound.unchecked--;
    }
    return on;
  }

  private checkDuplicates(bound: BoundClass): void {
    const { flows } = this;
    const n = bound.row.flowNames.length;
    if (n > 32) {
      this.checkManyDuplicates(bound);
      return;
    }
    const { written } = bound;
    for (let w = 0; w < written.length; w++) {
      const i = written[w];
      const d = flows[i];
      for (let j = 0; j < n; j++) {
        if (flows[j] === d && j !== i) throw this.duplicate(bound, Math.min(i, j), Math.max(i, j));
      }
    }
  }

  /** As `checkDuplicates`, for tasks with so many data that comparing all pairs takes longer. */
  private checkManyDuplicates(bound: BoundClass): void {
    const { modes } = bound.row;
    const { flows } = this;
    const seen = new Map<number, number>();
    for (let i = 0; i < modes.length; i++) {
      const j = seen.get(flows[i]);
      if (j === undefined) seen.set(flows[i], i);
      else if (modes[i] !== AccessMode.read || modes[j] !== AccessMode.read)
        throw this.duplicate(bound, j, i);
    }
  }

  private duplicate(bound: BoundClass, j: number, i: number): HeadraceError {
    const datum = this.engine.directory.info[this.flows[i]]?.name ?? '';
    return duplicateDatum(bound, j, i, datum);
  }

  private sumOfBytes(n: number): number {
    let bytes = 0;
    for (let i = 0; i < n; i++) bytes += this.engine.directory.bytes[this.flows[i]];
    return bytes;
  }
}

/** `what` is inserted into a graph. @throws HeadraceError `ERR_ARGUMENT_TYPE` when that is none @internal */
export function checkGraph(graph: unknown, what: string): void {
  if (isInstance(graph, Graph)) return;
  throw new HeadraceError(
    'ERR_ARGUMENT_TYPE',
    `${what} is inserted into the graph of a run or a plan, not into ${shown(graph)}`,
  );
}
