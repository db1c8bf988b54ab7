// Room in the window of live tasks: who waits for it, and who gets more.
//
// The program waits when the window is full: `insert` blocks its thread while commands are under way, and `space()`
// lets it wait without blocking. A body cannot wait: the row of its own task is live until it ends, and tasks it
// inserts may be what it awaits. So the window is extended for what bodies insert, up to `overflow` tasks, and is
// cut back when few tasks are live. The program gets rows of the extension only where waiting cannot help, because
// nothing but asynchronous bodies is under way, which cannot end while its thread is blocked.
//
// Whoever inserts, tasks take their numbers in the order of the calls: that is the program order. So a task that a body
// inserts follows everything inserted before it, by the program or by other bodies, and nothing overtakes it.
//
// Invariants: rows move only here, at moments at which no row is held in a local variable: in an insertion before its
// row is taken, and at the end of a pass. Everything else that names rows is told (`moved`); all others name ids.
import { HeadraceError } from '../devices/errors.js';
import { guards } from '../devices/guards.js';
import type { TaskClassRow } from '../stages/task-table.js';
import type { Engine } from './engine.js';
import type { RunState } from './run-state.js';

/**
 * The program waits that long for other ranks before it takes rows of the extension, when asynchronous bodies here may be
 * what they wait for; nanoseconds. The second: before it gives up, with no row left.
 */
const PATIENCE_NS = 20e6;
const LAST_PATIENCE_NS = 1e9;

interface SpaceWaiter {
  readonly run: RunState;
  readonly isBody: boolean;
  readonly resolve: () => void;
  readonly reject: (error: HeadraceError) => void;
}

export class WindowRoom {
  /** Live tasks at most. */
  readonly limit: number;
  private readonly engine: Engine;
  private readonly overflow: number;
  /** Those who await `space()`. */
  private waiters: SpaceWaiter[] = [];

  constructor(engine: Engine, overflow: number) {
    this.engine = engine;
    this.overflow = overflow;
    this.limit = engine.tasks.window + overflow;
  }

  /**
   * Makes sure that a task of class `cls` can be inserted. Bodies may run and insert meanwhile, so callers that keep
   * arguments in scratch memory call this before they fill it.
   * @throws HeadraceError `ERR_WINDOW_FULL`
   */
  reserve(cls: TaskClassRow): void {
    const { engine } = this;
    const flows = cls.modes.length;
    const params = cls.paramNames.length;
    if (engine.tasks.hasRoom(flows, params)) return;
    // A callback from within a pass, such as a class's `explain`: rows must not move, and there is no pass to wait for.
    if (engine.inPass) throw this.full(cls);
    if (engine.inBody) {
      this.extend(cls);
      return;
    }
    engine.tracer?.throttle(true);
    const since = engine.backend.now();
    try {
      while (!engine.tasks.hasRoom(flows, params)) {
        if (this.makeRoom(cls, since)) continue;
        this.extend(cls);
        return;
      }
    } finally {
      engine.tracer?.throttle(false);
    }
  }

  /** Pumps until something moves; may block the thread. False when only asynchronous bodies could make room. */
  private makeRoom(cls: TaskClassRow, since: number): boolean {
    const { engine } = this;
    const { tasks, idle } = engine;
    const head = tasks.head;
    const progressed = engine.pump();
    // Room for a good part of the window, not for one task: a pass per finished task would keep a core busy with
    // looking, and the executors need that core.
    if (tasks.isRoomy(3) && tasks.hasRoom(cls.modes.length, cls.paramNames.length)) return true;
    if (!idle.somethingIsUnderWay()) {
      if (progressed || tasks.head !== head) return true;
      if (engine.bodies.waiting > 0) return false;
      throw idle.stalled();
    }
    if (engine.queuedBodies > 0) return true;
    if (engine.bodies.waiting > 0 && !idle.commandsAreUnderWay()) {
      const patience = tasks.live < this.limit ? PATIENCE_NS : LAST_PATIENCE_NS;
      if (engine.backend.now() - Math.max(since, engine.movedAt) > patience) return false;
    }
    idle.block();
    idle.reportBlocked(since, `graph.insert of class '${cls.name}': waits for room in the window`);
    return true;
  }

