// A play: the lists of a plan on the real queues. It runs alone (scheduler/engine/exclusive.ts): it waits for all that was inserted
// before it, brings the data to where the plan needs them, lets the queues feed themselves, and tells the directory where
// the data lie afterwards (play-exit.ts).
//
// Long plays are cut into parts, so that sequence numbers, which wrap, can be compared, and so that times of commands need
// little memory while a trace is recorded (play-times.ts).
import type { NativePlay } from '../../devices/backend.js';
import { HeadraceError, type RunAbortedError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, type TaskId } from '../../devices/handles.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import type { Completions } from '../engine/completions.js';
import type { Section } from '../engine/exclusive.js';
import type { RunState } from '../engine/run-state.js';
import type { EngineState } from '../engine/state.js';
import type { DriverGraph } from './driver-graph.js';
import { iterationsOver, mostIterations } from './part-progress.js';
import { PartValues } from './part-values.js';
import type { Placement } from './placement.js';
import {
  type PlannedProgram,
  type PlannedQueue,
  type PlannedResult,
  recordsIn,
} from './planned-program.js';
import { PlayExit } from './play-exit.js';
import { playFailure, takeThrown } from './play-failure.js';
import { PlayTimes } from './play-times.js';
import type { PlayedPart } from './played-part.js';
import { queueName } from './queue-name.js';

/** Limit for the values of open parameters that are computed at once. */
const PART_VALUES = 2 ** 20;
/** The same for the first part of a play with a condition, which may end soon. */
const FIRST_VALUES = 2 ** 12;

/** The condition of a play, on the first element of a datum. */
export interface PlayCondition {
  readonly datum: DatumId;
  /** A value of PlanElement. */
  readonly element: number;
  readonly limit: number;
  readonly below: boolean;
  readonly every: number;
}

/** A play in place of tasks that can still be inserted instead, until its first command (scheduler/recognition/). */
export interface Stand {
  /** The first command follows. */
  readonly begins: () => void;
  /** The play cannot begin, and is over. Without it such a play fails: other ranks have begun theirs. */
  readonly refused?: ((error: HeadraceError) => void) | undefined;
  /** What a message calls the task of an insertion in an iteration; by default its parameters tell it apart. */
  readonly nameOf?: (cls: TaskClassRow, insertion: number, iteration: number) => string;
  /** Iterations so far; more may come until the play is over. */
  readonly times: () => number;
  /** More iterations come while others are under way: so many of them may be known and not over. Undefined: none come. */
  readonly ahead?: number;
  /** So many iterations are over, and others follow. */
  readonly played: (iterations: number) => void;
}

/** What a play does, and whom it tells. */
export interface PlayWish {
  readonly times: number;
  /** Value of a slot in an iteration. */
  readonly value: (slot: number, iteration: number) => number;
  readonly condition: PlayCondition | undefined;
  readonly run: RunState;
  /** The run has other parts, and is reported by others. */
  readonly isPart: boolean;
  /** Tasks that must be over before a task, by number of insertion, besides those of its data. */
  readonly after: ReadonlyMap<number, readonly number[]>;
  readonly graph: DriverGraph;
  /** Whether the row of a datum of the plan is still its own. Bodies may close data before the play begins. */
  readonly has: (d: DatumId) => boolean;
  /** @throws HeadraceError `ERR_DATUM_CLOSED` if a datum of the plan is gone */
  readonly check: () => void;
  readonly stand?: Stand | undefined;
  /** Explains a positive code of a kernel. */
  readonly explain: (
    insertion: number,
    code: number,
    params: readonly number[],
  ) => string | undefined;
  readonly done: (iterations: number) => void;
  readonly failed: (error: HeadraceError) => void;
}

