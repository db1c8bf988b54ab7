// Tasks that bodies spawn: the task of the body is over when they are.
//
// A spawned task uses the data of its parent under an order of their own, in which the spawned tasks follow each other, and neither
// their parent nor the tasks behind it. The parent has these data to itself until it is over. All other data it uses in program
// order, like every task that a body inserts.
//
// Invariants: no spawned task is released before the body that spawned it has ended; a parent stays in stage finalize, and
// releases no successor, until the tasks that it has spawned are done; no spawned task waits for a task that waits for the
// end of its parent (graph.spawn refuses it); if a spawned task does not do its part, the data that its parent writes have no
// value when the parent is over, also those that the spawned task does not use; what the family has written to data of the parent
// counts as written at the place of the parent in program order (scheduler/failure/poison.ts).
import { guards } from '../../devices/guards.js';
import { type DatumId, FIRST_DATUM, type TaskId } from '../../devices/handles.js';
import { TaskStage } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import type { DeferredCalls } from './deferred-calls.js';
import { Dependencies } from './dependencies.js';
import type { Dispatcher } from './dispatcher.js';
import type { EngineState } from './state.js';

/** What a parent and its spawned tasks wait for. */
interface Join {
  readonly parent: TaskId;
  /** Spawned tasks that are not known to be done. */
  readonly children: TaskId[];
  /** Rows of the table of the own orders, by datum of the parent. */
  readonly rows: Map<DatumId, DatumId>;
  bodyIsOver: boolean;
  /** A task of the family has failed or will not run. */
  isLost: boolean;
  /** Called outside of passes when the task is over. */
  readonly whenOver: (() => void)[];
}

/** Why a task must not be spawned. */
type SpawnProblem = 'writes' | 'waits';

export class Joins {
  private readonly state: EngineState;
  private readonly dispatcher: Pick<Dispatcher, 'releaseOne'>;
  private readonly deferred: Pick<DeferredCalls, 'defer'>;
  /** The order of program and bodies. */
  private readonly program: Dependencies;
  /** The own orders of all joins: each has rows for the data of its parent. */
  private readonly own: Dependencies;
  private readonly freeRows: DatumId[] = [];
  private rowsMade = 0;
  private readonly joins: Map<TaskId, Join> = new Map();
  /** The parents of spawned tasks that are not known to be done. */
  private readonly parents: Map<TaskId, TaskId> = new Map();
  /** Spawned tasks whose parents have failed; some may not be over. */
  private orphans: TaskId[] = [];
  private last: TaskId | undefined;
  private readonly joined: (row: number, isLost: boolean) => void;

  /** `joined`: the tasks that the task in a row has spawned are over, so it is over, too; `isLost`: one of them has not done its part. */
  constructor(
    state: EngineState,
    program: Dependencies,
    dispatcher: Pick<Dispatcher, 'releaseOne'>,
    deferred: Pick<DeferredCalls, 'defer'>,
    joined: (row: number, isLost: boolean) => void,
  ) {
    this.state = state;
    this.deferred = deferred;
    this.program = program;
    this.own = new Dependencies(state.tasks, { observer: undefined }, program.edges);
    this.dispatcher = dispatcher;
    this.joined = joined;
    program.families = {
      parentOf: (task) => this.parents.get(task),
      heldBy: (parent) => (this.isOpen(parent) ? this.childrenOf(parent) : []),
    };
  }

  /** Some task has spawned others and is not over. */
  get isWaiting(): boolean {
    return this.joins.size > 0;
  }

  /** Whether a task that is in the window was spawned. Its place in program order says nothing about its place in time. */
  get hasSpawned(): boolean {
    return this.last !== undefined && this.state.tasks.contains(this.last);
  }

  /** Tasks that a task has spawned and that are not known to be done. */
  childrenOf(parent: TaskId): readonly TaskId[] {
    return this.joins.get(parent)?.children ?? [];
  }

