// Room in the window of live tasks: the tasks that wait for it, and the extension of the window.
//
// The program waits when the window is full: `insert` blocks its thread while commands are under way, and `space()`
// waits without blocking. A body cannot wait: the row of its own task is live until it ends, and it may await tasks
// that it inserts. So bodies may extend the window by up to `overflow` tasks, and the window shrinks again when few
// tasks are live. The program gets rows of the extension only if waiting cannot help: only asynchronous bodies are
// under way, and these cannot end while the program's thread is blocked; or no task is left but those of the group that
// is being inserted (scheduler/ranks/pull-admission.ts).
//
// Tasks take their numbers in the order of the calls of `insert`, from the program and from bodies alike. That is the
// program order. So a task that a body inserts follows all tasks inserted before it, by the program or by other
// bodies, and no task overtakes it.
//
// Invariants: rows move only in this file, at moments at which no local variable holds a row: in an insertion before
// its row is taken, and at the end of a pass. All tables that name rows are updated (`moved`); everything else names
// ids.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { TaskId } from '../../devices/handles.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { DeferredCalls } from './deferred-calls.js';
import type { Dependencies } from './dependencies.js';
import type { Dispatcher } from './dispatcher.js';
import type { IdleControl } from './idle.js';
import type { Pass } from './pass.js';
import type { RunState } from './run-state.js';
import type { ScriptBodies } from './script-bodies.js';
import type { EngineState } from './state.js';

/** The parts that room in the window concerns. */
interface WindowParts {
  readonly pass: Pass;
  readonly deferred: Pick<DeferredCalls, 'make'>;
  readonly dependencies: Pick<Dependencies, 'moveRows'>;
  readonly dispatcher: Pick<Dispatcher, 'moveRows' | 'hasScripts'>;
  readonly bodies: Pick<ScriptBodies, 'isRunning' | 'queued' | 'waiting' | 'awaitsOthers'>;
  readonly idle: Pick<
    IdleControl,
    'block' | 'stalled' | 'reportBlocked' | 'somethingIsUnderWay' | 'commandsAreUnderWay'
  >;
}