export class Play implements Section {
  readonly name: string;
  isPlaying = false;
  private readonly state: EngineState;
  private readonly completions: Pick<Completions, 'passPlay'>;
  private readonly program: PlannedProgram;
  private readonly placement: Placement;
  private readonly wish: PlayWish;
  private readonly exit: PlayExit;
  /** The last task before the play in program order. */
  private readonly before: TaskId;
  private aborted: HeadraceError | undefined;
  private hasBegun = false;
  private hasEntered = false;
  private hasEnded = false;
  private hasToldStopped = false;
  /** Iterations of the parts before, and of the present one. */
  private iterations = 0;
  private partTimes = 0;
  /** More iterations may be added to the present part. */
  private isOpen = false;
  /** Values of the open parameters in the present part. */
  private parameters: PartValues = new PartValues(0, 1);
  /** While a trace is recorded: memory for the times of parts, and those of the present part. */
  private readonly times: PlayTimes | undefined;
  private recordTimes: readonly Float64Array[] = [];
  private partBegan = 0;
  /** Completed records of each list at the last question of the watchdog. */
  private watched: readonly number[] = [];
  /** The lists that are played in the present part: those of the plan, or the one that launches its graph. */
  private lists: readonly PlannedQueue[];
  /** Last record of each of them in the present part. */
  private last: Int32Array = new Int32Array(0);

  constructor(
    state: EngineState,
    completions: Pick<Completions, 'passPlay'>,
    program: PlannedProgram,
    placement: Placement,
    wish: PlayWish,
  ) {
    this.state = state;
    this.completions = completions;
    this.program = program;
    this.placement = placement;
    this.wish = wish;
    this.name = `the play of plan '${program.report.name}'`;
    this.before = ((state.tasks.next - 1) | 0) as TaskId;
    this.exit = new PlayExit(state, program, this.before, wish.has, () => this.wanted);
    this.lists = program.queues;
    this.times = state.x.tracing ? new PlayTimes(program) : undefined;
  }

  /** Iterations of the play, as far as they are known. */
  private get wanted(): number {
    const { stand, times } = this.wish;
    return stand === undefined ? times : stand.times();
  }

  /** Ends the play between two commands. */
  abort(error: RunAbortedError): void {
    this.aborted ??= error;
    if (guards.planCancel) this.state.backend.setCancelled(this.wish.run.slot, true);
    this.state.wake();
  }

  arm(): void {
    const { backend } = this.state;
    this.lists.forEach(({ queue }, i) => {
      if (((backend.completed[queue] - this.last[i]) | 0) < 0) backend.arm(queue, this.last[i]);
    });
  }

  describe(): string[] {
    const { state, program } = this;
    if (!this.isPlaying) return [`${this.name} brings its data to their devices`];
    const { backend } = state;
    return [
      `${this.name} is under way`,
      ...this.lists.flatMap((list, i) => {
        const { queue, insertion } = list;
        const left = (this.last[i] - backend.completed[queue]) | 0;
        if (left <= 0) return [];
        const length = recordsIn(list);
        const done = this.partTimes * length - left;
        const name = queueName(backend, queue);
        // The records before a task's are waits and copies for it or for others.
        const next = insertion.findIndex((n, r) => r >= done % length && n >= 0);
        const iteration = this.iterations + Math.floor(done / length);
        if (this.lists !== program.queues) return [`  ${name}: iteration ${iteration}, as a graph`];
        const task = next < 0 ? 'a copy' : program.task(insertion[next]).cls.name;
        return [`  ${name}: iteration ${iteration}, before ${task}`];
      }),
    ];
  }

  hasMoved(): boolean {
    const { backend } = this.state;
    backend.poll();
    const before = this.watched;
    this.watched = this.lists.map(({ queue }) => backend.completed[queue]);
    return this.watched.some((n, i) => n !== before[i]);
  }

  advance(): boolean {
    try {
      return this.step();
    } catch (error) {
      if (!(error instanceof HeadraceError)) throw error;
      this.endEarly(error);
      return true;
    }
  }

  private step(): boolean {
    if (!this.hasBegun) {
      this.hasBegun = true;
      if (!this.wish.isPart) this.state.observer?.runBegan(this.wish.run);
      this.wish.check();
    }
    if (this.isPlaying) {
      if (this.isPartOver()) return this.endPart();
      if (this.wish.stand?.ahead !== undefined) this.goOn(this.wish.stand);
      this.tellStopped();
      return false;
    }
    if (this.stopped !== undefined) {
      this.fail(this.stopped);
      return true;
    }
    // Without an iteration nothing is read, so no datum needs a value.
    if (this.wish.times === 0) return this.succeed();
    if (!this.hasEntered) {
      while (!this.placement.enter()) {
        this.state.backend.publish();
        // Otherwise copies have changed hands, or left, without a transfer.
        if (this.state.transfers.live > 0) return false;
      }
      this.hasEntered = true;
    }
    if (this.program.queues.length === 0 || this.iterations >= this.wanted) return this.succeed();
    this.wish.stand?.begins();
    this.beginPart();
    return false;
  }

