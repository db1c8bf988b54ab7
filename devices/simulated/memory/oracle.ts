// The versions that every task must see, from program order alone: a task reads the version written by the last task
// inserted before it that writes the datum. Versions are stamps, numbers never used twice. A version is good
// when its writer ran, succeeded and saw good versions only; a datum whose latest version is not good has no value.
//
// Rows of the directory are used again, so a datum of the program has a number of its own here (`bind`).
// Invariant: the oracle does not know queues, copies or time; it gets the insertions, in order, and the end of each
// task.
import { AccessMode } from '../../../trace/format.js';

/** Contents that no reader may take for a value. */
export const GARBAGE = 0;

/** One datum of one task, by the program's number: the stamp that it must find and the one that it leaves (0: none). */
interface Expectation {
  readonly datum: number;
  readonly mode: number;
  readonly expected: number;
  readonly written: number;
}

/** Data that bodies create have numbers from here on. */
const UNNAMED = 1 << 16;

/** The fate of a stamp's writer. */
export const Written = { pending: 0, good: 1, bad: 2 } as const;

export class SerialOracle {
  /** The rank of a task of the program and its id there identify it. */
  private readonly ranks: number;
  /** On several ranks, writes count from `commit` on: until then the task is being inserted. */
  private readonly uncommitted: [datum: number, stamp: number, rank: number][] = [];
  private readonly flows: Expectation[][] = [];
  private readonly predecessors: (number[] | undefined)[] = [];
  private readonly current: number[] = [];
  /** Stamps that were to be in a datum, in the order of the program on each rank: rank + datum * ranks. */
  private readonly history: number[][] = [];
  /** Latest versions on a rank that has settled a failed run before the others: rank + datum * ranks. */
  private readonly ahead: Map<number, number> = new Map();
  private readonly writer: number[] = [0];
  private readonly datum: number[] = [-1];
  private readonly state: number[] = [Written.bad];
  /** For each stamp of an unfinished write, the stamp of the whole write. */
  private readonly partOf: (number | undefined)[] = [];
  /** Times each task was executed, by key. */
  readonly executed: number[] = [];
  /** Tasks that ran, succeeded and saw good versions, by key. */
  readonly ranWell: boolean[] = [];
  /** Tasks that ran and failed by themselves, by key. */
  readonly failedItself: boolean[] = [];
  /** Sizes by datum. */
  readonly bytes: number[] = [];
  /** The stamp of the next write to be inserted, if its bytes carry it already. */
  reserved: number | undefined;
  /** Number of the next datum to be created; undefined: one that no case names. */
  naming: number | undefined;
  /** Datum in a row of a rank: rank + row * ranks. */
  private readonly rows: number[] = [];
  private unnamed = UNNAMED;

  constructor(ranks = 1) {
    this.ranks = ranks;
  }

  /** Names a task of the program. */
  keyOf(rank: number, id: number): number {
    return id * this.ranks + rank;
  }

  /** A datum got its first value from outside, on a rank; returns its stamp. */
  initial(rank: number, row: number): number {
    const d = this.datumIn(rank, row);
    const stamp = this.stamp(0, d);
    this.current[d] = stamp;
    this.history[d * this.ranks + rank] = [stamp];
    this.state[stamp] = Written.good;
    return stamp;
  }

  /** A row of a rank is used for a new datum without a copy. */
  bind(rank: number, row: number, bytes: number): void {
    const d = this.naming ?? this.unnamed++;
    this.rows[rank + row * this.ranks] = d;
    this.bytes[d] = bytes;
    if (rank === 0 || this.naming === undefined) this.current[d] = GARBAGE;
    this.history[d * this.ranks + rank] = [];
  }

  /** The datum in a row of a rank. */
  datumIn(rank: number, row: number): number {
    return this.rows[rank + row * this.ranks];
  }

  /**
   * The stamp of the latest version in program order; 0: there is none. On a rank it may be that of a task which is still
   * being inserted on others.
   */
  latest(d: number, rank = -1): number {
    const own = this.uncommitted.findLast((each) => each[0] === d && each[2] === rank);
    return own?.[1] ?? this.ahead.get(rank + d * this.ranks) ?? this.current[d] ?? GARBAGE;
  }

  /** A stamp for a write that is not inserted yet. */
  reserve(d: number): number {
    return this.stamp(0, d);
  }

