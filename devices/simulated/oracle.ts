// What every task must see, from program order alone: the version of a datum a task reads is the one written by the
// last task inserted before it that writes the datum. Versions are stamps, numbers never used twice.
// Invariant: the oracle knows nothing of queues, copies or time; it is told the insertions, in order.
import { AccessMode } from '../../trace/format.js';

/** Contents that nobody may take for a value. */
export const GARBAGE = 0;

/** One datum of one task: which stamp it must find, which it leaves (0: none). */
export interface Expectation {
  readonly datum: number;
  readonly mode: number;
  readonly expected: number;
  readonly written: number;
}

/** What became of a stamp's writer. */
export const Written = { pending: 0, good: 1, bad: 2 } as const;

export class SerialOracle {
  /** A task of the program is known by its rank and its id there. */
  private readonly ranks: number;
  /** Where there are several ranks, writes count from `commit` on: until then the task is being inserted. */
  private readonly uncommitted: [datum: number, stamp: number][] = [];
  private readonly flows: Expectation[][] = [];
  private readonly predecessors: (number[] | undefined)[] = [];
  private readonly current: number[] = [];
  /** Stamps that were to be in a datum, in the order of the program on each rank: rank + datum * ranks. */
  private readonly history: number[][] = [];
  private readonly writer: number[] = [0];
  private readonly datum: number[] = [-1];
  private readonly state: number[] = [Written.bad];
  /** Times each task was executed, by key. */
  readonly executed: number[] = [];

  constructor(ranks = 1) {
    this.ranks = ranks;
  }

  /** Names a task of the program. */
  keyOf(rank: number, id: number): number {
    return id * this.ranks + rank;
  }

  /** A datum got its first value from outside, on a rank; returns the stamp of it. */
  initial(rank: number, d: number): number {
    const stamp = this.stamp(0, d);
    this.current[d] = stamp;
    this.history[d * this.ranks + rank] = [stamp];
    this.state[stamp] = Written.good;
    return stamp;
  }

  /** A row of a rank is used for a new datum that exists nowhere. */
  fresh(rank: number, d: number): void {
    if (rank === 0) this.current[d] = GARBAGE;
    this.history[d * this.ranks + rank] = [];
  }

  /** Task `key` of a rank, being inserted, uses datum `d`. */
  access(rank: number, key: number, d: number, mode: number): void {
    const expected = mode === AccessMode.write ? GARBAGE : (this.current[d] ?? GARBAGE);
    let written = GARBAGE;
    if (mode !== AccessMode.read) {
      written = this.stamp(key, d);
      if (this.ranks > 1) this.uncommitted.push([d, written]);
      else this.current[d] = written;
      (this.history[d * this.ranks + rank] ??= []).push(written);
    }
    (this.flows[key] ??= []).push({ datum: d, mode, expected, written });
  }

  /** The latest version of `d` is to come to a rank. */
  arrives(rank: number, d: number): void {
    (this.history[d * this.ranks + rank] ??= []).push(this.current[d] ?? GARBAGE);
  }

  /** The task has been inserted on all ranks. */
  commit(): void {
    for (const [d, stamp] of this.uncommitted) this.current[d] = stamp;
    this.uncommitted.length = 0;
  }

  /** A task, being inserted, must follow another without data. */
  follows(key: number, predecessor: number): void {
    (this.predecessors[key] ??= []).push(predecessor);
  }

  flowsOf(key: number): readonly Expectation[] {
    return this.flows[key] ?? [];
  }

  predecessorsOf(key: number): readonly number[] {
    return this.predecessors[key] ?? [];
  }

  /** The writer of a stamp ended: with the value it should have written, or not. */
  settle(stamp: number, good: boolean): void {
    this.state[stamp] = good ? Written.good : Written.bad;
  }

  isGood(stamp: number): boolean {
    return this.state[stamp] === Written.good;
  }

  /** The stamp a rank's copy must hold now that nothing runs any more: the last one that was written; 0: none was. */
  final(rank: number, d: number): number {
    const list = this.history[d * this.ranks + rank] ?? [];
    for (let i = list.length - 1; i >= 0; i--)
      if (this.state[list[i]] !== Written.pending) return list[i];
    return GARBAGE;
  }

  /** Whether a stamp is a version of datum `d`. */
  isOf(d: number, stamp: number): boolean {
    return this.datum[stamp] === d;
  }

  /** A stamp in words. */
  describe(stamp: number): string {
    if (stamp === GARBAGE) return 'garbage (poison, or a failed or partial write)';
    const key = this.writer[stamp];
    const id = Math.floor(key / this.ranks);
    return key === 0 ? 'the initial value' : `what task #${id} of rank ${key % this.ranks} wrote`;
  }

  private stamp(task: number, d: number): number {
    this.state.push(Written.pending);
    this.datum.push(d);
    return this.writer.push(task) - 1;
  }
}
