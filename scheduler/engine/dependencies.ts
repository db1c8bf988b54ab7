// Dependency inference for sequential task flow: it derives the predecessors of a task from its data, in program
// order. It keeps per datum the last task that writes it and the tasks that have read it since.
//
// Edges exist only between tasks that are not issued. The events of copies order a task against issued tasks
// (stages/exec.ts); they cost nothing when both tasks share an in-order queue. A dropped task keeps its edges until
// its own predecessors have released it (dropped-tasks.ts).
//
// Tasks that commute on a datum form a group. They follow the accesses before the group, and the accesses behind it follow all of
// them. Among themselves they run one after the other, in the order in which they become ready: a task takes its place behind the
// last one that took a place when all its other predecessors have released it.
// Invariants: for every datum, every pair of tasks with at least one writer is ordered by an edge or by an event, once both are
// ready. An edge between commuting tasks leads from one that became ready earlier to one that did later, so there is no circle.
import type { Column, DatumId, TaskId } from '../../devices/handles.js';
import { NodePool } from '../../devices/node-pool.js';
import { resized } from '../../devices/resized.js';
import { AccessMode, Execution, TaskStage, type TaskTable } from '../../stages/task-table.js';
import type { EngineObserver } from './observer.js';

/** Receives explicit dependencies. All other dependencies follow from the data that tasks use. */
interface Watched {
  readonly observer: Pick<EngineObserver, 'dependency'> | undefined;
}

/** What joins order besides (joins.ts). */
interface Families {
  /** The task that has spawned a task, and that ends after it. */
  parentOf(task: TaskId): TaskId | undefined;
  /** The tasks that wait for the end of the body that has spawned them. */
  heldBy(parent: TaskId): readonly TaskId[];
}

/** Tasks that commute on a datum. */
interface Group {
  /** Commuting tasks of the group before it, if only readers lie between the two. */
  readonly before: readonly TaskId[];
  members: TaskId[];
  /** The number of members at which those that are issued or over are removed. */
  weedAt: number;
  /** Nothing has come between: the next task that commutes belongs to it. */
  isOpen: boolean;
}

export class Dependencies {
  private readonly tasks: TaskTable;
  /** Successor lists: value = row * 2 + (1 for control). */
  readonly edges: NodePool;
  private readonly readerNodes: NodePool<TaskId> = new NodePool<TaskId>(4096);
  private lastWriter: Column<Int32Array, TaskId> = new Int32Array(256) as Column<
    Int32Array,
    TaskId
  >;
  private readers: Int32Array = new Int32Array(256).fill(-1);
  /** Readers listed per datum, and the length at which the next sweep removes finished readers. */
  private readerCount: Int32Array = new Int32Array(256);
  private weedAt: Int32Array = new Int32Array(256).fill(64);
  /** The last group of each datum that nothing has overwritten since. */
  private readonly groups: Map<DatumId, Group> = new Map();
  /** The task that has the last place among the commuting tasks of a datum. */
  private readonly lastPlace: Map<DatumId, TaskId> = new Map();
  private readonly watched: Watched;
  /** Tasks that wait for every body that is under way (exclusive.ts). */
  behindBodies: () => Iterable<TaskId> = () => [];
  families: Families | undefined;

  /** `edges`: the successors of the tasks, if another table orders the same tasks by other data. */
  constructor(
    tasks: TaskTable,
    watched: Watched = { observer: undefined },
    edges: NodePool = new NodePool(4096),
  ) {
    this.tasks = tasks;
    this.watched = watched;
    this.edges = edges;
  }

  /** Makes room for datum `d` and forgets the users of its row. */
  addDatum(d: DatumId): void {
    if (d >= this.readers.length) {
      const length = this.readers.length * 2;
      this.lastWriter = resized(this.lastWriter, length, 0);
      this.readers = resized(this.readers, length, -1);
      this.readerCount = resized(this.readerCount, length, 0);
      this.weedAt = resized(this.weedAt, length, 64);
    }
    // An id just before the window never lies in the window.
    this.lastWriter[d] = ((this.tasks.head - 1) | 0) as TaskId;
    this.readers[d] = this.readerNodes.freeList(this.readers[d]);
    this.readerCount[d] = 0;
    this.weedAt[d] = 64;
    this.groups.delete(d);
    this.lastPlace.delete(d);
  }