  /** Task `key` of a rank, being inserted, uses the datum in `row`; `isReserved`: it writes the reserved stamp. */
  access(rank: number, key: number, row: number, mode: number, isReserved = false): void {
    const d = this.datumIn(rank, row);
    const expected = mode === AccessMode.write ? GARBAGE : this.latest(d, rank);
    let written = GARBAGE;
    if (mode !== AccessMode.read) {
      written = (isReserved ? this.reserved : undefined) ?? this.stamp(key, d);
      this.writer[written] = key;
      if (this.ranks > 1) this.uncommitted.push([d, written, rank]);
      else this.current[d] = written;
      (this.history[d * this.ranks + rank] ??= []).push(written);
    }
    (this.flows[key] ??= []).push({ datum: d, mode, expected, written });
  }

  /** A rank will receive the latest version of the datum in `row`. */
  arrives(rank: number, row: number): void {
    const d = this.datumIn(rank, row);
    (this.history[d * this.ranks + rank] ??= []).push(this.current[d] ?? GARBAGE);
  }

  /** Writes of the task that is being inserted on all ranks. */
  get uncommittedWrites(): number {
    return this.uncommitted.length;
  }

  /** The stamp that the task being inserted on all ranks writes to `d`; 0: its rank refused it. */
  uncommittedOf(d: number): number {
    return this.uncommitted.find((each) => each[0] === d)?.[1] ?? GARBAGE;
  }

  /** Of the versions inserted so far, the latest one of `d` counts as `stamp`; 0: as an unwritten one. */
  settleAs(d: number, stamp: number): void {
    this.forgetAhead(d);
    this.current[d] = stamp === GARBAGE ? this.unwritten(d) : stamp;
  }

  /** The same for one rank, on which a failed run is settled and on others not. */
  settleAhead(rank: number, d: number, stamp: number): void {
    this.ahead.set(rank + d * this.ranks, stamp === GARBAGE ? this.unwritten(d) : stamp);
  }

  private forgetAhead(d: number): void {
    for (let rank = 0; rank < this.ranks; rank++) this.ahead.delete(rank + d * this.ranks);
  }

  private unwritten(d: number): number {
    const stamp = this.stamp(0, d);
    this.state[stamp] = Written.bad;
    return stamp;
  }

  /** Rank of the task that writes a stamp. */
  rankOf(stamp: number): number {
    return this.writer[stamp] % this.ranks;
  }

  /** The task whose writes come after the first `from` uncommitted ones has been inserted on all ranks. */
  commit(from = 0): void {
    for (const [d, stamp] of this.uncommitted.splice(from)) {
      this.current[d] = stamp;
      this.forgetAhead(d);
    }
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

  /** Whether a stamp's writer has ended with the value it should have written. */
  isGood(stamp: number): boolean {
    return this.state[stamp] === Written.good;
  }

  /** The content of a datum while the task that writes stamp `written` runs. */
  unfinished(written: number): number {
    const stamp = this.stamp(this.writer[written], this.datum[written]);
    this.state[stamp] = Written.bad;
    this.partOf[stamp] = written;
    return stamp;
  }

  /** The stamp that a rank's copy must hold after all tasks have ended: the last written one; 0: none was. */
  final(rank: number, row: number): number {
    const d = this.datumIn(rank, row);
    const list = this.history[d * this.ranks + rank] ?? [];
    for (let i = list.length - 1; i >= 0; i--)
      if (this.state[list[i]] !== Written.pending) return list[i];
    return GARBAGE;
  }

  /** The last good version of datum `d` before version `stamp` that a rank knows; 0: none. */
  lastGood(rank: number, d: number, stamp: number): number {
    const list = this.history[d * this.ranks + rank] ?? [];
    for (let i = list.indexOf(stamp) - 1; i >= 0; i--) if (this.isGood(list[i])) return list[i];
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
    if (key === 0) return 'the initial value';
    const text = `what ${this.describeTask(key)} wrote`;
    return this.partOf[stamp] === undefined ? text : `half of ${text}`;
  }

  /** A task in words. */
  describeTask(key: number): string {
    const id = `task #${Math.floor(key / this.ranks)}`;
    return this.ranks > 1 ? `${id} of rank ${key % this.ranks}` : id;
  }

  private stamp(task: number, d: number): number {
    this.state.push(Written.pending);
    this.datum.push(d);
    return this.writer.push(task) - 1;
  }
}
