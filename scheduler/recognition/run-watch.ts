// What is known of the insertions of one run: they are compared with those of a plan, and held back; or they are inserted, and
// looked at now and then (glance.ts), or followed or recorded for later. A run that repeats a stretch of its tasks is compared with that
// stretch, and looked at for another one when it has left it.
import { guards } from '../../devices/guards.js';
import type { TaskHandle } from '../../devices/handles.js';
import type { RunState } from '../engine/run-state.js';
import type { ProgramInsertion, TaskInsertion } from '../engine/task-insertion.js';
import { hasDataParameters } from '../program/class-shapes.js';
import type { Datum } from '../program/datum.js';
import type {
  GivenTask,
  Graph,
  InsertionWatch,
  Repetition,
  TaskOptions,
} from '../program/graph.js';
import { isTaskClass, type TaskClass } from '../program/task-class.js';
import { ANY_RANK } from '../ranks/insertion.js';
import type { Comparison } from './expectation.js';
import type { Glance } from './glance.js';
import { HeldRun } from './held-run.js';
import { HeldStretches } from './held-stretches.js';
import { numberOf } from './periods.js';
import type { Sequence } from './sequence.js';
import type { StretchFinder } from './stretch-finder.js';

/** What is held back of a run. */
export type Held = HeldRun | HeldStretches;

/** A run with more tasks is not recorded. */
export const MOST_TASKS: number = 2 ** 16;
/** Insertions apart from the stretch that a run repeats, in lengths of the stretch, after which another one is looked for. */
const PATIENCE = 3;
/** Insertions of a run that is held back between two looks at the clock. */
const TASKS_BETWEEN_LOOKS = 64;
/** Insertions between two looks at what waiting for stretches costs. */
const ASKED_AT_ONCE = 4096;

/** What is known of other runs. */
interface Recogniser {
  hold(watch: RunWatch, given: GivenTask, isFirst: boolean): Held | undefined;
  /** Another plan that has the insertions of the run so far, and the next one; without a next one, those and no more. */
  turns(watch: RunWatch, next: GivenTask | undefined): HeldRun | undefined;
  /** The program of a hold has ended, with all insertions as expected. False if they are inserted after all. */
  complete(held: HeldRun, watch: RunWatch): boolean;
  missed(sequence: Sequence): void;
  settle(): void;
  reentered(cls: TaskClass): Error;
  /** The next insertion may be held back, or must come after others that are. */
  readonly mayHoldNext: boolean;
  /** The begin of a stretch was looked for in vain in insertions of the run. */
  waits(watch: RunWatch): void;
  /** The number of the next task that is inserted; on several ranks among the tasks of all ranks. */
  readonly nextTask: number;
  /** Nanoseconds. */
  readonly now: number;
  /** There are several ranks. */
  readonly isOnRanks: boolean;
  /** The tasks of the run are inserted, or some of them are. */
  inserts(watch: RunWatch): void;
  /** A run with that first insertion is to be recorded as a whole: one that begins so has come often enough. */
  mayRecord(first: number, cls: TaskClass): boolean;
  /** A stretch of the run is to be recorded. */
  mayRecordStretch(watch: RunWatch): boolean;
  /** Insertions are held back, or may be at any time. */
  readonly mustSee: boolean;
  /** `isStray`: the run is none of those that are planned. */
  like(insertion: TaskInsertion, rank: number | undefined, isStray: boolean): Sequence | undefined;
  /** The run that follows a sequence is another one. */
  differs(sequence: Sequence): void;
  finder(forRun: boolean, before: number): StretchFinder;
  /** `isClose`: all insertions are looked at. */
  takeGlance(isClose: boolean): Glance;
  /** There are plans of stretches. */
  readonly hasStretches: boolean;
  /** It is known how long the tasks of a stretch take, or will not be. */
  isMeasured(sequence: Sequence, length: number): boolean;
  /** Plans a stretch that the run repeats; undefined if it is not to be played. */
  stretch(watch: RunWatch, finder: StretchFinder, length: number): Sequence | undefined;
}

/** A sequence with which a run was compared, and why it is another one. */
export interface Strayed {
  readonly sequence: Sequence;
  readonly why: string;
}