  /** Takes rows beyond the window. */
  private extend(cls: TaskClassRow): void {
    const { tasks } = this.engine;
    if (tasks.live >= this.limit) throw this.full(cls);
    const mask = tasks.mask;
    if (tasks.extend(cls.modes.length, cls.paramNames.length)) this.moved(mask);
  }

  /** At the end of a pass: gives back the rows of an extension that is over, and tells who waits for space. */
  passed(): void {
    const { tasks } = this.engine;
    if (tasks.isExtended) {
      const mask = tasks.mask;
      if (tasks.shrink()) this.moved(mask);
    }
    if (this.waiters.length > 0) this.tellWaiters();
  }

  /** Rows have moved; before, the mask was `oldMask`. */
  private moved(oldMask: number): void {
    const { engine } = this;
    const { tasks } = engine;
    const { head, mask } = tasks;
    if (mask === oldMask) return;
    const rowNow = (row: number): number => (head + ((row - head) & oldMask)) & mask;
    if (guards.movedEdges) engine.dependencies.moveRows(rowNow);
    if (guards.movedFlight) engine.submission.moveRows(rowNow);
    engine.starter.moveRows(rowNow, mask + 1);
    engine.tracer?.tasks.resize(mask + 1);
  }

  // --- space() ------------------------------------------------------------------------------------------------

  /** Resolves when there is space for a good part of a window, after the event loop was served; rejects as the run fails. */
  space(run: RunState): Promise<void> {
    const { engine } = this;
    const isBody = engine.inBody;
    if (isBody) engine.bodies.awaitsOthers();
    return new Promise((resolve, reject) => {
      setImmediate(() => {
        if (run.error !== undefined) reject(run.error);
        else if (this.hasSpace) resolve();
        else {
          if (this.waiters.length === 0) engine.tracer?.throttle(true);
          this.waiters.push({ run, isBody, resolve, reject });
          engine.wake();
        }
      });
    });
  }

  /** Callers that await `space()`. */
  get waiting(): number {
    return this.waiters.length;
  }

  /**
   * Whether no more than half a window of tasks waits to be run. Asynchronous bodies that have begun do not count: one of
   * them may be who asks, or what that one awaits.
   */
  private get hasSpace(): boolean {
    const { runs, bodies, tasks } = this.engine;
    let unfinished = 0;
    for (const run of runs) if (run !== undefined) unfinished += run.live;
    return unfinished - bodies.waiting <= tasks.window >> 1;
  }

  /**
   * Whether nothing is left to wait for but bodies that wait themselves, for what they inserted or for space. One of them
   * has to go on then: what fills the window may wait for it.
   */
  private get allWait(): boolean {
    const { engine } = this;
    return (
      guards.spaceForBodies &&
      engine.bodies.waiting > 0 &&
      !engine.starter.hasScripts &&
      engine.queuedBodies === 0 &&
      !engine.idle.commandsAreUnderWay()
    );
  }

  private tellWaiters(): void {
    const hasSpace = this.hasSpace;
    const forBodies = hasSpace || this.allWait;
    const waiters = this.waiters;
    const kept: SpaceWaiter[] = [];
    for (const waiter of waiters) {
      if (waiter.run.error !== undefined) waiter.reject(waiter.run.error);
      else if (waiter.isBody ? forBodies : hasSpace) waiter.resolve();
      else kept.push(waiter);
    }
    this.waiters = kept;
    if (kept.length === 0) this.engine.tracer?.throttle(false);
  }

  private full(cls: TaskClassRow): HeadraceError {
    const { tasks, bodies } = this.engine;
    const who = this.engine.inBody ? 'a body' : 'the program';
    const text =
      `${who} cannot insert a task of class '${cls.name}': the window of ${tasks.window} tasks and its overflow of ` +
      `${this.overflow} are full`;
    const why = bodies.waiting > 0 ? `, ${bodies.waiting} asynchronous bodies have not ended` : '';
    return new HeadraceError('ERR_WINDOW_FULL', text + why, {
      limit: this.limit,
      remedy: 'await graph.space() between insertions, or raise the option `overflow`',
    });
  }
}