  /** Live tasks have moved to other rows. */
  moveRows(rowNow: (row: number) => number): void {
    const { tasks } = this;
    const { value, next } = this.edges;
    for (let id = tasks.head; id !== tasks.next; id = ((id + 1) | 0) as TaskId) {
      for (let n = tasks.successors[id & tasks.mask]; n >= 0; n = next[n])
        value[n] = rowNow(value[n] >> 1) * 2 + (value[n] & 1);
    }
  }

  /** Orders task `id` (in `row`) after all earlier tasks that conflict with its access to datum `d`. */
  order(id: TaskId, row: number, d: DatumId, mode: number, commutes = false): void {
    const { tasks, readerNodes } = this;
    if (this.groups.size > 0) this.followGroup(id, row, d, commutes);
    const writer = this.lastWriter[d];
    if (writer !== id && tasks.contains(writer)) this.follow(writer, row);
    if (mode === AccessMode.read) return;
    for (let n = this.readers[d]; n >= 0; n = readerNodes.next[n]) {
      const reader = readerNodes.value[n];
      if (reader !== id && tasks.contains(reader)) this.follow(reader, row);
    }
  }

  /**
   * Registers the access of task `id` to datum `d`, so that later tasks are ordered after it. A task that is issued
   * at once needs only `forget`, because its events already order later tasks.
   */
  register(id: TaskId, d: DatumId, mode: number): void {
    if (mode === AccessMode.read) {
      if (this.groups.size > 0) this.closeGroup(d);
      if (this.readerCount[d] >= this.weedAt[d]) this.weed(d);
      this.readers[d] = this.readerNodes.push(this.readers[d], id, 0);
      this.readerCount[d]++;
      return;
    }
    this.forget(d);
    this.lastWriter[d] = id;
  }

  /**
   * A task that writes `d` was issued. All earlier users of `d` were issued before it, so the graph has nothing left
   * to order.
   */
  forget(d: DatumId): void {
    if (this.groups.size > 0) this.groups.delete(d);
    this.forgetReaders(d);
    this.lastWriter[d] = ((this.tasks.head - 1) | 0) as TaskId;
  }

  private forgetReaders(d: DatumId): void {
    if (this.readers[d] < 0) return;
    this.readers[d] = this.readerNodes.freeList(this.readers[d]);
    this.readerCount[d] = 0;
  }

  // --- Tasks that commute -------------------------------------------------------------------------------------

  /** Some datum has a group. The numbers of its members say nothing about their order in time. */
  get hasGroups(): boolean {
    return this.groups.size > 0;
  }

  /** Registers task `id`, which commutes on datum `d`, issued or not. */
  commute(id: TaskId, d: DatumId): void {
    const group = this.groups.get(d);
    if (group?.isOpen !== true) {
      const before = group === undefined ? [] : this.unissued(group.members);
      this.groups.set(d, { before, members: [id], weedAt: 64, isOpen: true });
      return;
    }
    if (group.members.length >= group.weedAt) {
      group.members = this.unissued(group.members);
      group.weedAt = Math.max(64, 2 * group.members.length);
    }
    group.members.push(id);
  }

  /** The task in `row`, which is ready but for this, takes the last place among the commuting tasks of datum `d`. */
  takePlace(id: TaskId, row: number, d: DatumId): void {
    const last = this.lastPlace.get(d);
    if (last !== undefined && last !== id && this.tasks.contains(last)) this.follow(last, row);
    this.lastPlace.set(d, id);
  }

  private followGroup(id: TaskId, row: number, d: DatumId, commutes: boolean): void {
    const group = this.groups.get(d);
    if (group === undefined) return;
    for (const other of commutes && group.isOpen ? group.before : group.members)
      if (other !== id && this.tasks.contains(other)) this.follow(other, row);
  }

  /** Datum `d` is read, or tasks that commute by another rule come next: these follow the group. */
  closeGroup(d: DatumId): void {
    const group = this.groups.get(d);
    if (group?.isOpen !== true) return;
    group.isOpen = false;
    // The members have followed these.
    this.forgetReaders(d);
    this.lastWriter[d] = ((this.tasks.head - 1) | 0) as TaskId;
  }

