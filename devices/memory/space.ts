// One memory space: its zone, the least-recently-used order of its unpinned copies, and the queue of tasks that
// wait for bytes in it.
//
// Invariants:
//   - a copy is in the LRU exactly when it has a block, no pins, and could be given up (GPU: shared or owned;
//     host: shared or invalid, because owned copies are spilled to the host);
//   - an invalid, unpinned copy on a GPU has no block; on the host it keeps it as backing store until memory is short;
//   - `cleanBytes` and `dirtyBytes` are the bytes of the two LRU lists; `arrivingOut` are the bytes of dirty copies
//     whose write-back is under way and that will be clean when it is done.
// The ticket rule: the first task in `waiters` holds the ticket; no other task may take bytes here while it waits.

import { Fifo } from '../fifo.js';
import {
  type DatumId,
  FIRST_DATUM,
  HOST,
  NO_QUEUE,
  type SpaceId,
  type TaskId,
} from '../handles.js';
import { AllSpaces } from './all-spaces.js';
import { CopyEvent, CopyState } from './coherency.js';
import { type Directory, NO_BLOCK } from './directory.js';
import { Lru, LruList } from './lru.js';
import { OfferedCopies } from './offered-copies.js';
import { roundedBytes, Zone } from './zone.js';

/** The id of no task: ids are int32 and wrap, so that every int32 is one. */
const NOBODY: number = 2 ** 32;

/** Bytes in use in one memory space, for reports. */
export interface MemoryUse {
  /** Bytes that belong to copies. */
  readonly used: number;
  /** Bytes of copies that may be dropped at once. */
  readonly clean: number;
  /** Bytes of copies that are written back before they can be dropped. */
  readonly dirty: number;
  /** Bytes of copies that issued commands use. */
  readonly pinned: number;
  readonly capacity: number;
  readonly highWater: number;
}

export class MemorySpace {
  readonly index: SpaceId;
  readonly zone: Zone;
  readonly lru: Lru = new Lru();
  /** Ids of tasks that wait for bytes here, in order. */
  readonly waiters: Fifo<TaskId>;
  /** Copies here that other ranks will take. */
  readonly offered: OfferedCopies;
  /** Ids of tasks that let others pass until an offer here is over. */
  readonly aside: Fifo<TaskId> = new Fifo<TaskId>();
  cleanBytes = 0;
  dirtyBytes = 0;
  pinnedBytes = 0;
  /** Copies with pins. */
  pinnedCopies = 0;
  arrivingOut = 0;
  /** Copies that left to make room, so far. */
  evictions = 0;
  /** Blocks given up that are being poisoned (checked mode); they are free after that. */
  poisoning = 0;
  /** Called with the block of every copy that is given up, before the block is free again. */
  onDrop: ((d: DatumId, offset: number, bytes: number) => boolean) | undefined;
  private compactingFor: number = NOBODY;
  private readonly directory: Directory;
  private readonly isHost: boolean;
  private readonly all: AllSpaces;

  /** `all` is shared with the other spaces of an engine. */
  constructor(
    index: SpaceId,
    capacity: number,
    directory: Directory,
    all: AllSpaces = new AllSpaces(),
  ) {
    this.index = index;
    this.all = all;
    this.waiters = new Fifo<TaskId>(64, all.waiting);
    this.zone = new Zone(capacity, index !== HOST);
    this.directory = directory;
    this.offered = new OfferedCopies(index, directory);
    this.isHost = index === HOST;
  }

  /**
   * The waiters of this space must be served again: bytes became free or evictable, or a reason to wait is gone. The
   * engine serves them at its next round.
   */
  wakeLine(): void {
    this.all.setServeLine(this.index, true);
  }

  /** Whether `wakeLine` was called since the engine last served the waiters. */
  get mustServeLine(): boolean {
    return this.all.mustServeLine(this.index);
  }

  /** The engine serves the waiters now; what is freed from here on needs another round. */
  beginServing(): void {
    this.all.setServeLine(this.index, false);
  }

  /**
   * Returns blocks that were never used. They need no poison, and the waiters are not woken: the first of them has just
   * given the blocks up, and would spin.
   */
  returnUnused(unpin: () => void): void {
    const { mustServeLine, onDrop } = this;
    this.onDrop = undefined;
    unpin();
    this.all.setServeLine(this.index, mustServeLine);
    this.onDrop = onDrop;
  }

  /** Fragmentation forces everything out for task `id`, until `endCompaction`. */
  beginCompaction(id: TaskId): void {
    this.compactingFor = id;
  }

  isCompactingFor(id: TaskId): boolean {
    return this.compactingFor === id;
  }

  /** Task `id` has its memory, gave way, or was dropped. Changes nothing when the space is compacted for another task. */
  endCompaction(id: TaskId): void {
    if (this.compactingFor === id) this.compactingFor = NOBODY;
  }

  /** An issued command, or a task that is being set up, needs the copy of `d` here. */
  pin(d: DatumId): void {
    const dir = this.directory;
    const c = d * dir.spaces + this.index;
    if (dir.pins[c]++ === 0) {
      this.pinnedBytes += dir.bytes[d];
      this.pinnedCopies++;
      this.unlist(d);
    }
  }

