// The effects of tasks on weak memory: on a device, when their command ends; in JavaScript, from the beginning to the end
// of the body, which may take its time. Each task must see the versions that program order demands (oracle.ts) and follow
// its predecessors.
//
// A task on a device may run behind a failed one before the engine knows of the failure. Its inputs are in doubt then:
// they are wrong only if the version that it should have seen is good in the end.
// Invariant: the oracle knows every task that ran, and its end.
import { AccessMode } from '../../../trace/format.js';
import { ALIGNMENT, roundedBytes } from '../../memory/zone.js';
import { GARBAGE, type SerialOracle } from './oracle.js';
import type { Violation, WeakMemory } from './weak-memory.js';

/** Labels: the kind of an act, with its number. */
export const Act = { task: 1, copy: 2, fill: 3, transfer: 4 } as const;

/** A task on a device saw another version than it must. That is right if the demanded one never exists. */
interface Doubt extends Violation {
  /** Wrong if this version is good in the end ... */
  readonly stamp?: number;
  /** ... or this task ran after all. */
  readonly task?: number;
}

/** The data of a JavaScript body that runs. */
interface Begun {
  readonly offsets: readonly number[];
  /** Stamps that its flows hold until it ends. */
  readonly stamps: readonly number[];
  readonly good: boolean;
}

export class TaskActs {
  private readonly memory: WeakMemory;
  private readonly oracle: SerialOracle;
  /** Event of each executed task: actor and number. */
  private readonly ranAt: Map<number, readonly [number, number]> = new Map();
  /** Wrong unless the version or task that they name turns out not to exist. */
  private readonly doubts: Doubt[] = [];
  /** JavaScript bodies that have begun and not ended, by task. */
  private readonly begun: Map<number, Begun> = new Map();

  constructor(memory: WeakMemory, oracle: SerialOracle) {
    this.memory = memory;
    this.oracle = oracle;
  }

  /** The engine of a rank carries out a task of the runtime's own with host memory at these offsets. */
  hostActs(rank: number, task: number, offsets: ArrayLike<number>, count: number): void {
    const seq = this.memory.engineActs(rank, Act.task, task);
    this.act(this.memory.clocks.engine(rank), seq, 0, task, true, offsets, count);
  }

  /**
   * The engine of a rank takes the content at `offset` in host memory as the value of a datum: it must be the last good
   * version before, and becomes a new one.
   */
  hostRestores(rank: number, id: number, offset: number): void {
    const { oracle, memory } = this;
    const seq = memory.engineActs(rank, Act.task, id);
    const a = memory.clocks.engine(rank);
    const task = oracle.keyOf(rank, id);
    this.starts(a, seq, task, id, 0);
    const [{ datum, written }] = oracle.flowsOf(task);
    const units = roundedBytes(oracle.bytes[datum]) / ALIGNMENT;
    const at = offset / ALIGNMENT;
    memory.read(a, seq, rank, 0, at, units);
    const cells = memory.cellsOf(rank, 0);
    const found = memory.stampOf(cells, at, units);
    const wanted = oracle.lastGood(rank, datum, written);
    // On several ranks the version before may have been under way to the owner when a run failed: then it is an older one.
    const isRight = found === wanted || (memory.ranks > 1 && oracle.isGood(found));
    if (!isRight && !memory.tolerant)
      memory.report(
        'wrong-version',
        `${memory.name(a, seq)} restores datum ${datum}, which was ${oracle.describe(wanted)}, but finds ${oracle.describe(found)}`,
      );
    const good = oracle.isGood(found);
    memory.overwrite(a, seq, rank, 0, at, units);
    memory.stampCells(cells, at, units, good ? written : GARBAGE);
    oracle.settle(written, good);
    this.ended(task, true, good);
  }

  /** The JavaScript body of a task begins on host memory at these offsets; until `bodyEnds` it may do anything there. */
  bodyBegins(rank: number, id: number, offsets: ArrayLike<number>, count: number): void {
    const { oracle } = this;
    const a = this.memory.clocks.engine(rank);
    const seq = this.memory.engineActs(rank, Act.task, id);
    const task = oracle.keyOf(rank, id);
    this.starts(a, seq, task, id, 0);
    // For its successors it counts as over when it has ended.
    this.ranAt.delete(task);
    const good = this.readInputs(a, seq, 0, task, offsets, count, true);
    const cells = this.memory.cellsOf(rank, 0);
    const stamps = oracle.flowsOf(task).map(({ datum, mode, written }, i) => {
      const units = roundedBytes(oracle.bytes[datum]) / ALIGNMENT;
      const at = offsets[i] / ALIGNMENT;
      if (mode === AccessMode.read) return this.memory.stampOf(cells, at, units);
      const stamp = oracle.unfinished(written);
      this.memory.overwrite(a, seq, rank, 0, at, units);
      this.memory.stampCells(cells, at, units, stamp);
      return stamp;
    });
    this.begun.set(task, { offsets: Array.from(offsets).slice(0, count), stamps, good });
  }

