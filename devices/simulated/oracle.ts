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
  private readonly flows: Expectation[][] = [];
  private readonly predecessors: (number[] | undefined)[] = [];
  private readonly current: number[] = [];
  private readonly history: number[][] = [];
  private readonly writer: number[] = [0];
  private readonly state: number[] = [Written.bad];
  /** Times each task was executed, by id. */
  readonly executed: number[] = [];

  /** A datum got its first value from outside; returns the stamp of it. */
  initial(d: number): number {
    const stamp = this.stamp(0);
    this.current[d] = stamp;
    this.history[d] = [stamp];
    this.state[stamp] = Written.good;
    return stamp;
  }

  /** A row is used for a new datum that exists nowhere. */
  fresh(d: number): void {
    this.current[d] = GARBAGE;
    this.history[d] = [];
  }

  /** Task `id`, being inserted, uses datum `d`. */
  access(id: number, d: number, mode: number): void {
    const expected = mode === AccessMode.write ? GARBAGE : (this.current[d] ?? GARBAGE);
    let written = GARBAGE;
    if (mode !== AccessMode.read) {
      written = this.stamp(id);
      this.current[d] = written;
      (this.history[d] ??= []).push(written);
    }
    (this.flows[id] ??= []).push({ datum: d, mode, expected, written });
  }

  /** Task `id`, being inserted, must follow another without data. */
  follows(id: number, predecessor: number): void {
    (this.predecessors[id] ??= []).push(predecessor);
  }

  flowsOf(id: number): readonly Expectation[] {
    return this.flows[id] ?? [];
  }

  predecessorsOf(id: number): readonly number[] {
    return this.predecessors[id] ?? [];
  }

  /** The writer of a stamp ended: with the value it should have written, or not. */
  settle(stamp: number, good: boolean): void {
    this.state[stamp] = good ? Written.good : Written.bad;
  }

  isGood(stamp: number): boolean {
    return this.state[stamp] === Written.good;
  }

  /** The stamp a datum must hold now that nothing runs any more: that of its last writer that ran; 0: nobody did. */
  final(d: number): number {
    const list = this.history[d] ?? [];
    for (let i = list.length - 1; i >= 0; i--)
      if (this.state[list[i]] !== Written.pending) return list[i];
    return GARBAGE;
  }

  /** A stamp in words. */
  describe(stamp: number): string {
    if (stamp === GARBAGE) return 'garbage (poison, or a failed or partial write)';
    const task = this.writer[stamp];
    return task === 0 ? 'the initial value' : `what task #${task} wrote`;
  }

  private stamp(task: number): number {
    this.state.push(Written.pending);
    return this.writer.push(task) - 1;
  }
}