  /** Those of a list that are neither issued nor over. Later tasks know the others by events. */
  private unissued(list: readonly TaskId[]): TaskId[] {
    const { tasks } = this;
    return list.filter((id) => tasks.contains(id) && this.isUnissued(id & tasks.mask));
  }

  private membersOf(d: DatumId): TaskId[] {
    const group = this.groups.get(d);
    return group === undefined
      ? []
      : [...group.before, ...group.members].filter((id) => this.tasks.contains(id));
  }

  /**
   * Orders task `row` after `predecessor` without data. Returns true if the predecessor was already issued or
   * dropped; then the caller must add its events.
   */
  control(predecessor: TaskId, id: TaskId, row: number): boolean {
    const { tasks } = this;
    if (!tasks.contains(predecessor)) return false;
    const p = predecessor & tasks.mask;
    if (tasks.stage[p] === TaskStage.done) return false;
    this.watched.observer?.dependency(id, predecessor);
    if (tasks.execution[p] === Execution.command || tasks.stage[p] === TaskStage.outlived)
      return true;
    tasks.successors[p] = this.edges.push(tasks.successors[p], row * 2 + 1, 0);
    tasks.pending[row]++;
    return false;
  }

  /** The live tasks that write datum `d` last: one, or those of a group. */
  writers(d: DatumId): TaskId[] {
    const last = this.tasks.contains(this.lastWriter[d]) ? [this.lastWriter[d]] : [];
    return this.groups.size > 0 ? [...last, ...this.membersOf(d)] : last;
  }

  /** Live tasks that use datum `d`. All of them must end before its memory can be freed. */
  users(d: DatumId): TaskId[] {
    const list = this.writers(d);
    for (let n = this.readers[d]; n >= 0; n = this.readerNodes.next[n]) {
      if (this.tasks.contains(this.readerNodes.value[n])) list.push(this.readerNodes.value[n]);
    }
    return list;
  }

  /**
   * Whether a task inserted now with that access to datum `d` would have to wait, directly or by other tasks, for the end
   * of live task `task`; of its body, if `isOfBody`. Looks at each live task once at most.
   */
  wouldFollow(task: TaskId, d: DatumId, mode: number, isOfBody = false): boolean {
    const { tasks, edges, families } = this;
    const before = new Set<number>();
    for (const id of mode === AccessMode.read ? this.writers(d) : this.users(d)) {
      if (id === task) return true;
      before.add(id & tasks.mask);
    }
    if (before.size === 0) return false;
    const seen = new Set([task & tasks.mask]);
    // Members of its groups that are not issued come behind it.
    for (const { members } of this.groups.values()) {
      if (!members.includes(task)) continue;
      for (const other of this.unissued(members)) seen.add(other & tasks.mask);
    }
    for (const id of this.behindBodies()) if (tasks.contains(id)) seen.add(id & tasks.mask);
    // What it has spawned comes after its body, but before its end.
    if (isOfBody) for (const id of families?.heldBy(task) ?? []) seen.add(id & tasks.mask);
    for (const row of seen) {
      if (before.has(row)) return true;
      const parent = families?.parentOf(tasks.idOf(row));
      if (parent !== undefined && tasks.contains(parent)) seen.add(parent & tasks.mask);
      for (let n = tasks.successors[row]; n >= 0; n = edges.next[n]) seen.add(edges.value[n] >> 1);
    }
    return false;
  }

  private follow(predecessor: TaskId, row: number): void {
    const { tasks } = this;
    const p = predecessor & tasks.mask;
    if (!this.isUnissued(p)) return;
    tasks.successors[p] = this.edges.push(tasks.successors[p], row * 2, 0);
    tasks.pending[row]++;
  }

  /** The directory knows the events of issued tasks, and the events that an outlived task had to follow. */
  private isUnissued(row: number): boolean {
    const { tasks } = this;
    const stage = tasks.stage[row];
    if (stage === TaskStage.done || stage === TaskStage.outlived) return false;
    return tasks.execution[row] !== Execution.command;
  }

  private weed(d: DatumId): void {
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