  /**
   * The opposite of `pin`. The last call makes the copy evictable, or frees it if it is out of date. If only offers still
   * hold the copy, the first task in line may have no other pin to wait for.
   */
  unpin(d: DatumId): void {
    const dir = this.directory;
    const c = d * dir.spaces + this.index;
    if (--dir.pins[c] === 0) {
      this.pinnedBytes -= dir.bytes[d];
      this.pinnedCopies--;
      this.settle(d);
      this.wakeLine();
    } else if (this.offered.holds(d)) this.wakeLine();
  }

  /** A copy leaves to make room. */
  countEviction(): void {
    this.evictions++;
    this.all.evictions++;
  }

  /** Puts an unpinned copy into the list of its state. */
  settle(d: DatumId): void {
    const dir = this.directory;
    const c = d * dir.spaces + this.index;
    if (dir.pins[c] !== 0 || dir.block[c] === NO_BLOCK) return;
    const state = dir.state[c];
    if (this.isHost) {
      if (state === CopyState.shared || state === CopyState.invalid) this.list(d, LruList.clean);
      else this.unlist(d);
      return;
    }
    if (state === CopyState.invalid) this.drop(d);
    else this.list(d, state === CopyState.owned ? LruList.dirty : LruList.clean);
    this.wakeLine();
  }

  /** Gives up the block of an unpinned copy that may be dropped. */
  drop(d: DatumId): void {
    const dir = this.directory;
    const c = d * dir.spaces + this.index;
    this.unlist(d);
    dir.apply(d, this.index, CopyEvent.drop);
    const offset = dir.block[c];
    dir.block[c] = NO_BLOCK;
    dir.forgetReaders(c);
    dir.writeQueue[c] = NO_QUEUE;
    if (this.onDrop === undefined || !this.onDrop(d, offset, dir.bytes[d]))
      this.zone.release(offset);
    this.wakeLine();
  }

  /** Frees the unpinned copy of a datum that no task needs any more, whatever its state. */
  giveUp(d: DatumId): void {
    const dir = this.directory;
    if (dir.block[d * dir.spaces + this.index] === NO_BLOCK) return;
    dir.apply(d, this.index, CopyEvent.remoteWrite);
    this.drop(d);
  }

  /** Bytes that could be made available by dropping clean copies. */
  get reachable(): number {
    return this.zone.available + this.cleanBytes;
  }

  use(): MemoryUse {
    return {
      used: this.zone.used,
      clean: this.cleanBytes,
      dirty: this.dirtyBytes,
      pinned: this.pinnedBytes,
      capacity: this.zone.capacity,
      highWater: this.zone.highWater,
    };
  }

  /** Checks the invariants above; for tests. */
  validate(): void {
    const dir = this.directory;
    this.zone.validate();
    let clean = 0;
    let dirty = 0;
    let pinned = 0;
    for (let d = FIRST_DATUM; d < dir.length; d++) {
      const c = d * dir.spaces + this.index;
      const list = this.lru.listOf(d);
      if (dir.live[d] === 0) {
        if (list !== LruList.none)
          throw new Error(`space ${this.index}: dead datum ${d} is in the LRU`);
        continue;
      }
      if (dir.pins[c] > 0) {
        pinned += dir.bytes[d];
        if (list !== LruList.none)
          throw new Error(`space ${this.index}: pinned datum ${d} is in the LRU`);
      } else if (dir.block[c] === NO_BLOCK) {
        if (list !== LruList.none)
          throw new Error(`space ${this.index}: datum ${d} has no block but is listed`);
      } else if (!this.isHost && list === LruList.none) {
        throw new Error(`space ${this.index}: unpinned datum ${d} is in no list`);
      }
      if (list === LruList.clean) clean += roundedBytes(dir.bytes[d]);
      if (list === LruList.dirty) {
        dirty += roundedBytes(dir.bytes[d]);
        if (dir.state[c] !== CopyState.owned)
          throw new Error(`space ${this.index}: datum ${d} is not dirty`);
      }
    }
    if (clean !== this.cleanBytes || dirty !== this.dirtyBytes || pinned !== this.pinnedBytes) {
      throw new Error(
        `space ${this.index}: bytes are miscounted (clean ${this.cleanBytes}/${clean}, ` +
          `dirty ${this.dirtyBytes}/${dirty}, pinned ${this.pinnedBytes}/${pinned})`,
      );
    }
  }

  private list(d: DatumId, list: number): void {
    this.unlist(d);
    this.lru.touch(d, list);
    const bytes = roundedBytes(this.directory.bytes[d]);
    if (list === LruList.clean) this.cleanBytes += bytes;
    else this.dirtyBytes += bytes;
  }

  private unlist(d: DatumId): void {
    const list = this.lru.listOf(d);
    if (list === LruList.none) return;
    const bytes = roundedBytes(this.directory.bytes[d]);
    if (list === LruList.clean) this.cleanBytes -= bytes;
    else this.dirtyBytes -= bytes;
    this.lru.remove(d);
  }
}
