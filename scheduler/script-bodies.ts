// JavaScript bodies: they run on the engine's own thread, after the pass that found their data in place.
//
// Invariants: a body runs at most once; until it begins (`BODY_QUEUED`) its task can still be dropped, from then on
// (`BODY_RUNNING`) it cannot. A body may insert tasks, which may need a pass: none is under way while one runs.
//
// What runs behind an `await` of a body is told from the program by an asynchronous context. Keeping one costs every
// promise of the process something, so only classes whose bodies are known to be asynchronous get one: async functions,
// and functions that have returned a promise before.
import { AsyncLocalStorage } from 'node:async_hooks';
import { Status } from '../devices/backend.js';
import { Fifo } from '../devices/fifo.js';
import { guards } from '../devices/guards.js';
import { complete } from '../stages/pipeline.js';
import { type TaskClassRow, TaskStage } from '../stages/task-table.js';
import type { Engine } from './engine.js';
import { bodyFailure } from './failure.js';
import { promiseOf } from './thenable.js';

/** In the column of queues: the body of this row has begun. */
export const BODY_RUNNING = -2;
/** In the column of queues: the body is about to begin; its outputs count as written. */
export const BODY_QUEUED = -3;

/** What is known of a body that runs. */
interface Body {
  /** It has inserted tasks and goes on: it may await them, so it must not keep others from starting. */
  isParent: boolean;
  isOver: boolean;
}

export class ScriptBodies {
  /** Tasks whose bodies are about to run. */
  readonly queued: Fifo = new Fifo();
  /** Asynchronous bodies that have not ended. */
  waiting = 0;
  /** Bodies on the stack. */
  depth = 0;
  private readonly engine: Engine;
  /** The body on the stack awaits `space()`. */
  private hasAsked = false;
  /** The asynchronous body that called, behind an `await` of it. */
  private readonly context: AsyncLocalStorage<Body> = new AsyncLocalStorage();
  /** Ids of classes whose bodies may be asynchronous, as far as is known. */
  private readonly asynchronous: Set<number> = new Set();

  constructor(engine: Engine) {
    this.engine = engine;
  }

  queue(row: number): void {
    const { tasks } = this.engine;
    tasks.queue[row] = BODY_QUEUED;
    this.queued.push(tasks.idOf(row));
  }

  /** A body of class `cls` is an async function. */
  isAsync(cls: number): void {
    this.asynchronous.add(cls);
  }

  /** The caller is a body. */
  get isRunning(): boolean {
    if (this.depth > 0) return true;
    return this.waiting > 0 && this.context.getStore()?.isOver === false;
  }

  /** A task was inserted while asynchronous bodies wait: the one that inserted it may go on to await it. */
  inserted(): void {
    // Of one on the stack it is not known yet whether it awaits anything.
    const body = this.depth > 0 ? undefined : this.context.getStore();
    if (body?.isOver === false) this.isParent(body);
  }

  /** The caller waits for others to end, `space()`: a body that does so is no different from one that awaits its children. */
  awaitsOthers(): void {
    if (this.depth > 0) this.hasAsked = true;
    else this.inserted();
  }

  private isParent(body: Body): void {
    if (body.isParent || !guards.parentSlots) return;
    body.isParent = true;
    this.engine.starter.parentWaits(1);
  }

  /** Runs what is queued now. */
  run(): void {
    const { engine } = this;
    const { tasks, x } = engine;
    this.depth++;
    for (let n = this.queued.length; n > 0; n--) {
      const id = this.queued.shift();
      const row = id & tasks.mask;
      if (!tasks.contains(id) || tasks.stage[row] !== TaskStage.exec) continue;
      tasks.queue[row] = BODY_RUNNING;
      engine.progressed++;
      engine.tracer?.bodyStarted(row);
      this.call(id, x.classes[tasks.classOf[row]], row);
    }
    this.depth--;
  }

  private call(id: number, cls: TaskClassRow, row: number): void {
    const run = cls.body as (task: number, row: number) => unknown;
    const body: Body = { isParent: false, isOver: false };
    const before = this.engine.tasks.next;
    this.hasAsked = false;
    let result: unknown;
    try {
      result = this.asynchronous.has(cls.id) ? this.context.run(body, run, id, row) : run(id, row);
    } catch (cause) {
      body.isOver = true;
      this.failed(id, cause);
      return;
    }
    const later = promiseOf(result);
    if (later === undefined) {
      body.isOver = true;
      this.ended(id);
      return;
    }
    this.asynchronous.add(cls.id);
    this.waiting++;
    if (this.hasAsked || this.engine.tasks.next !== before) this.isParent(body);
    later.then(
      () => {
        this.settled(body);
        this.ended(id);
        this.engine.wake();
      },
      (cause: unknown) => {
        this.settled(body);
        this.failed(id, cause);
        this.engine.wake();
      },
    );
  }

  private settled(body: Body): void {
    this.waiting--;
    body.isOver = true;
    if (body.isParent) this.engine.starter.parentWaits(-1);
  }

  private ended(id: number): void {
    const row = this.over(id);
    complete(this.engine.x, row, Status.ok);
  }

  private failed(id: number, cause: unknown): void {
    const row = this.over(id);
    const { engine } = this;
    engine.fail(row, bodyFailure(engine.x.describe(row), cause));
  }

  private over(id: number): number {
    const { engine } = this;
    const row = id & engine.tasks.mask;
    engine.progressed++;
    engine.tracer?.bodyEnded(row);
    return row;
  }
}
