// Weak memory: contents are stamps, and a write is visible to a reader only along the edges that justify it.
//
// Memory is kept in cells of the allocator's unit (cells.ts), of all ranks together. An access that is not ordered
// (vector-clocks.ts) after the last write, or an overwrite that is not ordered after every reader, is a violation
// whatever the timing of this particular run, and names the missing edge. An ordered access must find the
// stamp that program order demands (oracle.ts), so a wrong version is found as well. weak-network.ts models the
// network's accesses.
// Invariant: freed memory that is written again takes its old contents, and their readers, with it.

import { type QueueInfo, Status } from '../../backend.js';
import { NO_QUEUE, type QueueId } from '../../handles.js';
import { ALIGNMENT, roundedBytes } from '../../memory/zone.js';
import { type MachineDescription, queuesOf, spacesOf } from '../machine/machine.js';
import type { Watcher } from '../machine/watcher.js';
import { Cells, Unflushed } from './cells.js';
import { GARBAGE, type SerialOracle } from './oracle.js';
import { Act, TaskActs } from './task-acts.js';
import { VectorClocks } from './vector-clocks.js';

/** The kinds of violations. */
type ViolationKind =
  | 'read-after-write'
  | 'write-after-read'
  | 'write-after-write'
  | 'control'
  | 'flush'
  | 'wrong-version'
  | 'changed'
  | 'twice'
  | 'outside';

export interface Violation {
  readonly kind: ViolationKind;
  /** The actor: a task, a copy or a fill, with its queue. */
  readonly message: string;
}

const KINDS = ['nothing', 'task', 'copy', 'fill', 'transfer'] as const;

export class WeakMemory {
  readonly violations: Violation[] = [];
  /** Bytes did not arrive, or ranks fail: wrong inputs are no violation, but results from them are garbage. */
  tolerant = false;
  /** Reads and writes checked. */
  checks = 0;
  readonly ranks: number;
  readonly clocks: VectorClocks;
  private readonly cells: readonly (readonly Cells[])[];
  private readonly queues: readonly QueueInfo[];
  private readonly labels: number[][];
  readonly tasks: TaskActs;

  constructor(oracle: SerialOracle, machine: MachineDescription, ranks: number) {
    this.ranks = ranks;
    this.tasks = new TaskActs(this, oracle);
    this.queues = queuesOf(machine);
    this.clocks = new VectorClocks(this.queues.length, ranks);
    this.labels = Array.from({ length: this.clocks.size }, () => []);
    this.cells = Array.from({ length: ranks }, () =>
      spacesOf(machine).map((space, s) => new Cells(space.bytes, s === 0, this.clocks.size)),
    );
  }

  /** The bytes of a rank's host memory. */
  hostBytes(rank: number): Uint8Array {
    return this.cells[rank][0].bytes as Uint8Array;
  }

  cellsOf(rank: number, space: number): Cells {
    return this.cells[rank][space];
  }

