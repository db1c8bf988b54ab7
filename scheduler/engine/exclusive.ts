// Sections in which no task runs: what is inserted before a section ends before it begins, and what is inserted after it
// starts when the section is over. A play of a plan is such a section.
//
// Tasks that bodies insert belong to the time before the section: a body that is under way may await them. But those that follow a
// task behind the section come behind it, too.
//
// Invariants: one section is under way at a time, in the order of `enter`; while one is waiting or under way, each task
// that was inserted behind a section is in `behind` of the last section before it, and none of these tasks is started. If such a
// task is dropped, it keeps its row and its place until the section is over (scheduler/failure/dropped-tasks.ts).
import { guards } from '../../devices/guards.js';
import type { TaskId } from '../../devices/handles.js';
import { TaskStage } from '../../stages/task-table.js';
import type { Dispatcher } from './dispatcher.js';
import type { EngineState } from './state.js';

/** A section. */
export interface Section {
  /** For messages, such as "the play of plan 'step'". */
  readonly name: string;
  /** Called in every pass once all before is over; true when the section is over. */
  advance(): boolean;
  /** Commands of its own are under way: the engine may sleep. */
  readonly isPlaying: boolean;
  /** Arms the doorbells of these commands. */
  arm(): void;
  /** Whether one of these commands has completed since the last question. */
  hasMoved(): boolean;
  /** What it does or waits for, a line each; only once it has begun. */
  describe(): string[];
}

interface Entered {
  readonly section: Section;
  /** Tasks inserted after it and before the next one. */
  readonly behind: Set<TaskId>;
  /** Those of them whose predecessors have released them. */
  readonly released: TaskId[];
}

export class ExclusiveSections {
  private readonly state: EngineState;
  private readonly dispatcher: Pick<Dispatcher, 'release' | 'gate'>;
  private readonly commandsAreUnderWay: () => boolean;
  private readonly entered: Entered[] = [];
  private hasBegun = false;

  constructor(
    state: EngineState,
    dispatcher: Pick<Dispatcher, 'release' | 'gate'>,
    commandsAreUnderWay: () => boolean,
  ) {
    this.state = state;
    this.dispatcher = dispatcher;
    this.commandsAreUnderWay = commandsAreUnderWay;
  }

  /** A section is waiting or under way. */
  get isClosed(): boolean {
    return this.entered.length > 0;
  }

  /** The section that is under way. */
  get current(): Section | undefined {
    return this.hasBegun ? this.entered[0]?.section : undefined;
  }

  /** The section begins when all that was inserted so far is over. */
  enter(section: Section): void {
    this.entered.push({ section, behind: new Set(), released: [] });
    this.dispatcher.gate = this;
    this.state.wake();
  }

  /** The last section, behind which no task was inserted, is no more. */
  withdraw(section: Section): void {
    if (this.entered.at(-1)?.section !== section)
      throw new Error('only the last section can be withdrawn');
    this.entered.pop();
    if (this.entered.length > 0) return;
    this.hasBegun = false;
    this.dispatcher.gate = undefined;
  }

  /** A task was inserted behind the last section. */
  inserted(id: TaskId): void {
    this.entered.at(-1)?.behind.add(id);
  }

  /** A body has inserted a task that follows these. It is behind the same section as the last of them. */
  follows(id: TaskId, before: readonly TaskId[]): void {
    if (!guards.planAlone) return;
    this.entered
      .findLast(({ behind }) => before.some((other) => behind.has(other)))
      ?.behind.add(id);
  }

  /** The task in `row` has no predecessors left. Whether it must wait for a section. */
  holds(row: number): boolean {
    const id = this.state.tasks.idOf(row);
    const place = this.entered.find(({ behind }) => behind.has(id));
    place?.released.push(id);
    return place !== undefined;
  }

  /** Whether task `id` was inserted behind a section that is not over. */
  isBehind(id: TaskId): boolean {
    return this.entered.some(({ behind }) => behind.has(id));
  }

  /** The tasks behind sections. They wait for every body that is under way: no section begins before these have ended. */
  *waiting(): Iterable<TaskId> {
    for (const { behind } of this.entered) yield* behind;
  }

  /** The name of the section that task `id` waits for. */
  waitedFor(id: TaskId): string | undefined {
    return this.entered.find(({ behind }) => behind.has(id))?.section.name;
  }

  /** What the sections wait for, a line each. */
  describe(): string[] {
    return this.entered.flatMap(({ section }, i) =>
      i === 0 && this.hasBegun
        ? section.describe()
        : [`${section.name} waits until everything before it is over`],
    );
  }

  /** Begins, continues and ends sections; true when anything changed. */
  look(): boolean {
    const { state } = this;
    let moved = false;
    for (;;) {
      const first = this.entered[0];
      if (first === undefined) return moved;
      if (!this.hasBegun) {
        if (!this.isAlone()) return moved;
        this.hasBegun = true;
        moved = true;
      }
      const played = first.section.isPlaying;
      // Commands that have begun must be published.
      if (!first.section.advance()) return moved || first.section.isPlaying !== played;
      this.hasBegun = false;
      moved = true;
      this.entered.shift();
      if (this.entered.length === 0) this.dispatcher.gate = undefined;
      for (const id of first.released) this.dispatcher.release(id & state.tasks.mask);
    }
  }

  /** All tasks before the first section are over, and no command is under way. */
  private isAlone(): boolean {
    if (!guards.planAlone) return true;
    if (this.commandsAreUnderWay()) return false;
    const { tasks } = this.state;
    for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      if (tasks.stage[id & tasks.mask] === TaskStage.done) continue;
      if (!this.isBehind(id)) return false;
    }
    return true;
  }
}