  /** The task of the program whose body has spawned the task, or that of an ancestor. Its place is that of the whole family. */
  rootOf(task: TaskId): TaskId {
    let root = task;
    for (const id of this.ancestors(task)) root = id;
    return root;
  }

  /** The task in whose place in program order a task uses datum `d`: itself, or the outermost parent whose datum it is. */
  private placeOf(task: TaskId, d: DatumId): TaskId {
    const { tasks } = this.state;
    let place = task;
    for (const id of this.ancestors(task))
      if (id !== task && tasks.contains(id) && this.uses(id, d)) place = id;
    return place;
  }

  /** The tasks that wait for the end of the body that has spawned them. */
  *held(): Generator<TaskId> {
    if (!guards.spawnedHeld) return;
    for (const { children, bodyIsOver } of this.joins.values()) if (!bodyIsOver) yield* children;
  }

  /** Whether a task waits for the end of the body that has spawned it. */
  isHeld(task: TaskId): boolean {
    const parent = this.parents.get(task);
    return parent !== undefined && this.joins.get(parent)?.bodyIsOver === false;
  }

  // --- Insertion ----------------------------------------------------------------------------------------------

  /** Why `parent` must not spawn a task with that access to datum `d`. */
  problem(parent: TaskId, d: DatumId, mode: number): SpawnProblem | undefined {
    const given = this.modeIn(parent, d);
    if (given !== undefined)
      return given === AccessMode.read && mode !== AccessMode.read ? 'writes' : undefined;
    for (const task of this.ancestors(parent))
      if (this.program.wouldFollow(task, d, mode)) return 'waits';
    return undefined;
  }

  /** Whether a task that `parent` spawns may follow task `id` without data. */
  mayFollow(parent: TaskId, id: TaskId): boolean {
    const { tasks } = this.state;
    if (!tasks.contains(id) || tasks.stage[id & tasks.mask] === TaskStage.done) return true;
    return this.childrenOf(parent).includes(id);
  }

  /** Whether a datum is among those of a task. */
  uses(task: TaskId, d: DatumId): boolean {
    return this.modeIn(task, d) !== undefined;
  }

  /** Orders a task that is being spawned after the earlier ones that conflict with its access to datum `d`. */
  order(parent: TaskId, row: number, d: DatumId, mode: number): void {
    const id = this.state.tasks.idOf(row);
    const own = this.rowOf(parent, d);
    if (own === undefined) this.program.order(id, row, d, mode);
    else this.own.order(id, row, own, mode);
  }

  /** Registers the access of a spawned task, so that later ones are ordered after it. */
  register(parent: TaskId, id: TaskId, d: DatumId, mode: number): void {
    const own = this.rowOf(parent, d);
    if (own === undefined) this.program.register(id, d, mode);
    else this.own.register(id, own, mode);
  }

  /** The spawned task in `row` waits for the end of the body of its parent. */
  hold(parent: TaskId, row: number): void {
    const { tasks } = this.state;
    const id = tasks.idOf(row);
    if (guards.spawnedHeld) tasks.pending[row]++;
    if (this.orphans.length > 0) this.forgetOrphans();
    this.joinOf(parent).children.push(id);
    this.parents.set(id, parent);
    this.last = id;
    if (guards.familyInPlace) this.state.x.placeOf ??= (task, d) => this.placeOf(task, d);
  }

  /** Whether the body of a task that spawns, or may do so, has not ended. */
  isOpen(parent: TaskId): boolean {
    return this.joins.get(parent)?.bodyIsOver === false;
  }

  /** Calls a function when task `parent`, whose body runs, and what it spawns are over. */
  whenOver(parent: TaskId, call: () => void): void {
    this.joinOf(parent).whenOver.push(call);
  }

  // --- Ends ---------------------------------------------------------------------------------------------------

  /** The body of the task in `row` has ended: what it has spawned starts. Returns whether the task waits for these tasks. */
  bodyEnded(row: number): boolean {
    const join = this.joins.get(this.state.tasks.idOf(row));
    if (join === undefined) return false;
    this.release(join, row);
    if (guards.joinWaits) return true;
    this.close(join);
    return false;
  }