  /** The body of a task has ended: no other actor may have touched its outputs, or written its inputs. */
  bodyEnds(rank: number, id: number, succeeds: boolean): void {
    const { oracle } = this;
    const task = oracle.keyOf(rank, id);
    const begun = this.begun.get(task);
    if (begun === undefined) return;
    this.begun.delete(task);
    const a = this.memory.clocks.engine(rank);
    const seq = this.memory.engineActs(rank, Act.task, id);
    const cells = this.memory.cellsOf(rank, 0);
    const good = succeeds && begun.good;
    oracle.flowsOf(task).forEach(({ datum, mode, written }, i) => {
      const units = roundedBytes(oracle.bytes[datum]) / ALIGNMENT;
      const at = begun.offsets[i] / ALIGNMENT;
      const found = this.memory.stampOf(cells, at, units);
      if (found !== begun.stamps[i]) {
        const verb = mode === AccessMode.read ? 'reads' : 'writes';
        this.memory.report(
          'changed',
          `while the body of task #${id} ${verb} datum ${datum}, that became ${oracle.describe(found)}`,
        );
      }
      if (mode === AccessMode.read) return;
      this.memory.overwrite(a, seq, rank, 0, at, units);
      this.memory.stampCells(cells, at, units, good ? written : GARBAGE);
      oracle.settle(written, good);
    });
    this.ranAt.set(task, [a, seq]);
    this.ended(task, succeeds, good);
  }

  /** All tasks are over: doubtful reads are right or wrong now. */
  settleDoubts(): void {
    const { oracle } = this;
    for (const { kind, message, stamp, task } of this.doubts) {
      const isWrong =
        stamp === undefined
          ? task !== undefined && (oracle.executed[task] ?? 0) > 0
          : oracle.isGood(stamp);
      if (isWrong) this.memory.report(kind, message);
    }
    this.forgetDoubts();
  }

  forgetDoubts(): void {
    this.doubts.length = 0;
  }

  /** An issued task ends, in space `space` and with its data at these offsets. */
  // biome-ignore lint/complexity/useMaxParams: one call per executed command, from this folder only.
  act(
    a: number,
    seq: number,
    space: number,
    id: number,
    succeeds: boolean,
    offsets: ArrayLike<number>,
    count: number,
  ): void {
    const { oracle } = this;
    const rank = this.memory.clocks.rankOf(a);
    const task = oracle.keyOf(rank, id);
    this.starts(a, seq, task, id, space);
    const flows = oracle.flowsOf(task);
    // The engine knows the end of every task whose data its own thread reads; a queue may run ahead of that.
    const isExact = a === this.memory.clocks.engine(rank);
    const good = this.readInputs(a, seq, space, task, offsets, count, isExact) && succeeds;
    const cells = this.memory.cellsOf(rank, space);
    for (let i = 0; i < count; i++) {
      const { datum, mode, written } = flows[i];
      if (mode === AccessMode.read) continue;
      const units = roundedBytes(oracle.bytes[datum]) / ALIGNMENT;
      const at = offsets[i] / ALIGNMENT;
      this.memory.overwrite(a, seq, rank, space, at, units);
      this.memory.stampCells(cells, at, units, good ? written : GARBAGE);
      oracle.settle(written, good);
    }
    this.ended(task, succeeds, good);
  }

  private ended(task: number, succeeds: boolean, good: boolean): void {
    const { oracle } = this;
    if (good) oracle.ranWell[task] = true;
    else if (!succeeds) oracle.failedItself[task] = true;
  }

  /** A task starts: once, and after its predecessors. */
  private starts(a: number, seq: number, task: number, id: number, space: number): void {
    const { oracle } = this;
    const runs = (oracle.executed[task] ?? 0) + 1;
    oracle.executed[task] = runs;
    if (runs > 1) this.memory.report('twice', `task #${id} ran ${runs} times`);
    this.follows(a, seq, task, this.name(a, seq, space));
    this.ranAt.set(task, [a, seq]);
  }

  /** Checks that a task's predecessors have run. A dropped one hands its place on: its own predecessors count. */
  private follows(a: number, seq: number, task: number, who: string): void {
    const { oracle, memory } = this;
    for (const p of oracle.predecessorsOf(task)) {
      const at = this.ranAt.get(p);
      if (at === undefined) {
        const message = `${who} ran before ${oracle.describeTask(p)}, which it must follow`;
        if (!memory.tolerant) this.doubts.push({ kind: 'control', message, task: p });
        this.follows(a, seq, p, who);
      } else if (at[0] !== a && !memory.clocks.covers(a, at[0], at[1])) {
        memory.report('control', `no edge orders ${who} after ${oracle.describeTask(p)}`);
      }
    }
  }

  private name(a: number, seq: number, space: number): string {
    return `${this.memory.name(a, seq)} in space ${space}`;
  }

  /** Checks the inputs of a task; true when all of them are good. */
  // biome-ignore lint/complexity/useMaxParams: one call per executed command, from this folder only.
  private readInputs(
    a: number,
    seq: number,
    space: number,
    task: number,
    offsets: ArrayLike<number>,
    count: number,
    isExact: boolean,
  ): boolean {
    const { oracle } = this;
    const rank = this.memory.clocks.rankOf(a);
    const flows = oracle.flowsOf(task);
    const cells = this.memory.cellsOf(rank, space);
    let good = true;
    for (let i = 0; i < count; i++) {
      const { datum, mode, expected } = flows[i];
      if (mode === AccessMode.write) continue;
      const units = roundedBytes(oracle.bytes[datum]) / ALIGNMENT;
      const at = offsets[i] / ALIGNMENT;
      this.memory.read(a, seq, rank, space, at, units);
      const found = this.memory.stampOf(cells, at, units);
      if (found === expected && oracle.isGood(found)) continue;
      good = false;
      if (this.memory.tolerant) continue;
      const state = oracle.isGood(expected) ? '' : ', which has no value,';
      const message =
        `${this.memory.name(a, seq)} reads datum ${datum} in space ${space} and must see ${oracle.describe(expected)}${state} ` +
        `but finds ${oracle.describe(found)}`;
      if (isExact || oracle.isGood(expected)) this.memory.report('wrong-version', message);
      else this.doubts.push({ kind: 'wrong-version', message, stamp: expected });
    }
    return good;
  }
}