const NONE: readonly number[] = [];
const NO_TASKS = 'the run has no tasks';

export class RunWatch implements InsertionWatch {
  readonly run: RunState;
  /** Name of the run. */
  readonly name: string;
  /** 'played', or why not. For the run's report. */
  outcome: string = NO_TASKS;
  /** The sequence that it follows, or that it records. */
  sequence: Sequence | undefined;
  /** All its insertions so far were seen, and it may come again as a whole. */
  isWhole = false;
  /** Class of the first insertion. */
  firstClass: TaskClass | undefined;
  /** `takes` need not be called. */
  isQuiet = false;
  /** What it repeats, and tasks of it that were played. */
  stretch: Sequence | undefined;
  played = 0;
  /** While insertions are compared instead of inserted. */
  private comparison: Comparison | undefined;
  /** Insertions that are compared before something else is done. */
  private lookAt = 0;
  private held: Held | undefined;
  private lastHandle = 0 as TaskHandle;
  private readonly recognition: Recogniser;
  /** No task was inserted or compared yet. */
  private isFirst = true;
  private wasHeld = false;
  /** It was decided whether its insertions are recorded. */
  private hasStarted = false;
  private isSealed = false;
  /** Set if `sequence` was there before. */
  isFollowing = false;
  /** Looks for a stretch in what is recorded. */
  finder: StretchFinder | undefined;
  /** A look at the insertions of a run that is not followed. */
  look: Glance | undefined;
  /** The same while nothing else is done: insertions that it passes need not be noted. */
  glance: Glance | undefined;
  /** Insertions that were recorded or followed, since they were paid. */
  seen = 0;
  /** Insertions of the run that the account knows of. */
  accounted = 0;
  /** Those in which the begin of a stretch was looked for in vain, of late. */
  asked = 0;
  /** Those of them since it was begun to record or follow, and the number of the first task. */
  private count = 0;
  private base = 0;
  /** Insertions since the last stretch. */
  private apart = 0;
  private looksForAwait = false;
  /** Calls for space that its program awaits. */
  private spaces = 0;
  private readonly graph: Graph;
  /** The next task when the run began. */
  private readonly began: number;
  /** When it began. */
  readonly since: number;
  /** What is played in its place, or is inserted for a trial (trials.ts). */
  playing: Sequence | undefined;
  trial: Sequence | undefined;
  /** Its insertions, once its program has ended. */
  total = 0;
  /** It was compared with a sequence, and is another run. */
  strayed: Strayed | undefined;

  constructor(recognition: Recogniser, run: RunState, name: string, graph: Graph) {
    this.graph = graph;
    graph.watch = this;
    this.recognition = recognition;
    this.isQuiet = !recognition.mayHoldNext;
    this.began = recognition.nextTask;
    this.since = recognition.now;
    this.run = run;
    this.name = name;
  }

  /** Handle of the insertion that was accepted last. */
  get handle(): TaskHandle {
    return this.comparison?.handle ?? this.lastHandle;
  }

  get place(): number {
    const { recognition, run } = this;
    return recognition.isOnRanks ? recognition.nextTask - this.began : run.inserted;
  }

  accepts(
    cls: unknown,
    args: unknown,
    options: TaskOptions | undefined,
    inOrder?: readonly Datum[],
  ): boolean {
    const { comparison } = this;
    if (comparison === undefined) return false;
    const { next } = comparison;
    if (comparison.accepts(cls, args, options, inOrder)) {
      if (comparison.next >= this.lookAt) this.looks(comparison);
      return true;
    }
    if (!comparison.isAt(next)) throw this.recognition.reentered(cls as TaskClass);
    return false;
  }

