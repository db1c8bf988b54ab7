// The known tasks of a class by their indices: a hash table of chains, without a key object per task.
// Invariants: a task stands in the chain of its hash, once. There are at least twice as many chains as tasks.

import type { Indices } from './ends.js';
import type { GraphTask } from './graph-task.js';
import { sameIndices } from './task-key.js';

const LEAST_CHAINS = 16;
/** An odd number near 2^32 divided by the golden ratio: the upper bits of the product spread. */
const SPREAD = 0x9e3779b1;
/** The same for points of a lattice, as the tasks of a graph are: 2^32 divided by powers of the root of x^4 = x + 1. */
const SPREAD_A = 0xd1b54a33;
const SPREAD_B = 0xabc98389;
const SPREAD_C = 0x8cb92ba7;

/** @internal */
export class KnownTasks {
  private readonly names: readonly string[];
  /** The first task of each chain; `task.next` is the one behind it. */
  private heads: (GraphTask | undefined)[] = noChains(LEAST_CHAINS);
  private shift = shiftFor(LEAST_CHAINS);
  private count = 0;
  /** Of the indices that were looked for last. */
  private hash = 0;

  /** `names`: of the indices. */
  constructor(names: readonly string[]) {
    this.names = names;
  }

  get size(): number {
    return this.count;
  }

  /** Number of chains: in proportion to the most tasks that were known at a time. */
  get chains(): number {
    return this.heads.length;
  }

  /** The task with these indices. */
  find(of: Indices): GraphTask | undefined {
    const { names } = this;
    const hash = hashOf(names, of);
    this.hash = hash;
    let task = this.heads[hash >>> this.shift];
    while (task !== undefined && !(task.hash === hash && sameIndices(names, task.indices, of)))
      task = task.next;
    return task;
  }

  /** Adds the task that the last search has not found. */
  add(task: GraphTask): void {
    if (2 * this.count === this.heads.length) this.grow();
    task.hash = this.hash;
    this.count++;
    this.put(task);
  }

  /** Takes out a task that is in it. */
  delete(task: GraphTask): void {
    const { heads } = this;
    const chain = task.hash >>> this.shift;
    let before = heads[chain] as GraphTask;
    if (before === task) heads[chain] = task.next;
    else {
      while (before.next !== task) before = before.next as GraphTask;
      before.next = task.next;
    }
    task.next = undefined;
    this.count--;
  }

  /** Changes the indices of all tasks, to others that differ from each other. */
  move(change: (task: GraphTask) => void): void {
    const tasks = [...this.all()];
    this.heads.fill(undefined);
    for (const task of tasks) {
      change(task);
      task.hash = hashOf(this.names, task.indices);
      this.put(task);
    }
  }

  /** All of them, in no order. */
  *all(): Generator<GraphTask> {
    for (const head of this.heads)
      for (let task = head; task !== undefined; task = task.next) yield task;
  }

  private put(task: GraphTask): void {
    const { heads } = this;
    const chain = task.hash >>> this.shift;
    task.next = heads[chain];
    heads[chain] = task;
  }

  private grow(): void {
    const tasks = [...this.all()];
    const chains = 2 * this.heads.length;
    this.heads = noChains(chains);
    this.shift = shiftFor(chains);
    for (const task of tasks) this.put(task);
  }
}

/** As in `sameIndices`, each index is read at a place of its own in the code. */
function hashOf(names: readonly string[], of: Indices): number {
  const count = names.length;
  const a = count > 0 ? of[names[0]] : 0;
  const b = count > 1 ? of[names[1]] : 0;
  const c = count > 2 ? of[names[2]] : 0;
  let hash = (Math.imul(a, SPREAD_A) + Math.imul(b, SPREAD_B) + Math.imul(c, SPREAD_C)) | 0;
  for (let n = 3; n < count; n++) hash = Math.imul(hash ^ of[names[n]], SPREAD);
  return hash;
}

function noChains(count: number): undefined[] {
  return new Array<undefined>(count).fill(undefined);
}

/** Of a hash to the upper bits that number the chains. */
function shiftFor(chains: number): number {
  return Math.clz32(chains - 1);
}
