// JavaScript bodies: they run on the engine's own thread, after the pass that found their data in place.
//
// Invariants: a body runs at most once; until it begins (`BODY_QUEUED`) its task can still be dropped, from then on
// (`BODY_RUNNING`) it cannot. A body may insert tasks, which may need a pass: none is under way while one runs.
import { Status } from '../devices/backend.js';
import { Fifo } from '../devices/fifo.js';
import { complete } from '../stages/pipeline.js';
import { TaskStage } from '../stages/task-table.js';
import type { Engine } from './engine.js';
import { bodyFailure } from './failure.js';
import { promiseOf } from './thenable.js';

/** In the column of queues: the body of this row has begun. */
export const BODY_RUNNING = -2;
/** In the column of queues: the body is about to begin; its outputs count as written. */
export const BODY_QUEUED = -3;

export class ScriptBodies {
  /** Tasks whose bodies are about to run. */
  readonly queued: Fifo = new Fifo();
  /** Asynchronous bodies that have not ended. */
  waiting = 0;
  /** Bodies on the stack. */
  depth = 0;
  private readonly engine: Engine;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  queue(row: number): void {
    const { tasks } = this.engine;
    tasks.queue[row] = BODY_QUEUED;
    this.queued.push(tasks.idOf(row));
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
      const body = x.classes[tasks.classOf[row]].body as (task: number, row: number) => unknown;
      let result: unknown;
      try {
        result = body(id, row);
      } catch (cause) {
        this.failed(id, cause);
        continue;
      }
      const later = promiseOf(result);
      if (later === undefined) this.ended(id);
      else {
        this.waiting++;
        later.then(
          () => {
            this.waiting--;
            this.ended(id);
            engine.wake();
          },
          (cause: unknown) => {
            this.waiting--;
            this.failed(id, cause);
            engine.wake();
          },
        );
      }
    }
    this.depth--;
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
