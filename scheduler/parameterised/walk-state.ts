// What a walk has at a moment: the known tasks, what has arrived at them, and the order of those that are ready.
// Invariant: two states of a walk that are equal but for the indices of each class, which have moved by the same differences, go on
// equally as long as the functions of the graph return what has moved in the same way. So numbers that grow with the walk are kept
// relative to it: turns to the number of known tasks, versions to that of the datum.

import { Datum } from '../program/datum.js';
import { ClassShift, Place } from './class-shift.js';
import { FlowEnd, type Indices } from './ends.js';
import type { GraphClass } from './graph-class.js';
import type { GraphTask } from './graph-task.js';
import type { ReadyQueue } from './ready-tasks.js';
import { Value } from './values.js';
import type { WaitingTasks } from './waiting-tasks.js';

const NO_WRITER = 1;
const FROM_TASK = -1;
const FROM_DATUM = -2;

/** @internal */
export class WalkState {
  /** Smallest turn of a known task. */
  oldest: number = Number.POSITIVE_INFINITY;
  private readonly turn: number;
  /** Classes and data, in the order of the tasks and their inputs. */
  private readonly things: unknown[] = [];
  private readonly numbers: number[] = [];
  /** Indices of tasks, with their classes. */
  private readonly owners: GraphClass[] = [];
  private readonly indices: Indices[] = [];
  private readonly values: Map<Value, number> = new Map();

  private constructor(turn: number) {
    this.turn = turn;
  }

  /** Undefined if a task is ready that became known without an input, or if a known task has a temporary: no round has them. */
  static of(waiting: WaitingTasks, ready: ReadyQueue): WalkState | undefined {
    const state = new WalkState(waiting.count);
    for (const { turn } of ready.all()) {
      if (turn < 0) return undefined;
      state.numbers.push(turn - state.turn);
    }
    for (const task of waiting.all()) if (!state.add(task)) return undefined;
    return state;
  }

  private add(task: GraphTask): boolean {
    const { cls, turn, missing, inputs } = task;
    this.oldest = Math.min(this.oldest, turn);
    this.place(cls, task.indices);
    this.numbers.push(turn - this.turn, missing);
    return inputs.every((input) => {
      if (input instanceof Value) return this.addValue(input);
      if (input instanceof FlowEnd) {
        this.place(input.cls as GraphClass, input.indices);
        this.numbers.push(FROM_TASK, input.flow);
        return true;
      }
      this.things.push(input);
      this.numbers.push(FROM_DATUM);
      return input instanceof Datum;
    });
  }

  private place(cls: GraphClass, of: Indices): void {
    this.things.push(cls);
    this.owners.push(cls);
    this.indices.push(of);
  }

  private addValue(value: Value): boolean {
    const { numbers, values } = this;
    const { of, version, readers, writer, isOver } = value;
    const known = values.get(value);
    numbers.push(known ?? values.size);
    if (known !== undefined) return true;
    values.set(value, values.size);
    this.things.push(of);
    numbers.push(of.version - version, readers, isOver ? 1 : 0);
    numbers.push(writer === undefined ? NO_WRITER : writer.turn - this.turn);
    return !of.isTemporary;
  }

  /** By number of the class, how its indices have moved until a later state; undefined if anything else differs. */
  shiftsTo(later: WalkState, classes: readonly GraphClass[]): ClassShift[] | undefined {
    const shifts = classes.map(({ indexNames }) => new ClassShift(indexNames));
    return this.isMovedTo(later, shifts) ? shifts : undefined;
  }

  /** Whether a later state is this one with indices that have moved so far. Classes whose differences are not known get those. */
  isMovedTo({ numbers, things, indices }: WalkState, shifts: readonly ClassShift[]): boolean {
    if (!isSame(this.numbers, numbers) || !isSame(this.things, things)) return false;
    return this.owners.every(({ number, indexNames }, n) =>
      shifts[number].fits(new Place(indexNames, this.indices[n]), indices[n]),
    );
  }
}

function isSame(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((one, n) => one === others[n]);
}
