// JavaScript bodies. They run on the engine's own thread, after the pass that found their data in place.
//
// Invariants: a body runs at most once. Before it begins (`Execution.bodyQueued`) its task can still be dropped;
// afterwards (`Execution.body`) it cannot. A body may insert tasks, which may need a pass, so no pass is under way
// while a body runs.
//
// An asynchronous context tells code behind an `await` of a body from code of the program. The context makes every
// promise of the process slower. So only classes with asynchronous bodies get one: async functions, and functions
// that have returned a promise before, or have not returned yet.

import { AsyncLocalStorage } from 'node:async_hooks';
import { Status } from '../../devices/backend.js';
import { Fifo } from '../../devices/fifo.js';
import { guards } from '../../devices/guards.js';
import type { TaskId } from '../../devices/handles.js';
import { Execution, type TaskClassRow, TaskStage } from '../../stages/task-table.js';
import { bodyFailure } from '../failure/describe.js';
import type { Dispatcher } from './dispatcher.js';
import type { Retirement } from './retirement.js';
import type { EngineState } from './state.js';
import { promiseOf } from './thenable.js';

/** The state of a body that runs. */
export interface Body {
  readonly task: TaskId;
  /** It may await what it gets. A function that has never returned a promise may turn out to be asynchronous later. */
  isAsync: boolean;
  /** Called if it turns out to be asynchronous. */
  whenAsync: (() => void) | undefined;
  /** The body has inserted tasks and continues: it may await them, so it must not keep others from starting. */
  isParent: boolean;
  isOver: boolean;
}

/** In place of a body: the caller is none. */
const NOBODY: Body = {
  task: 0 as TaskId,
  isAsync: false,
  whenAsync: undefined,
  isParent: false,
  isOver: true,
};

export class ScriptBodies {
  /** Tasks whose bodies are about to run. */
  readonly queued: Fifo<TaskId> = new Fifo<TaskId>();
  /** Asynchronous bodies that have not ended. */
  waiting = 0;
  /** Bodies on the stack. */
  depth = 0;
  private readonly state: EngineState;
  private readonly dispatcher: Pick<Dispatcher, 'parentWaits'>;
  private readonly retirement: Pick<Retirement, 'retired' | 'fail'>;
  /** Inserts what comes last of what a body spawns. Called when the body has returned, or its promise is fulfilled. */
  beforeEnd: ((task: TaskId) => void) | undefined;
  private onStack: Body | undefined;
  /** The body on the stack awaits `space()`. */
  private hasAsked = false;
  /** The asynchronous body that called, behind an `await` of it. */
  private readonly context: AsyncLocalStorage<Body> = new AsyncLocalStorage();
  /** Ids of classes whose bodies may be asynchronous, as far as is known. */
  private readonly asynchronous: Set<number> = new Set();
  /** Ids of classes whose last body returned no promise. */
  private readonly synchronous: Set<number> = new Set();

  constructor(
    state: EngineState,
    dispatcher: Pick<Dispatcher, 'parentWaits'>,
    retirement: Pick<Retirement, 'retired' | 'fail'>,
  ) {
    this.state = state;
    this.dispatcher = dispatcher;
    this.retirement = retirement;
  }

  queue(row: number): void {
    const { tasks } = this.state;
    tasks.execution[row] = Execution.bodyQueued;
    this.queued.push(tasks.idOf(row));
  }

  /** Registers that the body of class `cls` is an async function. */
  isAsync(cls: number): void {
    this.asynchronous.add(cls);
  }

  /** Whether the caller is a body. */
  get isRunning(): boolean {
    if (this.depth > 0) return true;
    return this.waiting > 0 && this.context.getStore()?.isOver === false;
  }

  /** The body that was started last. */
  get started(): Body | undefined {
    return this.onStack;
  }

  /** The body that calls, if one does and is not over. */
  get caller(): Body | undefined {
    const body = this.depth > 0 ? this.onStack : this.context.getStore();
    return body?.isOver === false ? body : undefined;
  }

