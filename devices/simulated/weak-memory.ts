// Weak memory: contents are stamps, and a write is visible to a reader only along the edges that justify it.
//
// Memory is kept in cells of the allocator's unit. Every cell knows who wrote it last and who read it since. An
// access that is not ordered (vector-clocks.ts) after the last write, or an overwrite that is not ordered after every
// reader, is a violation whatever the timing of this particular run, and names the missing edge. An access that is
// ordered must find the stamp that program order demands (oracle.ts), so a wrong version is found as well.
// Invariant: freed memory that is written again takes its old contents, and their readers, with it.

import { AccessMode } from '../../trace/format.js';
import { ALIGNMENT, roundedBytes } from '../zone.js';
import { GARBAGE, type SerialOracle } from './oracle.js';
import { VectorClocks } from './vector-clocks.js';
import type { Watched, Watcher } from './watcher.js';

/** What a violation says is missing or wrong. */
export type ViolationKind =
  | 'read-after-write'
  | 'write-after-read'
  | 'write-after-write'
  | 'control'
  | 'wrong-version'
  | 'twice'
  | 'outside';

export interface Violation {
  readonly kind: ViolationKind;
  /** Who did it: a task, a copy or a fill, with its queue. */
  readonly message: string;
}

interface Cells {
  readonly stamp: Int32Array;
  /** Which unit of the datum the cell holds. */
  readonly part: Int32Array;
  readonly writer: Int16Array;
  readonly writtenAt: Int32Array;
  /** Last read since the write, per reader: cell * clocks + reader. */
  readonly readAt: Int32Array;
}

const KINDS = ['nothing', 'task', 'copy', 'fill'] as const;

export class WeakMemory implements Watcher {
  readonly violations: Violation[] = [];
  /** Something failed or was cancelled: wrong inputs are no violation, but what comes of them is garbage. */
  tolerant = false;
  /** Reads and writes checked. */
  checks = 0;
  private readonly oracle: SerialOracle;
  private readonly bytesOf: (datum: number) => number;
  private clocks: VectorClocks = new VectorClocks(0);
  private cells: Cells[] = [];
  private labels: number[][] = [];
  private machine: Watched | undefined;
  /** Event of each executed task: queue * 2^32 + seq. */
  private readonly ranAt: Map<number, readonly [number, number]> = new Map();

  constructor(oracle: SerialOracle, bytesOf: (datum: number) => number) {
    this.oracle = oracle;
    this.bytesOf = bytesOf;
  }

  open(machine: Watched): void {
    this.machine = machine;
    this.clocks = new VectorClocks(machine.queues.length);
    this.labels = Array.from({ length: machine.queues.length + 1 }, () => []);
    this.cells = machine.spaces.map((space) => {
      const units = Math.floor(space.bytes / ALIGNMENT);
      return {
        stamp: new Int32Array(units),
        part: new Int32Array(units),
        writer: new Int16Array(units).fill(-1),
        writtenAt: new Int32Array(units),
        readAt: new Int32Array(units * this.clocks.size),
      };
    });
  }

  issued(queue: number, seq: number, waitQueue: number, waitSeq: number): void {
    this.clocks.issued(queue, seq, waitQueue, waitSeq);
  }

  seen(queue: number, seq: number): void {
    this.clocks.seen(queue, seq);
  }

  started(queue: number, seq: number): void {
    this.clocks.started(queue, seq);
  }

  finished(queue: number, first: number, last: number): void {
    this.clocks.finished(queue, first, last);
  }

  exec(
    queue: number,
    seq: number,
    space: number,
    task: number,
    status: number,
    args: ArrayLike<number>,
    nFlows: number,
  ): void {
    this.labels[queue][seq] = task * 4 + 1;
    if (status === -1) {
      this.tolerant = true;
      return;
    }
    if (status !== 0) this.tolerant = true;
    this.act(queue, seq, space, task, status === 0, args, nFlows);
  }