  /**
   * The play is not to take place: it gives its memory back. Only while no command of it has begun. Another play of the same plan may
   * be under way, and uses the same placement: a play that has not begun has nothing there.
   */
  withdraw(): void {
    if (this.hasBegun || !guards.withdrawsOwn) this.placement.leave();
  }

  private endEarly(error: HeadraceError): void {
    const { stand } = this.wish;
    if (stand?.refused === undefined || this.hasEntered) {
      this.fail(error);
      return;
    }
    this.withdraw();
    stand.refused(error);
  }

  /** Why the play ends although none of its own commands has failed. */
  private get stopped(): HeadraceError | undefined {
    return this.aborted ?? this.wish.run.error;
  }

  /** Receives of a play that has been cancelled wait for nothing more; their lanes must be looked at. */
  private tellStopped(): void {
    if (this.stopped === undefined || this.hasToldStopped) return;
    this.hasToldStopped = true;
    this.state.remote?.lanesChanged();
  }

  // --- Parts --------------------------------------------------------------------------------------------------

  private beginPart(): void {
    const { program, wish, state } = this;
    const { backend } = state;
    const { condition } = wish;
    const { times: traced } = this;
    const slots = program.slots.length;
    let times = Math.max(1, mostIterations(program.queues));
    if (traced !== undefined) times = Math.min(times, traced.iterations);
    if (slots > 0) {
      const soon = Math.max(FIRST_VALUES, this.iterations * slots);
      const values = condition === undefined ? PART_VALUES : Math.min(PART_VALUES, soon);
      times = Math.min(times, Math.max(1, Math.floor(values / slots)));
    }
    if (condition !== undefined) times = this.untilLook(condition, times);
    times = Math.min(times, this.wanted - this.iterations);
    // The times of all records of a part are kept while a trace is recorded.
    const ahead = traced === undefined ? wish.stand?.ahead : undefined;
    const before = this.iterations;
    const room = Math.max(times, ahead ?? 0);
    const parameters = new PartValues(slots, room, (s, i) => wish.value(s, before + i));
    parameters.take(0, times);
    this.partTimes = times;
    this.parameters = parameters;
    this.recordTimes = traced?.take(times) ?? [];
    this.partBegan = backend.now();
    // A graph has no times of its commands.
    const graph = traced === undefined ? wish.graph.listFor(times, parameters.values) : undefined;
    this.isOpen = ahead !== undefined && graph === undefined;
    this.lists = graph === undefined ? program.queues : [graph];
    this.last = Int32Array.from(
      this.lists,
      (list) => backend.completed[list.queue] + Math.imul(times, recordsIn(list)),
    );
    const play: NativePlay = {
      queues: this.lists,
      times,
      room: this.isOpen ? room : 0,
      run: wish.run.slot,
      parameters: parameters.values,
      slots,
      recordTimes: this.recordTimes,
      condition: condition === undefined ? undefined : this.nativeCondition(condition),
    };
    backend.play(play);
    state.remote?.lanesChanged();
    state.playing = true;
    this.isPlaying = true;
  }

  /** Tells how far the part has come, and adds the iterations that have come meanwhile. */
  private goOn({ played }: Stand): void {
    const { lists, last, partTimes, parameters, iterations, state } = this;
    const { backend } = state;
    const over = iterationsOver({ lists, last, times: partTimes }, backend.completed);
    // The queues of a play that is cancelled complete what they skip: it is cancelled before they do.
    if (backend.isCancelled(this.wish.run.slot)) return;
    if (over > 0) played(iterations + over);
    if (!this.isOpen) return;
    const most = Math.min(parameters.limit(over), mostIterations(lists));
    const times = Math.min(this.wanted - iterations, most);
    if (times <= partTimes) return;
    parameters.take(partTimes, times);
    this.isOpen = backend.extendPlay(times);
    if (!this.isOpen) return;
    this.partTimes = times;
    lists.forEach((list, i) => {
      last[i] += Math.imul(times - partTimes, recordsIn(list));
    });
  }

