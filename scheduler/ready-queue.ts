// Tasks of one device that may start, highest priority first, program order among equals.
// Almost all programs use priority 0 for almost all tasks, so those go through a bitmap; the others through a binary
// heap. Program order, not the order of becoming ready: a chain then goes on where its data are rather than taking
// turns with all other chains, which is what keeps data in a memory too small for all of them.
// Invariant: an id is in the queue at most once; ids of dropped tasks are skipped by the caller.
import { ProgramOrder } from './program-order.js';

export class ReadyQueue {
  private plain: ProgramOrder;
  private readonly heapIds: number[] = [];
  private readonly heapPriorities: number[] = [];

  /** For tasks of a window of that many rows. */
  constructor(window: number) {
    this.plain = new ProgramOrder(window);
  }

  /** The window has another number of rows now. */
  resize(window: number): void {
    this.plain = this.plain.resized(window);
  }

  get length(): number {
    return this.plain.length + this.heapIds.length;
  }

  push(id: number, priority: number): void {
    if (priority === 0) this.plain.add(id);
    else this.up(id, priority);
  }

  /** Takes the next id; only when `length` is not 0. */
  pop(): number {
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

  private up(id: number, priority: number): void {
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

  private down(): number {
    const top = this.heapIds[0];
    const lastId = this.heapIds.pop() as number;
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
