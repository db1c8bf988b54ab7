// Happens-before between records of in-order queues and engine threads, by vector clocks (Fidge 1988, Mattern 1989).
// The only edges are those of a real machine: the order of a queue, a wait for an event, submission after
// the engine saw a completion, and a message from one engine to another. Order in time alone is no edge.
//
// Every queue and every engine thread is an actor. The actors of a rank are its queues, then its engine.
// Invariant: `covers(a, other, seq)` holds exactly when a chain of such edges leads from act `seq` of `other` to the
// present act of `a`.
// `a` does now.
import { NO_QUEUE, type QueueId } from '../../handles.js';

export class VectorClocks {
  /** Clocks: one per actor. */
  readonly size: number;
  private readonly perRank: number;
  private readonly now: Int32Array;
  private readonly snapshots: Int32Array[][];
  private readonly knowledge: (Int32Array | undefined)[][];
  private readonly waitActors: number[][];
  private readonly waitSeqs: number[][];
  /** The knowledge of each rank's engine, as of its last change; undefined: it has changed since. */
  private readonly views: (Int32Array | undefined)[];

  constructor(queues: number, ranks = 1) {
    this.perRank = queues + 1;
    this.size = this.perRank * ranks;
    const { size } = this;
    this.now = new Int32Array(size * size);
    this.snapshots = Array.from({ length: size }, () => []);
    this.knowledge = Array.from({ length: size }, () => []);
    this.waitActors = Array.from({ length: size }, () => []);
    this.waitSeqs = Array.from({ length: size }, () => []);
    this.views = new Array<Int32Array | undefined>(ranks);
  }

  /** The actor that is queue `q` of a rank. */
  queue(rank: number, q: QueueId): number {
    return rank * this.perRank + q;
  }

  /** The actor that is a rank's engine. */
  engine(rank: number): number {
    return (rank + 1) * this.perRank - 1;
  }

  rankOf(actor: number): number {
    return Math.floor(actor / this.perRank);
  }

  /** The knowledge of a rank's engine. */
  view(rank: number): Int32Array {
    const a = this.engine(rank);
    const view = this.views[rank] ?? this.now.slice(a * this.size, (a + 1) * this.size);
    this.views[rank] = view;
    return view;
  }

  issued(a: number, seq: number, waitActor: number, waitSeq: number): void {
    this.knowledge[a][seq] = this.view(this.rankOf(a));
    this.waitActors[a][seq] = waitActor;
    this.waitSeqs[a][seq] = waitSeq;
  }

  /** The engine of its rank saw `seq` of an actor complete. */
  seen(a: number, seq: number): void {
    const snapshot = this.snapshots[a][seq];
    if (snapshot !== undefined) this.learn(this.rankOf(a), snapshot);
  }

  /** The knowledge of an actor in the middle of its present act. */
  knowledgeOf(a: number): Int32Array {
    return this.now.slice(a * this.size, (a + 1) * this.size);
  }

  /** An actor gets a message with that knowledge. */
  hears(a: number, knowledge: Int32Array): void {
    this.join(a, knowledge);
  }

  /** A rank's engine learns the knowledge of another. */
  learn(rank: number, knowledge: Int32Array): void {
    this.join(this.engine(rank), knowledge);
    this.views[rank] = undefined;
  }

  /** A rank's engine acts itself; returns the number of the act. */
  engineActs(rank: number): number {
    this.views[rank] = undefined;
    const a = this.engine(rank);
    return ++this.now[a * this.size + a];
  }

  started(a: number, seq: number): void {
    const known = this.knowledge[a][seq];
    if (known !== undefined) {
      this.join(a, known);
      this.knowledge[a][seq] = undefined;
    }
    const on = this.waitActors[a][seq];
    if (on !== NO_QUEUE) {
      const snapshot = this.snapshots[on][this.waitSeqs[a][seq]];
      if (snapshot !== undefined) this.join(a, snapshot);
    }
    this.now[a * this.size + a] = seq;
  }

  finished(a: number, first: number, last: number): void {
    this.now[a * this.size + a] = last;
    const snapshot = this.now.slice(a * this.size, (a + 1) * this.size);
    for (let seq = first; seq <= last; seq++) this.snapshots[a][seq] = snapshot;
  }

  /** Whether the present act of `a` comes after act `seq` of `other`. */
  covers(a: number, other: number, seq: number): boolean {
    return this.now[a * this.size + other] >= seq;
  }

  private join(a: number, from: Int32Array): void {
    const base = a * this.size;
    const { now } = this;
    for (let j = 0; j < from.length; j++) if (from[j] > now[base + j]) now[base + j] = from[j];
  }
}