  copy(
    queue: number,
    seq: number,
    transfer: number,
    status: number,
    destination: number,
    destinationOffset: number,
    source: number,
    sourceOffset: number,
    bytes: number,
  ): void {
    this.labels[queue][seq] = transfer * 4 + 2;
    const units = roundedBytes(bytes) / ALIGNMENT;
    const from = sourceOffset / ALIGNMENT;
    const to = destinationOffset / ALIGNMENT;
    if (status !== 0) this.tolerant = true;
    this.read(queue, seq, source, from, units);
    this.overwrite(queue, seq, destination, to, units);
    const a = this.cells[source];
    const b = this.cells[destination];
    for (let u = 0; u < units; u++) {
      b.stamp[to + u] = status === 0 ? a.stamp[from + u] : GARBAGE;
      b.part[to + u] = a.part[from + u];
    }
  }

  fill(queue: number, seq: number, space: number, offset: number, bytes: number): void {
    this.labels[queue][seq] = 3;
    const units = roundedBytes(bytes) / ALIGNMENT;
    this.overwrite(queue, seq, space, offset / ALIGNMENT, units);
    this.cells[space].stamp.fill(GARBAGE, offset / ALIGNMENT, offset / ALIGNMENT + units);
  }

  close(): void {
    // Nothing to give back.
  }

  /** The engine thread runs the JavaScript body of a task on host memory at these offsets. */
  hostBody(task: number, offsets: ArrayLike<number>, count: number): void {
    const seq = this.clocks.hostAct();
    this.labels[this.clocks.host][seq] = task * 4 + 1;
    this.act(this.clocks.host, seq, 0, task, true, offsets, count);
  }

  /** The engine thread writes the first value of a datum. */
  hostWrite(offset: number, bytes: number, stamp: number): void {
    const seq = this.clocks.hostAct();
    const units = roundedBytes(bytes) / ALIGNMENT;
    this.labels[this.clocks.host][seq] = 1;
    this.overwrite(this.clocks.host, seq, 0, offset / ALIGNMENT, units);
    this.stampCells(0, offset / ALIGNMENT, units, stamp);
  }

  /** The stamp all cells of a block hold, or garbage when they differ. */
  contents(space: number, offset: number, bytes: number): number {
    return this.stampOf(space, offset / ALIGNMENT, roundedBytes(bytes) / ALIGNMENT);
  }

  private act(
    q: number,
    seq: number,
    space: number,
    task: number,
    succeeds: boolean,
    offsets: ArrayLike<number>,
    count: number,
  ): void {
    const { oracle } = this;
    const runs = (oracle.executed[task] ?? 0) + 1;
    oracle.executed[task] = runs;
    if (runs > 1) this.report('twice', `task #${task} ran ${runs} times`);
    for (const p of oracle.predecessorsOf(task)) {
      const at = this.ranAt.get(p);
      if (at === undefined) {
        if (!this.tolerant)
          this.report(
            'control',
            `${this.name(q, seq)} ran before task #${p}, which it must follow`,
          );
      } else if (at[0] !== q && !this.clocks.covers(q, at[0], at[1])) {
        this.report('control', `no edge orders ${this.name(q, seq)} after task #${p}`);
      }
    }
    this.ranAt.set(task, [q, seq]);
    const flows = oracle.flowsOf(task);
    let good = succeeds;
    for (let i = 0; i < count; i++) {
      const { datum, mode, expected } = flows[i];
      if (mode === AccessMode.write) continue;
      const units = roundedBytes(this.bytesOf(datum)) / ALIGNMENT;
      const at = offsets[i] / ALIGNMENT;
      this.read(q, seq, space, at, units);
      const found = this.stampOf(space, at, units);
      if (found === expected && oracle.isGood(found)) continue;
      good = false;
      if (!this.tolerant) {
        this.report(
          'wrong-version',
          `${this.name(q, seq)} reads datum ${datum} in space ${space} and must see ${oracle.describe(expected)}, ` +
            `but finds ${oracle.describe(found)}`,
        );
      }
    }
    for (let i = 0; i < count; i++) {
      const { datum, mode, written } = flows[i];
      if (mode === AccessMode.read) continue;
      const units = roundedBytes(this.bytesOf(datum)) / ALIGNMENT;
      const at = offsets[i] / ALIGNMENT;
      this.overwrite(q, seq, space, at, units);
      this.stampCells(space, at, units, good ? written : GARBAGE);
      oracle.settle(written, good);
    }
  }