/**
 * The first: how long the program waits for other ranks before it takes rows of the extension, if those ranks may
 * wait for asynchronous bodies of this rank; nanoseconds. The second: how long it waits without any row left before
 * it gives up.
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
  /** Limit for live tasks. */
  readonly limit: number;
  private readonly state: EngineState;
  private readonly parts: WindowParts;
  private readonly overflow: number;
  private isNotToWait = false;
  /** Insertions get a row, even beyond the limit. */
  private isAlways = false;
  /** The first task of the group that is being inserted. */
  private group: TaskId | undefined;
  /** Callers that await `space()`. */
  private waiters: SpaceWaiter[] = [];

  constructor(state: EngineState, parts: WindowParts, overflow: number) {
    this.state = state;
    this.parts = parts;
    this.overflow = overflow;
    this.limit = state.tasks.window + overflow;
  }

  /**
   * Makes sure that a task of class `cls` can be inserted. Bodies may run and insert meanwhile, so callers that keep
   * arguments in scratch memory call this before they fill it. `call`: what the program has called in place of `insert`.
   * @throws HeadraceError `ERR_WINDOW_FULL`
   */
  reserve(cls: TaskClassRow, call?: string): void {
    const { state, parts } = this;
    const flows = cls.modes.length;
    const params = cls.paramNames.length;
    if (state.tasks.hasRoom(flows, params)) return;
    // The call comes from a callback within a pass, such as a class's `explain`. Rows must not move, and no other
    // pass can help.
    if (parts.pass.isUnderWay) throw this.full(cls, call);
    if (parts.bodies.isRunning || this.isNotToWait) {
      this.extend(cls, call);
      return;
    }
    state.observer?.throttled(true);
    const since = state.backend.now();
    try {
      while (!state.tasks.hasRoom(flows, params)) {
        if (!this.isAtGroup && this.makeRoom(cls, since)) continue;
        this.extend(cls, call);
        return;
      }
    } finally {
      state.observer?.throttled(false);
    }
  }

  /**
   * Calls a function whose insertions extend the window rather than wait, like those of bodies.
   * @throws HeadraceError `ERR_WINDOW_FULL`, and what the function throws
   */
  withoutWaiting(call: () => void): void {
    this.isNotToWait = true;
    try {
      call();
    } finally {
      this.isNotToWait = false;
    }
  }

  /** Calls a function whose insertions neither wait nor fail: without them the values of data would be wrong. */
  always(call: () => void): void {
    this.isAlways = true;
    try {
      this.withoutWaiting(call);
    } finally {
      this.isAlways = false;
    }
  }

  /**
   * The tasks from `first` on end only when all of their group were inserted. When no task before them is left, the others take rows
   * beyond the window.
   */
  groupBegins(first: TaskId): void {
    this.group = first;
  }

  /** The group was inserted, or will not be. */
  groupEnds(): void {
    this.group = undefined;
  }

  /** Whether only the group that is being inserted could make room. */
  private get isAtGroup(): boolean {
    return this.group !== undefined && ((this.state.tasks.head - this.group) | 0) >= 0;
  }

  /**
   * Makes passes until a task moves; may block the thread. Returns false if only asynchronous bodies could make room.
   */
  private makeRoom(cls: TaskClassRow, since: number): boolean {
    const { state } = this;
    const { pass, bodies, idle } = this.parts;
    const { tasks } = state;
    const head = tasks.head;
    const progressed = pass.pump();
    // Tasks may wait for the memory that they give back.
    if (this.parts.deferred.make()) return true;
    // The wait ends when a good part of the window is free, not one row. A pass per finished task would keep a core
    // busy, and the queues need that core.
    if (tasks.isRoomy(3) && tasks.hasRoom(cls.modes.length, cls.paramNames.length)) return true;
    if (!idle.somethingIsUnderWay()) {
      if (progressed || tasks.head !== head) return true;
      if (bodies.waiting > 0) return false;
      throw idle.stalled();
    }
    if (bodies.queued.length > 0) return true;
    // A command, such as a receive on a lane and what is queued behind it, may wait for another rank, and that rank for a body.
    const mayWait = state.remote !== undefined && tasks.live < this.limit;
    if (bodies.waiting > 0 && (mayWait || !idle.commandsAreUnderWay())) {
      const patience = tasks.live < this.limit ? PATIENCE_NS : LAST_PATIENCE_NS;
      if (state.backend.now() - Math.max(since, state.movedAt) > patience) return false;
    }
    idle.block();
    idle.reportBlocked(since, `graph.insert of class '${cls.name}': waits for room in the window`);
    return true;
  }

  /** Takes rows beyond the window. */
  private extend(cls: TaskClassRow, call: string | undefined): void {
    const { tasks } = this.state;
    if (tasks.live >= this.limit && !this.isAlways) throw this.full(cls, call);
    const mask = tasks.mask;
    if (tasks.extend(cls.modes.length, cls.paramNames.length)) this.moved(mask);
  }

  /**
   * At the end of a pass: gives back rows of an extension that is no longer needed, and resolves waiting `space()`
   * calls.
   */
  passed(): void {
    const { tasks } = this.state;
    if (tasks.isExtended) {
      const mask = tasks.mask;
      if (tasks.shrink()) this.moved(mask);
    }
    if (this.waiters.length > 0) this.tellWaiters();
  }

  /** Rows have moved; before, the mask was `oldMask`. */
  private moved(oldMask: number): void {
    const { state, parts } = this;
    const { tasks } = state;
    const { head, mask } = tasks;
    if (mask === oldMask) return;
    const rowNow = (row: number): number => (head + ((row - head) & oldMask)) & mask;
    if (guards.movedEdges) parts.dependencies.moveRows(rowNow);
    if (guards.movedFlight) state.submission.moveRows(rowNow);
    parts.dispatcher.moveRows(rowNow, mask + 1);
    state.observer?.windowResized(mask + 1);
  }

  // --- space() ------------------------------------------------------------------------------------------------

  /** Resolves when a good part of the window is free and the event loop was served. Rejects when the run fails. */
  space(run: RunState): Promise<void> {
    const { state } = this;
    const { bodies } = this.parts;
    const isBody = bodies.isRunning;
    if (isBody) bodies.awaitsOthers();
    return new Promise((resolve, reject) => {
      setImmediate(() => {
        if (run.error !== undefined) reject(run.error);
        else if (isBody ? this.isHalfDone : this.hasSpace) resolve();
        else {
          if (this.waiters.length === 0) state.observer?.throttled(true);
          this.waiters.push({ run, isBody, resolve, reject });
          state.wake();
        }
      });
    });
  }

  /** Callers that await `space()`. */
  get waiting(): number {
    return this.waiters.length;
  }

  /**
   * Whether no more than half a window of tasks waits to be run. Asynchronous bodies that have begun do not count:
   * the caller may be one of them, or may be awaited by one of them.
   */
  private get isHalfDone(): boolean {
    const { runs, tasks } = this.state;
    let unfinished = 0;
    for (const run of runs) if (run !== undefined) unfinished += run.live + run.standing;
    return unfinished - this.parts.bodies.waiting <= tasks.window >> 1;
  }

  /**
   * Whether the program may go on: its next insertion finds room as well. Rows become free in program order, so many tasks may be over
   * behind one that waits. A body that has begun may await the program, which then goes on without room.
   */
  private get hasSpace(): boolean {
    return this.isHalfDone && (this.parts.bodies.waiting > 0 || this.state.tasks.isRoomy(3));
  }

  /**
   * Whether all remaining tasks are bodies that wait themselves, for tasks that they inserted or for space. Then one
   * of them must continue, because the tasks that fill the window may wait for it.
   */
  private get allWait(): boolean {
    const { bodies, dispatcher, idle } = this.parts;
    return (
      guards.spaceForBodies &&
      bodies.waiting > 0 &&
      !dispatcher.hasScripts &&
      bodies.queued.length === 0 &&
      !idle.commandsAreUnderWay()
    );
  }

  private tellWaiters(): void {
    const { hasSpace } = this;
    const forBodies = this.isHalfDone || this.allWait;
    const waiters = this.waiters;
    const kept: SpaceWaiter[] = [];
    for (const waiter of waiters) {
      if (waiter.run.error !== undefined) waiter.reject(waiter.run.error);
      else if (waiter.isBody ? forBodies : hasSpace) waiter.resolve();
      else kept.push(waiter);
    }
    this.waiters = kept;
    if (kept.length === 0) this.state.observer?.throttled(false);
  }

  private full(cls: TaskClassRow, call: string | undefined): HeadraceError {
    const { bodies } = this.parts;
    const { tasks } = this.state;
    const who = bodies.isRunning ? 'a body' : 'the program';
    const what = call === undefined ? `insert a task of class '${cls.name}'` : `call ${call}`;
    const text =
      `${who} cannot ${what}: the window of ${tasks.window} tasks and its overflow of ` +
      `${this.overflow} are full`;
    const why = bodies.waiting > 0 ? `, ${bodies.waiting} asynchronous bodies have not ended` : '';
    return new HeadraceError('ERR_WINDOW_FULL', text + why, {
      limit: this.limit,
      remedy: remedyFor(bodies.isRunning, call),
    });
  }
}

/** Rows come back in the order of the program: `space()` makes none behind the row of the body that awaits it. */
function remedyFor(isBody: boolean, call: string | undefined): string {
  if (isBody)
    return 'raise the option `overflow`, or let a body insert less: what comes behind it counts until it ends';
  const first = call === undefined ? 'graph.space() between insertions' : 'the calls before it';
  return `await ${first}, or raise the option \`overflow\``;
}

/** Whether a call found no row, and may come again. */
export function isWindowFull(error: unknown): boolean {
  return error instanceof HeadraceError && error.code === 'ERR_WINDOW_FULL';
}
