// Finds accesses to real bytes that no edge orders: two commands on different queues use the same bytes, one of them writes, and
// none comes after the other by the order of a queue, a wait, or submission after the engine saw a completion
// (vector-clocks.ts), whatever the timing of the run.
//
// What the engine sees of a play while that is under way is no edge for the records of the play: the queues feed themselves.
// Invariant: per cell the last writer, and the last read of each queue since.
import { Status } from '../../backend.js';
import { NO_QUEUE, type QueueId } from '../../handles.js';
import { ALIGNMENT } from '../../memory/zone.js';
import { type MachineDescription, queuesOf, spacesOf } from '../machine/machine.js';
import type { Watcher } from '../machine/watcher.js';
import { VectorClocks } from './vector-clocks.js';

/** Bytes that a kernel uses. */
export interface KernelAccess {
  readonly offset: number;
  readonly bytes: number;
  readonly writes: boolean;
}

interface Cell {
  writer: QueueId;
  written: number;
  readonly readAt: Map<QueueId, number>;
}

export class Edges {
  /** The accesses without an edge. */
  readonly problems: string[] = [];
  /** What the kernel uses that has just run. */
  kernel: readonly KernelAccess[] = [];
  private readonly clocks: VectorClocks;
  private readonly cells: readonly Map<number, Cell>[];
  private isPlaying = false;
  /** The last record of each queue that has run. */
  private readonly finished: Map<QueueId, number> = new Map();
  private readonly unseen: [QueueId, number][] = [];

  constructor(machine: MachineDescription) {
    this.clocks = new VectorClocks(queuesOf(machine).length);
    this.cells = spacesOf(machine).map(() => new Map<number, Cell>());
  }

  playBegins(): void {
    this.isPlaying = true;
  }

  playEnds(): void {
    this.isPlaying = false;
    for (const [queue, seq] of this.unseen.splice(0)) this.clocks.seen(queue, seq);
  }

  get watcher(): Watcher {
    const { clocks } = this;
    const noLane = (): never => {
      throw new Error('a machine of one rank has no lanes');
    };
    return {
      issued: (queue, seq, on, onSeq) => clocks.issued(queue, seq, on, on === NO_QUEUE ? 0 : onSeq),
      seen: (queue, seq) => {
        // The records that a play has skipped have not run.
        const last = Math.min(seq, this.finished.get(queue) ?? 0);
        if (this.isPlaying) this.unseen.push([queue, last]);
        else clocks.seen(queue, last);
      },
      started: (queue, seq) => clocks.started(queue, seq),
      finished: (queue, first, last) => {
        this.finished.set(queue, last);
        clocks.finished(queue, first, last);
      },
      exec: (queue, seq, space) => {
        for (const access of this.kernel) this.access(queue, seq, space, access);
        this.kernel = [];
      },
      // biome-ignore lint/complexity/useMaxParams: the order is that of the reports.
      copy: (queue, seq, _transfer, status, to, toOffset, from, fromOffset, bytes) => {
        if (status !== Status.ok) return;
        this.access(queue, seq, from, { offset: fromOffset, bytes, writes: false });
        this.access(queue, seq, to, { offset: toOffset, bytes, writes: true });
      },
      // Freed memory is filled for checks: the fill is ordered like the next user of the memory.
      fill: (queue, seq, space, offset, bytes) =>
        this.access(queue, seq, space, { offset, bytes, writes: true }),
      sends: noLane,
      offers: noLane,
      fetches: noLane,
      fetched: noLane,
      receives: noLane,
    };
  }

  private access(q: QueueId, seq: number, space: number, access: KernelAccess): void {
    const { offset, bytes, writes } = access;
    const first = Math.floor(offset / ALIGNMENT);
    for (let unit = first; unit * ALIGNMENT < offset + bytes; unit++) {
      const cell = this.cellOf(space, unit);
      this.after(q, space, offset, writes, 'is written', cell.writer, cell.written);
      if (!writes) {
        cell.readAt.set(q, seq);
        continue;
      }
      for (const [reader, at] of cell.readAt)
        this.after(q, space, offset, writes, 'is read', reader, at);
      cell.readAt.clear();
      cell.writer = q;
      cell.written = seq;
    }
  }

  // biome-ignore lint/complexity/useMaxParams: both sides of an edge, within this file only.
  private after(
    q: QueueId,
    space: number,
    offset: number,
    writes: boolean,
    use: string,
    other: QueueId,
    at: number,
  ): void {
    if (other === NO_QUEUE || other === q || this.clocks.covers(q, other, at)) return;
    this.problems.push(
      `queue ${q} ${writes ? 'writes' : 'reads'} at ${offset} of space ${space} what ${use} by record ${at} of queue ${other}, and no edge orders them`,
    );
  }

  private cellOf(space: number, unit: number): Cell {
    const cells = this.cells[space];
    let cell = cells.get(unit);
    if (cell === undefined) {
      cell = { writer: NO_QUEUE, written: 0, readAt: new Map() };
      cells.set(unit, cell);
    }
    return cell;
  }
}
