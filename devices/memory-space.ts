// One memory space: its zone, the least-recently-used order of its unpinned copies, and the queue of tasks that
// wait for bytes in it.
//
// Invariants:
//   - a copy is in the LRU exactly when it has a block, no pins, and could be given up (GPU: shared or owned;
//     host: shared or invalid, because the host is where owned copies are spilled to);
//   - an invalid, unpinned copy on a GPU has no block; on the host it keeps it as backing store until memory is short;
//   - `cleanBytes` and `dirtyBytes` are the bytes of the two LRU lists; `arrivingOut` are the bytes of dirty copies
//     whose write-back is under way and that will be clean when it is done.
// The ticket rule: the first task in `waiters` holds the ticket; nobody else may take bytes here while it waits.
import { CopyEvent, CopyState } from './coherency.js';
import { type Directory, NO_BLOCK } from './directory.js';
import { Fifo } from './fifo.js';
import { Lru, LruList } from './lru.js';
import { OfferedCopies } from './offered-copies.js';
import { roundedBytes, Zone } from './zone.js';

/** The id of no task: ids are int32 and wrap, so that every int32 is one. */
export const NO_TASK: number = 2 ** 32;

/** Bytes in use in one memory space, for reports. */
export interface MemoryUse {
  /** Bytes that belong to copies. */
  readonly used: number;
  /** Bytes of copies that may be dropped at once. */
  readonly clean: number;
  /** Bytes of copies that must be written back before they can be dropped. */
  readonly dirty: number;
  /** Bytes of copies in use by something that was issued. */
  readonly pinned: number;
  readonly capacity: number;
  readonly highWater: number;
}

export class MemorySpace {
  readonly index: number;
  readonly zone: Zone;
  readonly lru: Lru = new Lru();
  /** Ids of tasks that wait for bytes here, in order. */
  readonly waiters: Fifo = new Fifo();
  /** Copies here that other ranks are to take. */
  readonly offered: OfferedCopies;
  /** Ids of tasks that let others pass until an offer here is over. */
  readonly aside: Fifo = new Fifo();
  /** Bytes became free or evictable since the waiters were last looked at. */
  freed = false;
  cleanBytes = 0;
  dirtyBytes = 0;
  pinnedBytes = 0;
  /** Copies with pins. */
  pinnedCopies = 0;
  arrivingOut = 0;
  /** Copies that had to leave to make room, so far. */
  evictions = 0;
  /** Blocks given up that are being poisoned (checked mode) and will be free when that is over. */
  poisoning = 0;
  /** Task for which fragmentation forces everything out, or NO_TASK. */
  compactingFor: number = NO_TASK;
  /** Called with the block of every copy that is given up, before the block is free again. */
  onDrop: ((d: number, offset: number, bytes: number) => boolean) | undefined;
  private readonly directory: Directory;
  private readonly isHost: boolean;

  constructor(index: number, capacity: number, directory: Directory) {
    this.index = index;
    this.zone = new Zone(capacity);
    this.directory = directory;
    this.offered = new OfferedCopies(index, directory);
    this.isHost = index === 0;
  }

  /** Something issued, or a task being set up, needs the copy of `d` to stay. */
  pin(d: number): void {
    const dir = this.directory;
    const c = d * dir.spaces + this.index;
    if (dir.pins[c]++ === 0) {
      this.pinnedBytes += dir.bytes[d];
      this.pinnedCopies++;
      this.unlist(d);
    }
  }

  /**
   * The opposite of `pin`. The last one makes the copy evictable, or frees it when it is out of date; when only offers
   * hold it, the first in line may have nothing else to wait for.
   */
  unpin(d: number): void {
    const dir = this.directory;
    const c = d * dir.spaces + this.index;
    if (--dir.pins[c] === 0) {
      this.pinnedBytes -= dir.bytes[d];
      this.pinnedCopies--;
      this.settle(d);
      this.freed = true;
    } else if (this.offered.holds(d)) this.freed = true;
  }

  /** Puts an unpinned copy where its state says it belongs. */
  settle(d: number): void {
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
    this.freed = true;
  }

  /** Gives up the block of an unpinned copy that may be dropped. */
  drop(d: number): void {
    const dir = this.directory;
    const c = d * dir.spaces + this.index;
    this.unlist(d);
    dir.apply(d, this.index, CopyEvent.drop);
    const offset = dir.block[c];
    dir.block[c] = NO_BLOCK;
    dir.forgetReaders(c);
    dir.writeQueue[c] = -1;
    if (this.onDrop === undefined || !this.onDrop(d, offset, dir.bytes[d]))
      this.zone.release(offset);
    this.freed = true;
  }

  /** Frees the copy of a datum that is not needed any more, whatever its state; it has no pins. */
  giveUp(d: number): void {
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
    for (let d = 0; d < dir.length; d++) {
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

  private list(d: number, list: number): void {
    this.unlist(d);
    this.lru.touch(d, list);
    const bytes = roundedBytes(this.directory.bytes[d]);
    if (list === LruList.clean) this.cleanBytes += bytes;
    else this.dirtyBytes += bytes;
  }

  private unlist(d: number): void {
    const list = this.lru.listOf(d);
    if (list === LruList.none) return;
    const bytes = roundedBytes(this.directory.bytes[d]);
    if (list === LruList.clean) this.cleanBytes -= bytes;
    else this.dirtyBytes -= bytes;
    this.lru.remove(d);
  }
}