  /** The task in `row` has failed. What it has spawned has not begun and will not. */
  failed(row: number): void {
    const join = this.joins.get(this.state.tasks.idOf(row));
    if (join === undefined) return;
    this.release(join, row);
    // They are not over yet, and keep their place.
    this.orphans.push(...join.children.splice(0));
    this.close(join);
  }

  /** The task in `row` has failed or will not run: those that have spawned it have not done their part either. */
  lost(row: number): void {
    let parent = this.parents.get(this.state.tasks.idOf(row));
    for (; parent !== undefined; parent = this.parents.get(parent)) {
      const join = this.joins.get(parent);
      if (join !== undefined) join.isLost = guards.familyFails;
    }
  }

  /** Ends the tasks whose spawned tasks are done; true when there is one. */
  look(): boolean {
    let found = false;
    for (const join of this.joins.values()) {
      if (!join.bodyIsOver || !this.areDone(join.children)) continue;
      found = true;
      this.close(join);
      this.joined(join.parent & this.state.tasks.mask, join.isLost);
    }
    return found;
  }

  private release(join: Join, row: number): void {
    if (join.bodyIsOver) return;
    join.bodyIsOver = true;
    if (!guards.spawnedHeld) return;
    const { tasks } = this.state;
    for (const child of join.children) this.dispatcher.releaseOne(child & tasks.mask, row);
  }

  /** Takes the children that are done from the end of the list; true when none is left. */
  private areDone(children: TaskId[]): boolean {
    const { tasks } = this.state;
    for (;;) {
      const child = children.at(-1);
      if (child === undefined) return true;
      if (tasks.contains(child) && tasks.stage[child & tasks.mask] !== TaskStage.done) return false;
      children.pop();
      this.parents.delete(child);
    }
  }

  private forgetOrphans(): void {
    const { tasks } = this.state;
    const isOver = (id: TaskId): boolean =>
      !tasks.contains(id) || tasks.stage[id & tasks.mask] === TaskStage.done;
    for (const id of this.orphans) if (isOver(id)) this.parents.delete(id);
    this.orphans = this.orphans.filter((id) => !isOver(id));
  }

  private close(join: Join): void {
    this.joins.delete(join.parent);
    for (const child of join.children) this.parents.delete(child);
    this.freeRows.push(...join.rows.values());
    // They may insert tasks, for which a pass has no room.
    for (const call of join.whenOver) this.deferred.defer(call);
  }

  // --- Tables -------------------------------------------------------------------------------------------------

  private joinOf(parent: TaskId): Join {
    let join = this.joins.get(parent);
    if (join === undefined) {
      join = {
        parent,
        children: [],
        rows: new Map(),
        bodyIsOver: false,
        isLost: false,
        whenOver: [],
      };
      this.joins.set(parent, join);
    }
    return join;
  }

  /** The row for a datum of the parent; undefined for all other data. */
  private rowOf(parent: TaskId, d: DatumId): DatumId | undefined {
    const { rows } = this.joinOf(parent);
    const known = rows.get(d);
    if (known !== undefined || !this.uses(parent, d)) return known;
    const row = this.freeRows.pop() ?? ((FIRST_DATUM + this.rowsMade++) as DatumId);
    this.own.addDatum(row);
    rows.set(d, row);
    return row;
  }

  private modeIn(task: TaskId, d: DatumId): number | undefined {
    const { tasks, x } = this.state;
    const row = task & tasks.mask;
    const { modes } = x.classes[tasks.classOf[row]];
    const first = tasks.flowStart[row];
    for (let i = 0; i < modes.length; i++) if (tasks.flowDatum[first + i] === d) return modes[i];
    return undefined;
  }

  /** The task, the one that has spawned it, and so on. */
  private *ancestors(task: TaskId): Generator<TaskId> {
    for (let id: TaskId | undefined = task; id !== undefined; id = this.parents.get(id)) yield id;
  }
}
