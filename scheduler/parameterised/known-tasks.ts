// The known tasks of a class by their indices: a hash table with open addressing, without a key object per task.
// Invariants: from the place of its hash to its own place, every place before a task is taken, so a search ends at the first free
// place. At least half of the places are free.

import type { Indices } from './ends.js';
import type { GraphTask } from './graph-task.js';

const LEAST_PLACES = 16;
/** An odd number near 2^32 divided by the golden ratio: the upper bits of the product spread. */
const SPREAD = 0x9e3779b1;

/** @internal */
export class KnownTasks {
  private readonly names: readonly string[];
  private tasks: (GraphTask | undefined)[] = [];
  /** The indices of the task at each place. */
  private keys: Float64Array = new Float64Array(0);
  private mask = 0;
  private shift = 0;
  private taken = 0;
  /** The indices that were looked for last, and the place where that search ended. */
  private readonly sought: Float64Array;
  private place = 0;

  /** `names`: of the indices. */
  constructor(names: readonly string[]) {
    this.names = names;
    this.sought = new Float64Array(names.length);
    this.resize(LEAST_PLACES);
  }

  get size(): number {
    return this.taken;
  }

  /** Number of places: in proportion to the most tasks that were known at a time. */
  get places(): number {
    return this.mask + 1;
  }

  /** The task with these indices. As in `sameIndices`, each index is read at a place of its own in the code. */
  find(of: Indices): GraphTask | undefined {
    const { names, sought, tasks, mask } = this;
    const count = names.length;
    let hash = 0;
    if (count > 0) {
      const value = of[names[0]];
      sought[0] = value;
      hash = Math.imul(value, SPREAD);
    }
    if (count > 1) {
      const value = of[names[1]];
      sought[1] = value;
      hash = Math.imul(hash ^ value, SPREAD);
    }
    if (count > 2) {
      const value = of[names[2]];
      sought[2] = value;
      hash = Math.imul(hash ^ value, SPREAD);
    }
    for (let n = 3; n < count; n++) {
      const value = of[names[n]];
      sought[n] = value;
      hash = Math.imul(hash ^ value, SPREAD);
    }
    let place = hash >>> this.shift;
    let task = tasks[place];
    while (task !== undefined && !this.isSought(place)) {
      place = (place + 1) & mask;
      task = tasks[place];
    }
    this.place = place;
    return task;
  }

  /** Adds the task that the last search has not found. */
  add(task: GraphTask): void {
    if (2 * (this.taken + 1) > this.places) {
      this.resize(2 * this.places);
      this.find(task.indices);
    }
    this.taken++;
    this.put(task, this.place, this.sought, 0);
  }

  /** Takes out a task that is in it. Those behind it move up, unless they stand at the place of their hash or behind it. */
  delete({ place }: GraphTask): void {
    const { tasks, keys, mask } = this;
    const count = this.names.length;
    let hole = place;
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const task = tasks[at];
      if (task === undefined) break;
      if (((at - this.home(at)) & mask) < ((at - hole) & mask)) continue;
      this.put(task, hole, keys, at * count);
      hole = at;
    }
    tasks[hole] = undefined;
    this.taken--;
  }

  /** All of them, in no order. */
  *all(): Generator<GraphTask> {
    for (const task of this.tasks) if (task !== undefined) yield task;
  }

  private isSought(place: number): boolean {
    const { keys, sought } = this;
    const first = place * sought.length;
    for (let n = 0; n < sought.length; n++) if (keys[first + n] !== sought[n]) return false;
    return true;
  }

  /** The place of the hash of the task at a place. */
  private home(place: number): number {
    const { keys } = this;
    const count = this.names.length;
    let hash = 0;
    for (let n = 0; n < count; n++) hash = Math.imul(hash ^ keys[place * count + n], SPREAD);
    return hash >>> this.shift;
  }

  /** Puts a task at a free place. Its indices stand in `from`, from `first` on. */
  private put(task: GraphTask, place: number, from: Float64Array, first: number): void {
    const { keys, tasks } = this;
    const count = this.names.length;
    for (let n = 0; n < count; n++) keys[place * count + n] = from[first + n];
    tasks[place] = task;
    task.place = place;
  }

  private resize(places: number): void {
    const { tasks } = this;
    this.tasks = new Array<GraphTask | undefined>(places).fill(undefined);
    this.keys = new Float64Array(places * this.names.length);
    this.mask = places - 1;
    this.shift = Math.clz32(this.mask);
    for (const task of tasks) {
      if (task === undefined) continue;
      this.find(task.indices);
      this.put(task, this.place, this.sought, 0);
    }
  }
}