  /** Iterations of a part with a condition, at most `most`: it ends where the condition is looked at, or before that. */
  private untilLook({ every }: PlayCondition, most: number): number {
    const since = this.iterations % every;
    return since > 0 || most < every
      ? Math.min(most, every - since)
      : Math.floor(most / every) * every;
  }

  private nativeCondition(condition: PlayCondition): NonNullable<NativePlay['condition']> {
    const { element, limit, below, every } = condition;
    const region = this.program.number ?? this.regionOf(condition.datum);
    const { space } = this.program.regions[region];
    const offset = this.placement.baseOf(region);
    const first = this.iterations > 0 && this.iterations % every === 0;
    return { space, offset, element, limit, below, every, first };
  }

  /** A region in which a datum has its value after an iteration, of the host if there is one. */
  private regionOf(datum: DatumId): number {
    const { results, regions } = this.program;
    const { copies } = results.find((r) => r.datum === datum) as PlannedResult;
    const onHost = copies.find(({ region }) => regions[region].space === HOST);
    return (onHost ?? copies[0]).region;
  }

  private isPartOver(): boolean {
    const { completed } = this.state.backend;
    return this.lists.every(({ queue }, i) => ((completed[queue] - this.last[i]) | 0) >= 0);
  }

  private endPart(): boolean {
    const { program, state, last } = this;
    const { backend, submission } = state;
    const own = backend.playOutcome();
    const [allowed, ...outcome] = this.lists === program.queues ? own : this.wish.graph.spread(own);
    const played = Math.min(allowed, this.partTimes);
    this.lists.forEach(({ queue }, i) => {
      backend.issued[queue] = last[i];
      submission.seen[queue] = last[i];
    });
    const thrown = takeThrown(backend, this.lists, this.partTimes, last, outcome);
    this.exit.partEnded(this.iterations, outcome);
    this.completions.passPlay();
    state.playing = false;
    this.isPlaying = false;
    state.movedAt = state.x.now;
    const part = this.times === undefined ? undefined : this.endedPart(outcome);
    const { iterations: before, parameters } = this;
    const [first] = this.exit.failures();
    const error =
      first &&
      playFailure({ state, program, wish: this.wish }, { before, parameters, thrown }, first);
    this.iterations += error === undefined ? played : 0;
    // An abort may come after the last command, or while all queues wait at a barrier.
    const failed = error ?? this.stopped;
    const hasMore = played === this.partTimes && this.iterations < this.wanted;
    const isOver = failed !== undefined || !hasMore;
    try {
      // What has been played is recorded while the next part is under way, and after the end of the play.
      if (isOver) this.reportEnd(failed);
      else {
        this.wish.stand?.played(this.iterations);
        this.beginPart();
      }
    } finally {
      if (part !== undefined) state.observer?.played(part);
    }
    if (failed !== undefined) this.fail(failed);
    else if (isOver) this.succeed();
    return isOver;
  }

  /** What the present part, which is over, has to be recorded. */
  private endedPart(outcome: readonly number[]): PlayedPart {
    const { program, wish, last, partTimes } = this;
    const { backend } = this.state;
    return {
      program,
      after: wish.after,
      before: this.before,
      iteration: this.iterations,
      parameters: this.parameters.values,
      began: this.partBegan,
      ended: backend.now(),
      times: this.recordTimes,
      succeeded: program.queues.map((_, i) => outcome[2 * i]),
      failed: program.queues.map((_, i) => outcome[2 * i + 1]),
      status: (list, record) => {
        const { queue } = program.queues[list];
        const left = Math.imul(partTimes, recordsIn(program.queues[list])) - record;
        return backend.status(queue, (last[list] - left + 1) | 0);
      },
    };
  }

  /** Tells observers once that the play is over. */
  private reportEnd(failed: HeadraceError | undefined): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    const { state, wish } = this;
    if (wish.isPart) return;
    if (failed !== undefined) state.observer?.runFailed(wish.run, failed);
    state.observer?.runEnded(wish.run);
  }

  // --- The end ------------------------------------------------------------------------------------------------

  private succeed(): boolean {
    if (this.iterations > 0) this.exit.succeed();
    this.placement.leave();
    this.reportEnd(undefined);
    this.wish.done(this.iterations);
    return true;
  }

  private fail(error: HeadraceError): void {
    this.exit.fail(this.hasEntered);
    this.placement.leave();
    this.reportEnd(error);
    this.wish.failed(error);
  }
}