  takes(given: GivenTask): boolean {
    const { comparison } = this;
    const { cls, args } = given;
    const next = comparison?.next ?? 0;
    const known = cls as TaskClass | undefined;
    // A task with lists, or with parameters that are data, is inserted as one of another class, which comes here again.
    if (known?.lists !== undefined) return false;
    if (comparison !== undefined || this.isFirst) {
      const hasFields = args !== null && typeof args === 'object';
      if (hasFields && isTaskClass(known) && mayHaveData(known, args as never)) return false;
      // Getters were called.
      if (comparison?.isAt(next) === false) throw this.recognition.reentered(known as TaskClass);
    }
    if (this.isFirst && this.holds(given)) return true;
    if (this.held instanceof HeldRun && this.turns(given)) return true;
    if (this.held !== undefined) this.strays(`task ${this.held.compared} is not the expected one`);
    this.recognition.settle();
    if (this.finder?.mayRepeat === true) this.repeats(this.finder);
    if (this.recognition.hasStretches) {
      if (this.holds(given)) return true;
      if (++this.asked >= ASKED_AT_ONCE) this.recognition.waits(this);
      return false;
    }
    this.isQuiet = !this.recognition.mustSee && this.finder?.mayRepeat !== true;
    return false;
  }

  /** The last task of a plan was compared, or a few more. */
  private looks(comparison: Comparison): void {
    const { held } = this;
    // What it does may end the hold.
    this.lastHandle = comparison.handle;
    if (held instanceof HeldStretches) held.stretchEnds();
    else if (held?.isLate === true) {
      this.misses('its program computes between its insertions');
      this.recognition.settle();
    } else this.lookAt += TASKS_BETWEEN_LOOKS;
  }

  get isInStretches(): boolean {
    return this.held instanceof HeldStretches;
  }

  get untilStretch(): number | undefined {
    const { held, comparison } = this;
    if (!(held instanceof HeldStretches) || comparison === undefined) return undefined;
    return comparison.next === 0 || !guards.againAtStretch ? 0 : held.count - comparison.next;
  }

  /**
   * Whole stretches are added to the play, and compared with nothing. Invariant: they are what the program would insert. It inserts its last
   * insertions again, and the last ones that are a whole number of these and of stretches were compared in this hold.
   */
  again({ count, before, ahead }: Repetition): number {
    const { held, comparison } = this;
    if (!(held instanceof HeldStretches) || comparison === undefined) return 0;
    const stretch = held.count;
    const both = leastCommonMultiple(count, stretch);
    if (both > before || both > held.complete) return 0;
    // Only the values of the last stretch are known.
    if (comparison.expected.openPlaces.length > 0 && both > stretch) return 0;
    const most = ahead - (ahead % both);
    let taken = 0;
    while (taken < most && this.held === held && held.goesOn) {
      comparison.acceptAgain();
      this.looks(comparison);
      taken += stretch;
    }
    return taken;
  }

  /** Whether the insertion is the first of a plan. Then insertions are compared from here on, and held back. */
  private holds(given: GivenTask): boolean {
    const { isFirst } = this;
    this.isFirst = false;
    this.held = this.recognition.hold(this, given, isFirst);
    this.comparison = this.held?.comparison;
    if (this.held === undefined) return false;
    this.wasHeld = true;
    this.lookAt = TASKS_BETWEEN_LOOKS;
    if (this.held instanceof HeldStretches) {
      this.lookAt = this.held.count;
      this.repeated(this.held.sequence);
      this.lookForAwait();
    }
    return true;
  }

  /** A turn of the event loop while stretches are held back: the program awaits something. */
  private lookForAwait(): void {
    if (this.looksForAwait) return;
    this.looksForAwait = true;
    setImmediate(() => {
      this.looksForAwait = false;
      if (this.held !== undefined && this.spaces === 0) this.awaits();
    });
  }

  asksForSpace(): boolean {
    const what = 'its program asks for space';
    if (!(this.held instanceof HeldStretches)) {
      if (this.held !== undefined) this.misses(what);
      this.forget(what);
      return false;
    }
    // Its tasks run, and give room, while the stretch that is being compared waits for the rest.
    this.spaces++;
    this.held.playSoon();
    return true;
  }

  hasSpace(): void {
    this.spaces--;
    if (this.held !== undefined) this.lookForAwait();
  }

  /** The recorded insertions may end with a stretch that comes again. */
  private repeats(finder: StretchFinder): void {
    const length = finder.stretch();
    if (length === 0 || !this.recognition.isMeasured(finder.sequence, length)) return;
    const stretch = this.recognition.stretch(this, finder, length);
    if (stretch === undefined) finder.stop();
    else this.repeated(stretch);
  }