  /** The reports of a rank's backend. */
  watcher(rank: number): Watcher {
    const { clocks } = this;
    const actor = (queue: QueueId): number => clocks.queue(rank, queue);
    return {
      issued: (queue, seq, waitQueue, waitSeq) =>
        clocks.issued(
          actor(queue),
          seq,
          waitQueue === NO_QUEUE ? NO_QUEUE : actor(waitQueue),
          waitSeq,
        ),
      seen: (queue, seq) => clocks.seen(actor(queue), seq),
      started: (queue, seq) => clocks.started(actor(queue), seq),
      finished: (queue, first, last) => clocks.finished(actor(queue), first, last),
      // biome-ignore lint/complexity/useMaxParams: one call per executed command, within devices/simulated.
      exec: (queue, seq, space, task, status, args, nFlows) => {
        this.label(actor(queue), seq, Act.task, task);
        if (status === Status.deviceLost) this.tolerant = true;
        if (status !== Status.cancelled)
          this.tasks.act(actor(queue), seq, space, task, status === 0, args, nFlows);
      },
      // biome-ignore lint/complexity/useMaxParams: one call per executed command, within devices/simulated.
      copy: (queue, seq, transfer, status, to, toOffset, from, fromOffset, bytes) => {
        this.label(actor(queue), seq, Act.copy, transfer);
        if (status !== 0) this.tolerant = true;
        this.move(actor(queue), seq, status === 0, to, toOffset, from, fromOffset, bytes);
      },
      sends: (queue, seq, offset, bytes) => {
        const a = actor(queue);
        this.label(a, seq, Act.transfer, 0);
        this.read(a, seq, rank, 0, offset / ALIGNMENT, roundedBytes(bytes) / ALIGNMENT);
        return clocks.knowledgeOf(a);
      },
      offers: (queue, seq, space, offset, bytes) => {
        const a = actor(queue);
        this.label(a, seq, Act.transfer, 0);
        const [first, units] = [offset / ALIGNMENT, roundedBytes(bytes) / ALIGNMENT];
        // Its bytes leave when other ranks ask: that is no act of the lane.
        if (this.checkRead(a, seq, rank, space, first, units))
          count(this.cells[rank][space].netReads, first, units, 1);
        return clocks.knowledgeOf(a);
      },
      fetches: (queue, seq, space, offset, bytes) => {
        const a = actor(queue);
        this.label(a, seq, Act.transfer, 0);
        const [first, units] = [offset / ALIGNMENT, roundedBytes(bytes) / ALIGNMENT];
        if (this.checkOverwrite(a, seq, rank, space, first, units))
          count(this.cells[rank][space].netWrites, first, units, 1);
      },
      fetched: (space, offset, bytes) => {
        const [first, units] = [offset / ALIGNMENT, roundedBytes(bytes) / ALIGNMENT];
        count(this.cells[rank][space].netWrites, first, units, -1);
      },
      // biome-ignore lint/complexity/useMaxParams: one call per executed command, within devices/simulated.
      receives: (queue, seq, space, offset, bytes, knowledge, isThere) => {
        const a = actor(queue);
        this.label(a, seq, Act.transfer, 0);
        if (knowledge !== undefined) clocks.hears(a, knowledge);
        const [first, units] = [offset / ALIGNMENT, roundedBytes(bytes) / ALIGNMENT];
        if (isThere) this.ownsWrite(a, seq, rank, space, first, units);
        else this.overwrite(a, seq, rank, space, first, units);
      },
      fill: (queue, seq, space, offset, bytes) => {
        this.label(actor(queue), seq, Act.fill, 0);
        const units = roundedBytes(bytes) / ALIGNMENT;
        const first = offset / ALIGNMENT;
        this.overwrite(actor(queue), seq, rank, space, first, units);
        const cells = this.cells[rank][space];
        for (let u = 0; u < units; u++) cells.set(first + u, GARBAGE, u);
      },
    };
  }

  /** The engine of a rank writes the first value of a datum. */
  hostWrite(rank: number, offset: number, bytes: number, stamp: number): void {
    const seq = this.engineActs(rank, Act.task, 0);
    const units = roundedBytes(bytes) / ALIGNMENT;
    this.overwrite(this.clocks.engine(rank), seq, rank, 0, offset / ALIGNMENT, units);
    this.stampCells(this.cells[rank][0], offset / ALIGNMENT, units, stamp);
  }

  /** All earlier faults have been settled: from now on inputs count again. */
  forgive(): void {
    this.tolerant = false;
    this.tasks.forgetDoubts();
  }

  /** A rank's engine acts itself; returns the act's number. */
  engineActs(rank: number, kind: number, number: number): number {
    const seq = this.clocks.engineActs(rank);
    this.label(this.clocks.engine(rank), seq, kind, number);
    return seq;
  }

  /** The stamp all cells of a block hold, or garbage when they differ. */
  contents(rank: number, space: number, offset: number, bytes: number): number {
    const units = roundedBytes(bytes) / ALIGNMENT;
    return this.stampOf(this.cells[rank][space], offset / ALIGNMENT, units);
  }

