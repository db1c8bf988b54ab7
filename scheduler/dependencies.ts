// Dependency inference for sequential task flow: what a task must follow, from the data it touches in program
// order. Per datum: the last task that writes it and the tasks that read it since.
//
// Edges exist only between tasks that were not issued yet. Once a task is issued, the order against it is kept by
// the events of the copies it uses (stages/exec.ts), which cost nothing when the two share an in-order queue. A task
// that is dropped keeps its edges until its own predecessors have released it (dropped-tasks.ts).
// Invariant: for every datum, every pair of tasks with at least one writer is ordered by an edge or by an event.
import { NodePool } from '../devices/node-pool.js';
import { AccessMode, TaskStage, type TaskTable } from '../stages/task-table.js';

/** Told about every explicit dependency while tracing; the others follow from the data tasks use. */
export type DependencyListener = (successor: number, predecessor: number) => void;

export class Dependencies {
  private readonly tasks: TaskTable;
  /** Successor lists: value = row * 2 + (1 for control). */
  readonly edges: NodePool = new NodePool(4096);
  private readonly readerNodes: NodePool = new NodePool(4096);
  private lastWriter: Int32Array = new Int32Array(256);
  private readers: Int32Array = new Int32Array(256).fill(-1);
  /** Readers listed per datum, and the length at which finished ones are weeded out next. */
  private readerCount: Int32Array = new Int32Array(256);
  private weedAt: Int32Array = new Int32Array(256).fill(64);
  listener: DependencyListener | undefined;

  constructor(tasks: TaskTable) {
    this.tasks = tasks;
  }

  /** Makes room for datum `d` and forgets who used its row before. */
  addDatum(d: number): void {
    if (d >= this.readers.length) {
      const length = this.readers.length * 2;
      const grow = (from: Int32Array, fill: number): Int32Array => {
        const to = new Int32Array(length).fill(fill, from.length);
        to.set(from);
        return to;
      };
      this.lastWriter = grow(this.lastWriter, 0);
      this.readers = grow(this.readers, -1);
      this.readerCount = grow(this.readerCount, 0);
      this.weedAt = grow(this.weedAt, 64);
    }
    // An id just before the window is in no window.
    this.lastWriter[d] = (this.tasks.head - 1) | 0;
    this.readers[d] = this.readerNodes.freeList(this.readers[d]);
    this.readerCount[d] = 0;
    this.weedAt[d] = 64;
  }

  /** Live tasks have other rows now. */
  moveRows(rowNow: (row: number) => number): void {
    const { tasks } = this;
    const { value, next } = this.edges;
    for (let id = tasks.head; id !== tasks.next; id = (id + 1) | 0) {
      for (let n = tasks.successors[id & tasks.mask]; n >= 0; n = next[n])
        value[n] = rowNow(value[n] >> 1) * 2 + (value[n] & 1);
    }
  }

  /** Orders task `id` (in `row`) after everything it must follow because it uses datum `d` like that. */
  order(id: number, row: number, d: number, mode: number): void {
    const { tasks, readerNodes } = this;
    const writer = this.lastWriter[d];
    if (writer !== id && tasks.contains(writer)) this.follow(writer, row);
    if (mode === AccessMode.read) return;
    for (let n = this.readers[d]; n >= 0; n = readerNodes.next[n]) {
      const reader = readerNodes.value[n];
      if (reader !== id && tasks.contains(reader)) this.follow(reader, row);
    }
  }

  /**
   * Registers what task `id` does with datum `d`, for tasks inserted later. Not needed for a task that was issued
   * at once, whose events say the same: `forget` is enough then.
   */
  register(id: number, d: number, mode: number): void {
    if (mode === AccessMode.read) {
      if (this.readerCount[d] >= this.weedAt[d]) this.weed(d);
      this.readers[d] = this.readerNodes.push(this.readers[d], id, 0);
      this.readerCount[d]++;
      return;
    }
    this.forget(d);
    this.lastWriter[d] = id;
  }

  /** A task that writes `d` was issued: whoever used it before was issued before, so nothing is left to order. */
  forget(d: number): void {
    if (this.readers[d] >= 0) {
      this.readers[d] = this.readerNodes.freeList(this.readers[d]);
      this.readerCount[d] = 0;
    }
    this.lastWriter[d] = (this.tasks.head - 1) | 0;
  }

  /**
   * Orders task `row` after `predecessor` without data; true when that one was issued or dropped already, so that its events
   * are needed.
   */
  control(predecessor: number, id: number, row: number): boolean {
    const { tasks } = this;
    if (!tasks.contains(predecessor)) return false;
    const p = predecessor & tasks.mask;
    if (tasks.stage[p] === TaskStage.done) return false;
    this.listener?.(id, predecessor);
    if (tasks.queue[p] >= 0 || tasks.stage[p] === TaskStage.outlived) return true;
    tasks.successors[p] = this.edges.push(tasks.successors[p], row * 2 + 1, 0);
    tasks.pending[row]++;
    return false;
  }

  /** The live task that writes datum `d`, if any. */
  writers(d: number): number[] {
    return this.tasks.contains(this.lastWriter[d]) ? [this.lastWriter[d]] : [];
  }

  /** Live tasks that use datum `d`: what must be over before its memory can go. */
  users(d: number): number[] {
    const list = this.writers(d);
    for (let n = this.readers[d]; n >= 0; n = this.readerNodes.next[n]) {
      if (this.tasks.contains(this.readerNodes.value[n])) list.push(this.readerNodes.value[n]);
    }
    return list;
  }

  private follow(predecessor: number, row: number): void {
    const { tasks } = this;
    const p = predecessor & tasks.mask;
    const stage = tasks.stage[p];
    // The directory knows the events of what was issued, and of what an outlived task had to follow.
    if (stage === TaskStage.done || stage === TaskStage.outlived || tasks.queue[p] >= 0) return;
    tasks.successors[p] = this.edges.push(tasks.successors[p], row * 2, 0);
    tasks.pending[row]++;
  }

  private weed(d: number): void {
    const { tasks, readerNodes } = this;
    let kept = -1;
    let count = 0;
    for (let n = this.readers[d]; n >= 0; ) {
      const reader = readerNodes.value[n];
      if (tasks.contains(reader) && tasks.stage[reader & tasks.mask] !== TaskStage.done) {
        kept = readerNodes.push(kept, reader, 0);
        count++;
      }
      n = readerNodes.free(n);
    }
    this.readers[d] = kept;
    this.readerCount[d] = count;
    this.weedAt[d] = Math.max(64, count * 2);
  }
}