  /** Calls a function as the engine does: a body that scheduled the call is not its caller. */
  outside(call: () => void): void {
    // `exit` would end with the first body that begins meanwhile (Node 20).
    if (this.waiting > 0) this.context.run(NOBODY, call);
    else call();
  }

  /** A task was inserted while asynchronous bodies wait. The body that inserted it may await it next. */
  inserted(): void {
    // It is not yet known whether the body on the stack awaits anything.
    const body = this.depth > 0 ? undefined : this.context.getStore();
    if (body?.isOver === false) this.isParent(body);
  }

  /** The caller awaits `space()`, so it waits for other tasks to end, like a body that awaits its children. */
  awaitsOthers(): void {
    if (this.depth > 0) this.hasAsked = true;
    else this.inserted();
  }

  private isParent(body: Body): void {
    if (body.isParent || !guards.parentSlots) return;
    body.isParent = true;
    this.dispatcher.parentWaits(1);
  }

  /** Runs the bodies that are queued now. */
  run(): void {
    const { state } = this;
    const { tasks, x } = state;
    this.depth++;
    for (let n = this.queued.length; n > 0; n--) {
      const id = this.queued.shift();
      const row = id & tasks.mask;
      if (!tasks.contains(id) || tasks.stage[row] !== TaskStage.exec) continue;
      tasks.execution[row] = Execution.body;
      state.progressed++;
      state.observer?.bodyStarted(row);
      this.call(id, x.classes[tasks.classOf[row]], row);
    }
    this.depth--;
  }

  private call(id: TaskId, cls: TaskClassRow, row: number): void {
    const run = cls.body as (task: TaskId, row: number) => unknown;
    const isAsync = this.asynchronous.has(cls.id);
    const body: Body = {
      task: id,
      isAsync,
      whenAsync: undefined,
      isParent: false,
      isOver: false,
    };
    this.onStack = body;
    const before = this.state.tasks.next;
    this.hasAsked = false;
    let result: unknown;
    let later: PromiseLike<unknown> | undefined;
    try {
      const mayAwait = isAsync || !this.synchronous.has(cls.id);
      result = mayAwait ? this.context.run(body, run, id, row) : run(id, row);
      later = promiseOf(result);
      if (later === undefined) this.beforeEnd?.(id);
    } catch (cause) {
      body.isOver = true;
      this.failed(id, cause);
      return;
    }
    if (later === undefined) {
      if (!isAsync) this.returned(cls.id);
      body.isOver = true;
      this.ended(id);
      return;
    }
    this.asynchronous.add(cls.id);
    body.isAsync = true;
    body.whenAsync?.();
    this.waiting++;
    if (this.hasAsked || this.state.tasks.next !== before) this.isParent(body);
    later.then(
      () => this.fulfilled(body),
      (cause: unknown) => this.rejected(body, cause),
    );
  }

  /** The body of a class that may be asynchronous has returned no promise. */
  private returned(cls: number): void {
    if (this.synchronous.has(cls)) return;
    this.synchronous.add(cls);
    if (this.waiting === 0 && this.asynchronous.size === 0) this.context.disable();
  }

  private fulfilled(body: Body): void {
    try {
      if (this.beforeEnd !== undefined) this.context.run(body, this.beforeEnd, body.task);
    } catch (cause) {
      this.rejected(body, cause);
      return;
    }
    this.settled(body);
    this.ended(body.task);
    this.state.wake();
  }

  private rejected(body: Body, cause: unknown): void {
    this.settled(body);
    this.failed(body.task, cause);
    this.state.wake();
  }

  private settled(body: Body): void {
    this.waiting--;
    body.isOver = true;
    if (body.isParent) this.dispatcher.parentWaits(-1);
  }

  private ended(id: TaskId): void {
    const row = this.over(id);
    this.retirement.retired(row, Status.ok);
  }

  private failed(id: TaskId, cause: unknown): void {
    const row = this.over(id);
    this.retirement.fail(row, bodyFailure(this.state.x.describe(row), cause));
  }

  private over(id: TaskId): number {
    const { state } = this;
    const row = id & state.tasks.mask;
    state.progressed++;
    state.observer?.bodyEnded(row);
    return row;
  }
}