  // biome-ignore lint/complexity/useMaxParams: one call per executed command, within devices/simulated.
  private move(
    a: number,
    seq: number,
    succeeds: boolean,
    to: number,
    toOffset: number,
    from: number,
    fromOffset: number,
    bytes: number,
  ): void {
    const rank = this.clocks.rankOf(a);
    const units = roundedBytes(bytes) / ALIGNMENT;
    const source = fromOffset / ALIGNMENT;
    const destination = toOffset / ALIGNMENT;
    if (this.checkOrder(a, seq, rank, from, source, units))
      this.hasRead(a, seq, rank, from, source, units);
    this.overwrite(a, seq, rank, to, destination, units);
    const read = this.cells[rank][from];
    const written = this.cells[rank][to];
    for (let u = 0; u < units; u++) {
      written.set(
        destination + u,
        succeeds ? read.stamp(source + u) : GARBAGE,
        read.part(source + u),
      );
      // The command between a failed flush and the copy may be cancelled: then no task needs what it copies.
      if (!this.isFlushed(a, rank, from, source + u))
        written.unflushed[destination + u] = Unflushed.copied;
    }
  }

  /** Whether an actor is sure to see what the network wrote to a cell. */
  private isFlushed(a: number, rank: number, space: number, unit: number): boolean {
    const state = this.cells[rank][space].unflushed[unit];
    const isOwn = this.spaceOf(a) === space && this.clocks.rankOf(a) === rank;
    return state === Unflushed.no || (state === Unflushed.forOthers && isOwn);
  }

  /** Checks a read of cells and remembers it. */
  read(a: number, seq: number, rank: number, space: number, first: number, units: number): void {
    if (this.checkRead(a, seq, rank, space, first, units))
      this.hasRead(a, seq, rank, space, first, units);
  }

  private hasRead(
    a: number,
    seq: number,
    rank: number,
    space: number,
    first: number,
    units: number,
  ): void {
    const { readAt } = this.cells[rank][space];
    for (let u = first; u < first + units; u++) readAt[u * this.clocks.size + a] = seq;
  }

  /** Whether there are such cells; reports a read of them without an edge, or without a flush. */
  checkRead(
    a: number,
    seq: number,
    rank: number,
    space: number,
    first: number,
    units: number,
  ): boolean {
    if (!this.checkOrder(a, seq, rank, space, first, units)) return false;
    // Next to a failed run, a queue may run behind a command that was cancelled: then no task needs what it reads.
    const isDoubtful = this.tolerant && a !== this.clocks.engine(rank);
    const { unflushed } = this.cells[rank][space];
    for (let u = first; u < first + units; u++) {
      if (this.isFlushed(a, rank, space, u)) continue;
      if (isDoubtful && unflushed[u] === Unflushed.copied) continue;
      const text = `${this.name(a, seq)} reads what the network wrote to another device (space ${space}, unit ${u}) without a flush to all devices`;
      this.report('flush', text);
      break;
    }
    return true;
  }

  private checkOrder(
    a: number,
    seq: number,
    rank: number,
    space: number,
    first: number,
    units: number,
  ): boolean {
    const cells = this.cells[rank][space];
    this.checks++;
    if (first < 0 || first + units > cells.units) {
      this.report('outside', `${this.name(a, seq)} reads outside of space ${space}`);
      return false;
    }
    for (let u = first; u < first + units; u++) {
      const w = cells.writer[u];
      if (w >= 0 && w !== a && !this.clocks.covers(a, w, cells.writtenAt[u])) {
        this.missing('read-after-write', w, cells.writtenAt[u], a, seq, space, u);
        break;
      }
      if (cells.netWrites[u] > 0) {
        const text = `${this.name(a, seq)} reads what the network is still writing (space ${space}, unit ${u})`;
        this.report('read-after-write', text);
        break;
      }
    }
    return true;
  }

  /** Checks an overwrite of cells and remembers it. */
  overwrite(
    a: number,
    seq: number,
    rank: number,
    space: number,
    first: number,
    units: number,
  ): void {
    if (this.ownsWrite(a, seq, rank, space, first, units))
      this.cells[rank][space].unflushed.fill(Unflushed.no, first, first + units);
  }

