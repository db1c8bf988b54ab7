// The network's part of weak memory (hazards H1, H2, H4, H5): a card reads and writes behind the back of all queues.
//
// From the moment an engine starts a request until it sees that the request is over, the request may touch its memory
// at any time: the engine must know by then that nobody else does, and nobody may before it has seen the end. "Over"
// says that the last write was handed over, not that any device sees it:
//   - 'none': the owner, too, sees the older contents until the next flush;
//   - 'owner': the owning device sees the write, others only after a flush to all;
//   - 'allDevices': everybody sees it.
// Invariant: what is read before a rule makes it visible is the older contents, or is reported.
import { VisibleTo } from '../network-port.js';
import { ALIGNMENT, roundedBytes } from '../zone.js';
import type { NetworkWatcher } from './network-watcher.js';
import { Act } from './task-acts.js';
import type { WeakMemory } from './weak-memory.js';

/** What the device orders by itself (CUDA attribute 118). */
export type WritesOrdering = 'none' | 'owner' | 'allDevices';

/** The same as the network port says it. */
export const visibleTo: Readonly<Record<WritesOrdering, number>> = {
  none: VisibleTo.none,
  owner: VisibleTo.owner,
  allDevices: VisibleTo.all,
};

/** Memory a request works on. */
interface Span {
  readonly rank: number;
  readonly space: number;
  readonly first: number;
  readonly units: number;
  readonly writes: boolean;
}

/** A write of the card that its device does not see yet. */
interface Pending {
  readonly rank: number;
  readonly space: number;
  readonly first: number;
  readonly contents: Int32Array;
}

export class WeakNetwork implements NetworkWatcher {
  private readonly memory: WeakMemory;
  private readonly ordering: WritesOrdering;
  private readonly spans: Map<number, Span[]> = new Map();
  private pending: Pending[] = [];
  private stopped = false;

  constructor(memory: WeakMemory, ordering: WritesOrdering) {
    this.memory = memory;
    this.ordering = ordering;
  }

  says(rank: number): Int32Array {
    return this.memory.clocks.view(rank);
  }

  hears(rank: number, knowledge: Int32Array): void {
    this.memory.clocks.learn(rank, knowledge);
  }

  starts(
    rank: number,
    request: number,
    owner: number,
    space: number,
    offset: number,
    bytes: number,
    writes: boolean,
  ): void {
    // What is asked for after a loss ends at once and touches nothing.
    if (this.stopped) return;
    const { memory } = this;
    const first = offset / ALIGNMENT;
    const units = roundedBytes(bytes) / ALIGNMENT;
    const seq = memory.engineActs(rank, Act.transfer, request);
    const engine = memory.clocks.engine(rank);
    const isThere = writes
      ? memory.checkOverwrite(engine, seq, owner, space, first, units)
      : memory.checkRead(engine, seq, owner, space, first, units);
    if (!isThere) return;
    const cells = memory.cellsOf(owner, space);
    const counts = writes ? cells.netWrites : cells.netReads;
    for (let u = first; u < first + units; u++) counts[u]++;
    const key = this.keyOf(rank, request);
    const list = this.spans.get(key) ?? [];
    list.push({ rank: owner, space, first, units, writes });
    this.spans.set(key, list);
  }

  sees(rank: number, request: number): void {
    const { memory } = this;
    const key = this.keyOf(rank, request);
    const spans = this.spans.get(key);
    if (spans === undefined) return;
    this.spans.delete(key);
    const seq = memory.engineActs(rank, Act.transfer, request);
    const engine = memory.clocks.engine(rank);
    for (const { rank: owner, space, first, units, writes } of spans) {
      const cells = memory.cellsOf(owner, space);
      const counts = writes ? cells.netWrites : cells.netReads;
      for (let u = first; u < first + units; u++) {
        counts[u]--;
        if (!writes) cells.readAt[u * memory.clocks.size + engine] = seq;
      }
      if (!writes) continue;
      cells.writer.fill(engine, first, first + units);
      cells.writtenAt.fill(seq, first, first + units);
    }
  }

  /** Everything under way is over, and nothing of it arrives (the contract of the port). */
  stops(): void {
    this.stopped = true;
    for (const spans of this.spans.values()) {
      for (const { rank, space, first, units, writes } of spans) {
        const cells = this.memory.cellsOf(rank, space);
        const counts = writes ? cells.netWrites : cells.netReads;
        for (let u = first; u < first + units; u++) counts[u]--;
      }
    }
    this.spans.clear();
    // All hear of it, and with it of what was read before: messages that would have said so do not arrive.
    const { clocks, ranks } = this.memory;
    const known = Array.from({ length: ranks }, (_, rank) => clocks.view(rank).slice());
    for (let rank = 0; rank < ranks; rank++) for (const view of known) clocks.learn(rank, view);
  }

  leaves(rank: number, space: number, offset: number, bytes: number): Int32Array {
    const units = roundedBytes(bytes) / ALIGNMENT;
    return this.memory.cellsOf(rank, space).copyOut(offset / ALIGNMENT, units);
  }

  arrives(
    rank: number,
    space: number,
    offset: number,
    bytes: number,
    contents: Int32Array,
    isCopied: boolean,
  ): void {
    const first = offset / ALIGNMENT;
    const units = roundedBytes(bytes) / ALIGNMENT;
    const cells = this.memory.cellsOf(rank, space);
    const isOrdered = space === 0 || isCopied || this.ordering === 'allDevices';
    cells.unflushed.fill(isOrdered ? 0 : 1, first, first + units);
    if (isOrdered || this.ordering === 'owner') cells.copyIn(first, contents);
    else this.pending.push({ rank, space, first, contents });
  }

  flushes(rank: number, space: number, scope: number): void {
    const cells = this.memory.cellsOf(rank, space);
    if (scope >= VisibleTo.all) cells.unflushed.fill(0);
    this.pending = this.pending.filter((write) => {
      if (write.rank !== rank || write.space !== space) return true;
      cells.copyIn(write.first, write.contents);
      return false;
    });
  }

  private keyOf(rank: number, request: number): number {
    return request * this.memory.ranks + rank;
  }
}
