// Happens-before between records of in-order queues and the engine thread, by vector clocks (Fidge 1988, Mattern
// 1989). The only edges are those that a real machine honours: the order of a queue, a wait for an event, and
// submission after the engine saw a completion. That two things happened one after the other is no edge.
//
// Invariant: `covers(q, other, seq)` holds exactly when a chain of such edges leads from record `seq` of `other` to
// the record that `q` runs now.
import { NO_QUEUE } from '../backend.js';

export class VectorClocks {
  /** Clocks: one per queue, and one for the engine thread. */
  readonly size: number;
  /** Index of the engine thread. */
  readonly host: number;
  private readonly now: Int32Array;
  private readonly snapshots: Int32Array[][];
  private readonly knowledge: (Int32Array | undefined)[][];
  private readonly waitQueues: number[][];
  private readonly waitSeqs: number[][];
  private hostView: Int32Array;
  private hostMoved = true;

  constructor(queues: number) {
    this.host = queues;
    this.size = queues + 1;
    this.now = new Int32Array(this.size * this.size);
    this.snapshots = Array.from({ length: queues }, () => []);
    this.knowledge = Array.from({ length: queues }, () => []);
    this.waitQueues = Array.from({ length: queues }, () => []);
    this.waitSeqs = Array.from({ length: queues }, () => []);
    this.hostView = new Int32Array(this.size);
  }

  issued(q: number, seq: number, waitQueue: number, waitSeq: number): void {
    if (this.hostMoved) {
      this.hostView = this.now.slice(this.host * this.size);
      this.hostMoved = false;
    }
    this.knowledge[q][seq] = this.hostView;
    this.waitQueues[q][seq] = waitQueue;
    this.waitSeqs[q][seq] = waitSeq;
  }

  /** The engine saw `seq` of queue `q` complete. */
  seen(q: number, seq: number): void {
    const snapshot = this.snapshots[q][seq];
    if (snapshot !== undefined) this.join(this.host, snapshot);
    this.hostMoved = true;
  }

  /** The engine thread does something itself; returns its number. */
  hostAct(): number {
    this.hostMoved = true;
    return ++this.now[this.host * this.size + this.host];
  }

  started(q: number, seq: number): void {
    const known = this.knowledge[q][seq];
    if (known !== undefined) {
      this.join(q, known);
      this.knowledge[q][seq] = undefined;
    }
    const on = this.waitQueues[q][seq];
    if (on !== NO_QUEUE) {
      const snapshot = this.snapshots[on][this.waitSeqs[q][seq]];
      if (snapshot !== undefined) this.join(q, snapshot);
    }
    this.now[q * this.size + q] = seq;
  }

  finished(q: number, first: number, last: number): void {
    this.now[q * this.size + q] = last;
    const snapshot = this.now.slice(q * this.size, (q + 1) * this.size);
    for (let seq = first; seq <= last; seq++) this.snapshots[q][seq] = snapshot;
  }

  /** Whether what `q` runs now comes after record `seq` of `other`. */
  covers(q: number, other: number, seq: number): boolean {
    return this.now[q * this.size + other] >= seq;
  }

  private join(q: number, from: Int32Array): void {
    const base = q * this.size;
    const { now } = this;
    for (let j = 0; j < from.length; j++) if (from[j] > now[base + j]) now[base + j] = from[j];
  }
}