  /** The same for cells that the network has written: whether all see the contents depends on its flush. */
  private ownsWrite(
    a: number,
    seq: number,
    rank: number,
    space: number,
    first: number,
    units: number,
  ): boolean {
    if (!this.checkOverwrite(a, seq, rank, space, first, units)) return false;
    const cells = this.cells[rank][space];
    const { size } = this.clocks;
    cells.readAt.fill(0, first * size, (first + units) * size);
    cells.writer.fill(a, first, first + units);
    cells.writtenAt.fill(seq, first, first + units);
    return true;
  }

  /** Whether there are such cells; reports an overwrite of them without an edge. */
  checkOverwrite(
    a: number,
    seq: number,
    rank: number,
    space: number,
    first: number,
    units: number,
  ): boolean {
    const cells = this.cells[rank][space];
    const { size } = this.clocks;
    this.checks++;
    if (first < 0 || first + units > cells.units) {
      this.report('outside', `${this.name(a, seq)} writes outside of space ${space}`);
      return false;
    }
    for (let u = first; u < first + units; u++) {
      const w = cells.writer[u];
      if (w >= 0 && w !== a && !this.clocks.covers(a, w, cells.writtenAt[u])) {
        this.missing('write-after-write', w, cells.writtenAt[u], a, seq, space, u);
        return true;
      }
      if (cells.netWrites[u] > 0 || cells.netReads[u] > 0) {
        const what = cells.netWrites[u] > 0 ? 'writing' : 'reading';
        const text = `${this.name(a, seq)} overwrites what the network is still ${what} (space ${space}, unit ${u})`;
        this.report(cells.netWrites[u] > 0 ? 'write-after-write' : 'write-after-read', text);
        return true;
      }
      const base = u * size;
      for (let r = 0; r < size; r++) {
        const at = cells.readAt[base + r];
        if (at === 0 || r === a || this.clocks.covers(a, r, at)) continue;
        this.missing('write-after-read', r, at, a, seq, space, u);
        return true;
      }
    }
    return true;
  }

  // biome-ignore lint/complexity/useMaxParams: one call per executed command, within devices/simulated.
  private missing(
    kind: ViolationKind,
    from: number,
    fromSeq: number,
    to: number,
    toSeq: number,
    space: number,
    unit: number,
  ): void {
    this.report(
      kind,
      `missing edge ${kind}: ${this.name(from, fromSeq)} -> ${this.name(to, toSeq)} (space ${space}, unit ${unit})`,
    );
  }

  stampCells(cells: Cells, first: number, units: number, stamp: number): void {
    for (let u = 0; u < units; u++) cells.set(first + u, stamp, u);
  }

  /** The stamp that a whole block holds, or garbage when its cells differ. */
  stampOf(cells: Cells, first: number, units: number): number {
    const stamp = cells.stamp(first);
    for (let u = 0; u < units; u++) {
      if (cells.stamp(first + u) !== stamp || cells.part(first + u) !== u) return GARBAGE;
    }
    return stamp;
  }

  /** The space of an actor: that of its queue, the host for an engine. */
  private spaceOf(a: number): number {
    return this.queues[a % (this.queues.length + 1)]?.space ?? 0;
  }

  private label(a: number, seq: number, kind: number, number: number): void {
    this.labels[a][seq] = number * 8 + kind;
  }

  /** An act in words. */
  name(a: number, seq: number): string {
    const label = this.labels[a]?.[seq] ?? 0;
    const queue = this.queues[a % (this.queues.length + 1)];
    const rank = this.ranks > 1 ? ` of rank ${this.clocks.rankOf(a)}` : '';
    const where =
      queue === undefined
        ? `engine thread${rank}`
        : `queue ${a % (this.queues.length + 1)}${rank}, ${queue.kind} of space ${queue.space}`;
    return `${KINDS[label & 7]} #${label >> 3} (${where}, record ${seq})`;
  }

  report(kind: ViolationKind, message: string): void {
    if (this.violations.length < 100) this.violations.push({ kind, message });
  }
}

/** Requests of the network that touch these cells begin or end. */
function count(cells: Uint8Array, first: number, units: number, change: number): void {
  for (let u = first; u < first + units; u++) cells[u] += change;
}
