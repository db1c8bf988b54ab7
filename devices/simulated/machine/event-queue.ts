// The next events in virtual time: a binary heap of (time, id), at most one entry per id.
// Invariant: entries leave by time, and in the order of entry at equal times, so that a run depends
// only on its seed.

export class EventQueue {
  private heap: Int32Array = new Int32Array(64);
  private timeOf: Float64Array = new Float64Array(64);
  private orderOf: Float64Array = new Float64Array(64);
  private count = 0;
  private ids = 0;
  private nextOrder = 0;

  get length(): number {
    return this.count;
  }

  /** Time of the next entry; only when `length` is not 0. */
  get time(): number {
    return this.timeOf[this.heap[0]];
  }

  /** Makes room for `n` more ids; returns the first. */
  reserve(n: number): number {
    const first = this.ids;
    this.ids += n;
    if (this.ids > this.heap.length) {
      const length = Math.max(this.ids, this.heap.length * 2);
      const [heap, timeOf, orderOf] = [this.heap, this.timeOf, this.orderOf];
      this.heap = new Int32Array(length);
      this.timeOf = new Float64Array(length);
      this.orderOf = new Float64Array(length);
      this.heap.set(heap);
      this.timeOf.set(timeOf);
      this.orderOf.set(orderOf);
    }
    return first;
  }

  push(id: number, time: number): void {
    this.timeOf[id] = time;
    this.orderOf[id] = this.nextOrder++;
    this.rise(id, this.count++);
  }

  /** Gives the entry of `id` another time. */
  move(id: number, time: number): void {
    const { heap, timeOf } = this;
    if (timeOf[id] === time) return;
    const isLater = time > timeOf[id];
    const at = heap.subarray(0, this.count).indexOf(id);
    timeOf[id] = time;
    if (isLater) this.sink(id, at);
    else this.rise(id, at);
  }

  /** Takes the id of the next entry; only when `length` is not 0. */
  pop(): number {
    const top = this.heap[0];
    this.count--;
    this.sink(this.heap[this.count], 0);
    return top;
  }

  /** Puts `id` at place `at`, or nearer to the top. */
  private rise(id: number, at: number): void {
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.before(this.heap[parent], id)) break;
      this.heap[at] = this.heap[parent];
      at = parent;
    }
    this.heap[at] = id;
  }

  /** Puts `id` at place `at`, or farther from the top. */
  private sink(id: number, at: number): void {
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.count) break;
      if (child + 1 < this.count && this.before(this.heap[child + 1], this.heap[child])) child++;
      if (this.before(id, this.heap[child])) break;
      this.heap[at] = this.heap[child];
      at = child;
    }
    this.heap[at] = id;
  }

  private before(a: number, b: number): boolean {
    const d = this.timeOf[a] - this.timeOf[b];
    return d < 0 || (d === 0 && this.orderOf[a] < this.orderOf[b]);
  }
}