  /** Its next insertions are those of a stretch, and are not recorded. */
  private repeated(stretch: Sequence): void {
    this.stretch = stretch;
    this.apart = 0;
    this.finder = undefined;
    this.glance = undefined;
    this.forget('it repeats a stretch of tasks');
  }

  /** Insertions of the program that its run does not count yet. */
  get heldBack(): number {
    const { held } = this;
    return held === undefined || held.isComplete ? 0 : held.compared;
  }

  /** The program asks for something that needs its tasks to run before it ends. */
  asks(what: string): void {
    if (this.held !== undefined) this.misses(what);
    this.forget(what);
    this.finder?.break();
    this.recognition.settle();
    this.recognition.inserts(this);
  }

  /** The hold is over: its insertions are inserted. */
  released(): void {
    this.held = undefined;
    this.comparison = undefined;
  }

  /** Others hold insertions back, which must come before those of this run; or the run has just begun. */
  sees(): void {
    this.isQuiet = false;
    this.graph.watch = this;
  }

  /** Its insertions are compared with those of another plan from here on, if there is one that has begun in the same way. */
  private turns(next: GivenTask | undefined): boolean {
    const held = this.recognition.turns(this, next);
    if (held === undefined) return false;
    this.held = held;
    this.comparison = held.comparison;
    return true;
  }

  /** It is another run than the plan's. What was held back is noted while it is inserted, as if nothing had been. */
  private strays(why: string): void {
    const { held, recognition } = this;
    if (held instanceof HeldRun && !recognition.isOnRanks && guards.straysNoted) {
      this.strayed = { sequence: held.sequence, why };
      this.outcome = why;
    } else this.misses(why);
  }

  private misses(why: string): void {
    const { held } = this;
    if (held instanceof HeldStretches ? held.isInVain : held !== undefined)
      this.recognition.missed((held as Held).sequence);
    this.outcome = why;
  }

  /** The function of the program has returned, and what it awaits takes a turn of the event loop. */
  awaits(): void {
    if (!this.isSealed && this.spaces === 0) this.asks('its program awaits something');
  }

  notes(insertion: ProgramInsertion, cls: TaskClass, target: number): void {
    const { isOnRanks, nextTask: next } = this.recognition;
    const rank = isOnRanks && target !== ANY_RANK ? target : undefined;
    if (!this.hasStarted) this.start(insertion as TaskInsertion, cls, rank, next);
    const { look, place } = this;
    const { glance } = this;
    const last = cls.flowNames.length - 1;
    if (look !== undefined && (look === glance || !look.passes(insertion.flows, last, place)))
      look.see(insertion as TaskInsertion, place);
    if (glance !== undefined && !this.records(glance, next)) return;
    const isApart = isOnRanks && insertion.after !== undefined;
    if (cls.reductions !== undefined || isApart) {
      this.forget(isApart ? 'its tasks name others that they follow' : 'its tasks reduce');
      this.finder = undefined;
      this.stretch = undefined;
    }
    if (this.sequence === undefined && this.finder === undefined) {
      this.looksAgain();
      return;
    }
    if (((this.base + this.count) | 0) !== next) {
      this.forget('other tasks came between its own');
      if (this.finder === undefined) return;
      this.finder.break();
      this.base = (next - this.count) | 0;
    }
    const { base } = this;
    const count = this.count++;
    const after =
      insertion.after === undefined ? NONE : insertion.after.map((id) => (id - base) | 0);
    const { sequence } = this;
    if (sequence !== undefined && after.some((n) => n < 0 || n >= count))
      this.forget('its tasks follow tasks of other runs');
    if (this.finder !== undefined)
      this.record(this.finder, cls, insertion as TaskInsertion, after, rank);
    else if (this.sequence !== undefined && sequence !== undefined) {
      this.seen++;
      if (sequence.follows(count, insertion as TaskInsertion, after, rank)) return;
      this.recognition.differs(sequence);
      this.forget('its tasks are not those of the run before');
    }
  }

