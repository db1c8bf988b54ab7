// Ready tasks of one device, highest priority first, program order among equals.
// Almost all programs use priority 0 for almost all tasks, so a bitmap holds these; a binary heap holds the others.
// Program order is better than the order of becoming ready: a chain continues on its own data instead of taking turns
// with all other chains. This keeps data in a memory that is too small for all of them.
// Invariant: an id is in the queue at most once; the caller skips ids of dropped tasks.
import type { TaskId } from '../../devices/handles.js';
import { Tally } from '../../devices/tally.js';
import { ProgramOrder } from './program-order.js';

export class ReadyQueue {
  private plain: ProgramOrder;
  private readonly heapIds: TaskId[] = [];
  private readonly heapPriorities: number[] = [];
  private readonly tally: Tally;

  /** For tasks of a window with that many rows. `tally` also counts the entries. */
  constructor(window: number, tally: Tally = new Tally()) {
    this.plain = new ProgramOrder(window);
    this.tally = tally;
  }

  /** The window has a new number of rows. */
  resize(window: number): void {
    this.plain = this.plain.resized(window);
  }

  get length(): number {
    return this.plain.length + this.heapIds.length;
  }

  push(id: TaskId, priority: number): void {
    const { plain, tally } = this;
    if (priority !== 0) {
      this.up(id, priority);
      tally.count++;
      return;
    }
    const { length } = plain;
    plain.add(id);
    // An id that came may have pushed others out.
    tally.count += plain.length - length;
  }

  /** Whether `id` is in the queue. Linear; for checks. */
  has(id: TaskId): boolean {
    return this.plain.has(id) || this.heapIds.includes(id);
  }

  /** Takes the next id. Call only when `length` is not 0. */
  pop(): TaskId {
    this.tally.count--;
    if (this.heapIds.length === 0) return this.plain.takeFirst();
    if (this.plain.length > 0 && this.heapPriorities[0] < 0) return this.plain.takeFirst();
    return this.down();
  }

  /** True when the entry at `a` goes before the one at `b`. */
  private before(a: number, b: number): boolean {
    const pa = this.heapPriorities[a];
    const pb = this.heapPriorities[b];
    return pa !== pb ? pa > pb : ((this.heapIds[a] - this.heapIds[b]) | 0) < 0;
  }

  private swap(a: number, b: number): void {
    const id = this.heapIds[a];
    this.heapIds[a] = this.heapIds[b];
    this.heapIds[b] = id;
    const p = this.heapPriorities[a];
    this.heapPriorities[a] = this.heapPriorities[b];
    this.heapPriorities[b] = p;
  }

  private up(id: TaskId, priority: number): void {
    let at = this.heapIds.length;
    this.heapIds.push(id);
    this.heapPriorities.push(priority);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.before(at, parent)) break;
      this.swap(at, parent);
      at = parent;
    }
  }

  private down(): TaskId {
    const top = this.heapIds[0];
    const lastId = this.heapIds.pop() as TaskId;
    const lastPriority = this.heapPriorities.pop() as number;
    const n = this.heapIds.length;
    if (n > 0) {
      this.heapIds[0] = lastId;
      this.heapPriorities[0] = lastPriority;
      let at = 0;
      for (;;) {
        const left = 2 * at + 1;
        if (left >= n) break;
        const right = left + 1;
        const child = right < n && this.before(right, left) ? right : left;
        if (!this.before(child, at)) break;
        this.swap(child, at);
        at = child;
      }
    }
    return top;
  }
}
