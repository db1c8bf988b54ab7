// What is known of the insertions of one run: they are compared with those of a plan, and held back; or they are inserted, and
// followed or recorded for later.
import type { TaskHandle, TaskId } from '../../devices/handles.js';
import type { RunState } from '../engine/run-state.js';
import type { ProgramInsertion, TaskInsertion } from '../engine/task-insertion.js';
import { hasDataParameters } from '../program/class-shapes.js';
import type { Graph, InsertionWatch, TaskOptions } from '../program/graph.js';
import { isTaskClass, type TaskClass } from '../program/task-class.js';
import type { Comparison } from './expectation.js';
import type { HeldRun } from './held-run.js';
import { Sequence } from './sequence.js';

/** A run with more tasks is not recorded. */
export const MOST_TASKS: number = 2 ** 16;

/** What is known of other runs. */
interface Recogniser {
  hold(
    watch: RunWatch,
    cls: TaskClass,
    args: unknown,
    options: TaskOptions | undefined,
  ): HeldRun | undefined;
  complete(held: HeldRun): void;
  missed(sequence: Sequence): void;
  settle(): void;
  reentered(cls: TaskClass): Error;
  /** The number of the next task that is inserted. */
  readonly nextTask: TaskId;
  like(insertion: TaskInsertion): Sequence | undefined;
  forget(sequence: Sequence): void;
}

const NONE: readonly number[] = [];

export class RunWatch implements InsertionWatch {
  readonly run: RunState;
  /** Name of the run. */
  readonly name: string;
  /** 'played', or why not. For the run's report. */
  outcome = 'the run has no tasks';
  /** The sequence that it follows, or that it records. */
  sequence: Sequence | undefined;
  /** While insertions are compared instead of inserted. */
  private comparison: Comparison | undefined;
  private held: HeldRun | undefined;
  private readonly recognition: Recogniser;
  /** No task was inserted or compared yet. */
  private isFirst = true;
  private wasHeld = false;
  /** It was decided whether its insertions are recorded. */
  private hasStarted = false;
  private isSealed = false;
  /** Set if `sequence` was there before. */
  private isFollowing = false;
  /** Insertions so far, and the number of the first task. */
  private count = 0;
  private base = 0;
  private readonly graph: Graph;

  constructor(recognition: Recogniser, run: RunState, name: string, graph: Graph) {
    this.graph = graph;
    this.sees();
    this.recognition = recognition;
    this.run = run;
    this.name = name;
  }

  /** Handle of the insertion that was accepted last. */
  get handle(): TaskHandle {
    return (this.comparison as Comparison).handle;
  }

  takes(cls: unknown, args: unknown, options: TaskOptions | undefined): boolean {
    // The fast path of a recognised run.
    if (this.comparison?.accepts(cls, args, options) === true) return true;
    const known = cls as TaskClass | undefined;
    // A task with lists, or with parameters that are data, is inserted as one of another class, which comes here again.
    if (known?.lists !== undefined) return false;
    if (this.comparison !== undefined || this.isFirst) {
      const hasFields = args !== null && typeof args === 'object';
      if (hasFields && isTaskClass(known) && hasDataParameters(known, args as never)) return false;
    }
    if (this.comparison?.wasReentered === true)
      throw this.recognition.reentered(known as TaskClass);
    if (this.isFirst && this.holds(known as TaskClass, args, options)) return true;
    if (this.held !== undefined) this.misses(`task ${this.held.compared} is not the expected one`);
    this.recognition.settle();
    return false;
  }

  /** Whether the first insertion is that of a plan. Then insertions are compared from here on, and held back. */
  private holds(cls: TaskClass, args: unknown, options: TaskOptions | undefined): boolean {
    this.isFirst = false;
    this.held = this.recognition.hold(this, cls, args, options);
    this.comparison = this.held?.comparison;
    this.wasHeld = this.held !== undefined;
    return this.wasHeld;
  }

  /** Insertions that were recorded or followed. */
  get seen(): number {
    return this.count;
  }

  /** The program asks for something that needs its tasks to run before it ends. */
  asks(what: string): void {
    if (this.held !== undefined) this.misses(what);
    this.forget(what);
    this.recognition.settle();
  }

  /** The hold is over: its insertions are inserted. */
  released(): void {
    this.held = undefined;
    this.comparison = undefined;
  }

  /** Others hold insertions back, which must come before those of this run; or the run has just begun. */
  sees(): void {
    this.graph.watch = this;
  }

  private misses(why: string): void {
    if (this.held !== undefined) this.recognition.missed(this.held.sequence);
    this.outcome = why;
  }

  /** The function of the program has returned, and what it awaits takes a turn of the event loop. */
  awaits(): void {
    if (!this.isSealed) this.asks('its program awaits something');
  }

  notes(insertion: ProgramInsertion, cls: TaskClass): void {
    const next = this.recognition.nextTask;
    if (!this.hasStarted) this.start(insertion as TaskInsertion, next);
    if (cls.reductions !== undefined) this.forget('its tasks reduce');
    const { sequence, count, base } = this;
    if (sequence === undefined) {
      this.graph.watch = undefined;
      return;
    }
    if (((base + count) | 0) !== next) {
      this.forget('other tasks came between its own');
      return;
    }
    this.count++;
    const after =
      insertion.after === undefined ? NONE : insertion.after.map((id) => (id - base) | 0);
    if (after.some((n) => n < 0 || n >= count)) this.forget('its tasks follow tasks of other runs');
    else if (!this.isFollowing) this.record(sequence, cls, insertion as TaskInsertion, after);
    else if (!sequence.follows(count, insertion as TaskInsertion, after)) {
      this.recognition.forget(sequence);
      this.forget('its tasks are not those of the run before');
    }
  }

  private start(insertion: TaskInsertion, next: TaskId): void {
    this.hasStarted = true;
    this.isFirst = false;
    if (this.wasHeld) return;
    this.base = next;
    const known = this.recognition.like(insertion);
    if (known?.planned !== undefined || known?.refused) {
      this.outcome = known.refused || this.outcome;
      return;
    }
    this.isFollowing = known !== undefined;
    this.sequence = known ?? new Sequence();
    this.outcome = 'its tasks are new';
  }

  private record(
    sequence: Sequence,
    cls: TaskClass,
    insertion: TaskInsertion,
    after: readonly number[],
  ): void {
    if (sequence.count >= MOST_TASKS) this.forget(`it has more than ${MOST_TASKS} tasks`);
    else sequence.add(cls, insertion, after);
  }

  /** The insertions are not recorded or followed any more. */
  forget(why: string): void {
    if (this.sequence === undefined) return;
    this.sequence = undefined;
    this.outcome = why;
  }

  /** The program has ended. True if a play takes the place of its tasks, and ends the run. */
  seals(): boolean {
    this.isSealed = true;
    const { held, recognition, sequence } = this;
    if (held !== undefined) {
      if (held.compared === held.count) {
        recognition.complete(held);
        return true;
      }
      this.misses(`it has ${held.compared} of ${held.count} tasks`);
      recognition.settle();
    } else if (this.isFollowing && sequence !== undefined && this.count < sequence.count) {
      recognition.forget(sequence);
      this.forget('its tasks are not those of the run before');
    }
    return false;
  }

  /** A datum or its device has changed. */
  changed(): void {
    if (!this.isSealed) this.forget('its program closes data, or advises devices');
  }
}
