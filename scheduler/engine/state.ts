// The state that all parts of the engine share: the tables, the queues, the observer and the remote. It decides
// nothing.
//
// Each part of the engine is made from this state and from the parts that it uses, each by name. No part knows the
// engine.

import type { Backend } from '../../devices/backend.js';
import { guards } from '../../devices/guards.js';
import type { SpaceId } from '../../devices/handles.js';
import { AllSpaces } from '../../devices/memory/all-spaces.js';
import { Directory } from '../../devices/memory/directory.js';
import { MemorySpace } from '../../devices/memory/space.js';
import { Transfers } from '../../devices/memory/transfers.js';
import { Submission } from '../../devices/submission.js';
import { StageContext } from '../../stages/context.js';
import { TaskTable } from '../../stages/task-table.js';
import { Callbacks } from './callbacks.js';
import { type EngineObserver, observers } from './observer.js';
import type { Remote } from './remote.js';
import { INTERNAL_RUN, RUN_SLOTS, RunState } from './run-state.js';

export class EngineState {
  readonly backend: Backend;
  readonly tasks: TaskTable;
  readonly directory: Directory;
  /** The host first, then the GPUs. */
  readonly spaces: readonly MemorySpace[];
  readonly allSpaces: AllSpaces = new AllSpaces();
  readonly submission: Submission;
  readonly transfers: Transfers;
  readonly x: StageContext;
  readonly callbacks: Callbacks = new Callbacks();
  /** Open runs by slot; the first is the runtime's own. */
  readonly runs: (RunState | undefined)[] = new Array<RunState | undefined>(RUN_SLOTS);
  /** Counters of the present pass. */
  progressed = 0;
  /** Time of the last pass that moved a task. Messages between ranks alone are no progress. */
  movedAt = 0;
  /** Queues feed themselves with the commands of a play: their completions concern no task. */
  playing = false;
  /** Undefined without observers. */
  observer: EngineObserver | undefined;
  /** Set where the program runs on several ranks. */
  remote: Remote | undefined;
  /** Makes the engine continue from the event loop: there is work to do now or soon. */
  wake: () => void = () => {};
  private readonly watching: EngineObserver[] = [];

  /** `window`: rows for live tasks, a power of two. */
  constructor(backend: Backend, window: number) {
    this.backend = backend;
    this.tasks = new TaskTable(window);
    this.directory = new Directory(backend.spaces.length);
    this.spaces = backend.spaces.map(
      (s, i) => new MemorySpace(i as SpaceId, s.bytes, this.directory, this.allSpaces),
    );
    this.submission = new Submission(backend);
    this.transfers = new Transfers(this.directory, this.spaces, this.submission);
    this.x = new StageContext(
      this.tasks,
      this.directory,
      this.spaces,
      this.submission,
      this.transfers,
    );
    this.runs[INTERNAL_RUN] = new RunState(INTERNAL_RUN);
  }

  /** Adds an observer. */
  observe(observer: EngineObserver): void {
    this.watching.push(observer);
    this.observer = this.watching.length === 1 ? observer : observers(this.watching);
    this.x.counters.observer = this.observer;
    if (this.watching.some((each) => each.watchesStages)) this.x.watcher = this.observer;
  }

  /** Run of the task in `row`. */
  runOf(row: number): RunState {
    return this.runs[this.tasks.run[row]] as RunState;
  }

  /** Whether the task in `row` moves a datum between ranks. */
  isMovement(row: number): boolean {
    return this.x.classes[this.tasks.classOf[row]].network !== undefined;
  }

  /** Gives back the pins that stage alloc took for the task in `row`: its copies may leave again. */
  releasePins(row: number): void {
    const { tasks, x } = this;
    const space = this.spaces[tasks.device[row]];
    const first = tasks.flowStart[row];
    const end = first + x.classes[tasks.classOf[row]].modes.length;
    if (guards.taskPins) for (let i = first; i < end; i++) space.unpin(tasks.flowDatum[i]);
  }

  /** Name of space `s` in the user's words. */
  spaceName(s: SpaceId): string {
    return this.backend.spaces[s]?.name ?? `space ${s}`;
  }
}