  private start(
    insertion: TaskInsertion,
    cls: TaskClass,
    rank: number | undefined,
    next: number,
  ): void {
    this.hasStarted = true;
    this.isFirst = false;
    const isStray = this.strayed !== undefined;
    if (this.wasHeld && !isStray) return;
    this.base = next;
    this.firstClass = cls;
    const known = this.recognition.like(insertion, rank, isStray);
    if (known?.planned !== undefined || known?.refused) {
      const isKnown = this.outcome !== NO_TASKS;
      this.outcome = known.refused || (isKnown ? this.outcome : 'task 0 is not the expected one');
      return;
    }
    this.isWhole = true;
    this.isFollowing = known !== undefined;
    this.sequence = known;
    if (known === undefined) {
      // It differs little from runs that have come before.
      this.look = this.recognition.takeGlance(isStray);
      if (this.recognition.mayRecord(numberOf(insertion, NONE, 0), cls)) {
        this.finder = this.recognition.finder(true, 0);
        this.sequence = this.finder.sequence;
      } else this.glance = this.look;
    }
    this.outcome = 'its tasks are new';
  }

  /** Nothing is recorded. Whether it is again, because the program has left the stretch that it has repeated. */
  private looksAgain(): void {
    const { stretch } = this;
    if (stretch === undefined) this.graph.watch = undefined;
    else if (stretch.planned === undefined || ++this.apart >= PATIENCE * stretch.count) {
      this.stretch = undefined;
      this.glances();
    }
  }

  /** Nothing is recorded from here on, but the run may come to repeat a stretch. */
  private glances(wasInVain = false): void {
    this.finder = undefined;
    this.look ??= this.recognition.takeGlance(false);
    this.glance = this.look;
    this.look.again(this.run.inserted, wasInVain);
  }

  /** The run may repeat a stretch. Whether its insertions are recorded from here on. */
  private records({ repeated }: Glance, next: number): boolean {
    if (repeated === 0) return false;
    if (!this.recognition.mayRecordStretch(this)) {
      this.glances(true);
      return false;
    }
    this.glance = undefined;
    this.finder = this.recognition.finder(false, repeated);
    this.isFollowing = false;
    this.count = 0;
    this.base = next;
    return true;
  }

  private record(
    finder: StretchFinder,
    cls: TaskClass,
    insertion: TaskInsertion,
    after: readonly number[],
    rank: number | undefined,
  ): void {
    this.seen++;
    if (this.count <= MOST_TASKS) {
      finder.add(cls, insertion, after, rank);
      if (finder.mayRepeat) this.isQuiet = false;
      if (finder.isInVain) this.glances(true);
    } else {
      this.forget(`it has more than ${MOST_TASKS} tasks`);
      this.finder = undefined;
    }
  }

  /** The insertions are not recorded or followed any more. */
  forget(why: string): void {
    if (!this.isWhole) return;
    this.isWhole = false;
    this.sequence = undefined;
    if (this.finder !== undefined) this.finder.forRun = false;
    this.outcome = why;
  }

  /** The program has ended. True if a play takes the place of its last tasks, and ends the run. */
  seals(): boolean {
    this.isSealed = true;
    const { held, recognition, sequence } = this;
    this.total = this.place;
    if (held instanceof HeldStretches) {
      const waits = held.seal();
      if (waits) this.comparison = undefined;
      else recognition.settle();
      return waits;
    }
    if (held !== undefined) {
      if (held.compared === held.count) {
        this.total = held.count;
        return recognition.complete(held, this);
      }
      if (this.turns(undefined)) return this.seals();
      this.strays(`it has ${held.compared} of ${held.count} tasks`);
      recognition.settle();
    } else if (this.isFollowing && sequence !== undefined && this.count < sequence.count) {
      recognition.differs(sequence);
      this.forget('its tasks are not those of the run before');
    }
    recognition.inserts(this);
    return false;
  }

  /** A datum or its device has changed. */
  changed(): void {
    if (this.isSealed) return;
    this.forget('its program closes data, or advises devices');
    this.finder?.break();
  }
}

function leastCommonMultiple(a: number, b: number): number {
  let [large, small] = [a, b];
  while (small > 0) [large, small] = [small, large % small];
  return (a / large) * b;
}

/** Whether parameters are data. Those that cannot be read are none: the insertion reads them again, and names them. */
function mayHaveData(cls: TaskClass, args: Readonly<Record<string, unknown>>): boolean {
  try {
    return hasDataParameters(cls, args);
  } catch {
    return false;
  }
}
