// The network's part of weak memory (hazards H1, H2, H4, H5): a card reads and writes without the queues' knowledge.
//
// From the moment a lane announces bytes until the engine sees that no rank needs them, the network may read them at any time
// (devices/simulated/machine/executor.ts tells of it). "Received" means that the last write was handed over, not that any
// device sees it:
//   - 'none': the owner, too, sees the older contents until the next flush;
//   - 'owner': the owning device sees the write, others only after a flush to all;
//   - 'allDevices': all readers see it.
// Invariant: a read before a rule makes the write visible finds the older contents, or is reported.

import { ALIGNMENT, roundedBytes } from '../../memory/zone.js';
import { VisibleTo } from '../../network/port.js';
import { Unflushed } from '../memory/cells.js';
import { GARBAGE } from '../memory/oracle.js';
import { Act } from '../memory/task-acts.js';
import type { WeakMemory } from '../memory/weak-memory.js';
import type { NetworkWatcher } from './watcher.js';

/** The order that the device keeps by itself (CUDA attribute 118). */
export type WritesOrdering = 'none' | 'owner' | 'allDevices';

/** The same in the words of the network port. */
export const visibleTo: Readonly<Record<WritesOrdering, number>> = {
  none: VisibleTo.none,
  owner: VisibleTo.owner,
  allDevices: VisibleTo.all,
};

/** A write of the card that its device does not see yet. */
interface Pending {
  /** The writes of the card that came before. */
  readonly number: number;
  readonly rank: number;
  readonly space: number;
  readonly first: number;
  readonly contents: Int32Array;
}

export class WeakNetwork implements NetworkWatcher {
  private readonly memory: WeakMemory;
  private readonly ordering: WritesOrdering;
  private pending: Pending[] = [];
  private writes = 0;

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

  departs(rank: number, space: number, offset: number, bytes: number): void {
    const { memory } = this;
    const seq = memory.engineActs(rank, Act.transfer, 0);
    const engine = memory.clocks.engine(rank);
    const cells = memory.cellsOf(rank, space);
    const first = offset / ALIGNMENT;
    for (let u = first; u < first + roundedBytes(bytes) / ALIGNMENT; u++) {
      cells.netReads[u]--;
      cells.readAt[u * memory.clocks.size + engine] = seq;
    }
  }

  /** Nothing is under way any more (the contract of the port). */
  stops(): void {
    // All ranks learn of it, and of all reads before it: the messages about these do not arrive.
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
    cells.unflushed.fill(isOrdered ? Unflushed.no : Unflushed.forOthers, first, first + units);
    if (isOrdered || this.ordering === 'owner') cells.copyIn(first, contents);
    else this.pending.push({ number: this.writes, rank, space, first, contents });
    this.writes++;
  }

  flushBegins(): number {
    return this.writes;
  }

  /** As behind a copy that fails, commands of other runs may be carried out before the engine knows: their results are marked then. */
  flushFails(rank: number, space: number, writes: number): void {
    this.memory.tolerant = true;
    const cells = this.memory.cellsOf(rank, space);
    this.pending = this.pending.filter((write) => {
      if (write.rank !== rank || write.space !== space || write.number >= writes) return true;
      for (let u = 0; 2 * u < write.contents.length; u++) cells.set(write.first + u, GARBAGE, u);
      return false;
    });
  }

  flushes(rank: number, space: number, scope: number): void {
    const cells = this.memory.cellsOf(rank, space);
    if (scope >= VisibleTo.all) cells.flush();
    this.pending = this.pending.filter((write) => {
      if (write.rank !== rank || write.space !== space) return true;
      cells.copyIn(write.first, write.contents);
      return false;
    });
  }
}