  private read(q: number, seq: number, space: number, first: number, units: number): void {
    const cells = this.cells[space];
    const { size } = this.clocks;
    this.checks++;
    if (first < 0 || first + units > cells.stamp.length) {
      this.report('outside', `${this.name(q, seq)} reads outside of space ${space}`);
      return;
    }
    let reported = false;
    for (let u = first; u < first + units; u++) {
      const w = cells.writer[u];
      if (w >= 0 && w !== q && !reported && !this.clocks.covers(q, w, cells.writtenAt[u])) {
        reported = true;
        this.report(
          'read-after-write',
          `missing edge read-after-write: ${this.name(w, cells.writtenAt[u])} -> ${this.name(q, seq)} (space ${space}, unit ${u})`,
        );
      }
      cells.readAt[u * size + q] = seq;
    }
  }

  private overwrite(q: number, seq: number, space: number, first: number, units: number): void {
    const cells = this.cells[space];
    const { size } = this.clocks;
    this.checks++;
    if (first < 0 || first + units > cells.stamp.length) {
      this.report('outside', `${this.name(q, seq)} writes outside of space ${space}`);
      return;
    }
    let reported = false;
    for (let u = first; u < first + units; u++) {
      const w = cells.writer[u];
      if (w >= 0 && w !== q && !reported && !this.clocks.covers(q, w, cells.writtenAt[u])) {
        reported = true;
        this.report(
          'write-after-write',
          `missing edge write-after-write: ${this.name(w, cells.writtenAt[u])} -> ${this.name(q, seq)} (space ${space}, unit ${u})`,
        );
      }
      const base = u * size;
      for (let r = 0; r < size; r++) {
        const at = cells.readAt[base + r];
        if (at === 0) continue;
        cells.readAt[base + r] = 0;
        if (r !== q && !reported && !this.clocks.covers(q, r, at)) {
          reported = true;
          this.report(
            'write-after-read',
            `missing edge write-after-read: ${this.name(r, at)} -> ${this.name(q, seq)} (space ${space}, unit ${u})`,
          );
        }
      }
      cells.writer[u] = q;
      cells.writtenAt[u] = seq;
    }
  }

  private stampCells(space: number, first: number, units: number, stamp: number): void {
    const cells = this.cells[space];
    for (let u = 0; u < units; u++) {
      cells.stamp[first + u] = stamp;
      cells.part[first + u] = u;
    }
  }

  private stampOf(space: number, first: number, units: number): number {
    const cells = this.cells[space];
    const stamp = cells.stamp[first];
    for (let u = 0; u < units; u++) {
      if (cells.stamp[first + u] !== stamp || cells.part[first + u] !== u) return GARBAGE;
    }
    return stamp;
  }

  private name(q: number, seq: number): string {
    const label = this.labels[q]?.[seq] ?? 0;
    const number = Math.floor(label / 4);
    const queue = this.machine?.queues[q];
    const where =
      queue === undefined ? 'engine thread' : `queue ${q}, ${queue.kind} of space ${queue.space}`;
    return `${KINDS[label & 3]} #${number} (${where}, record ${seq})`;
  }

  private report(kind: ViolationKind, message: string): void {
    if (this.violations.length < 100) this.violations.push({ kind, message });
  }
}
